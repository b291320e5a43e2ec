// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of a member of a group: of a node, which serves, or of a client.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use smt_mesh::Certificates;
use toml::Spanned;
use zeroize::Zeroizing;

use crate::keys::{PublicKey, public_key};
use crate::source::{ConfigError, Source, read_secret};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    group: PathBuf,
    node: Option<Spanned<u32>>,
    client: Option<Spanned<u32>>,
    state: Option<PathBuf>,
    authority: PathBuf,
    certificate: PathBuf,
    certificate_key: PathBuf,
    signing_key: PathBuf,
    group_secret: Option<PathBuf>,
}

/// The files of a member, whose paths are relative to the one that names them.
pub struct MemberFile {
    /// The member's number.
    pub number: u32,
    /// The file of its group.
    pub group: PathBuf,
    /// Its certificate.
    pub certificates: Certificates,
    /// The seed of the key with which it signs.
    pub signing_key: Zeroizing<[u8; 32]>,
    source: Source,
    place: Range<usize>,
}

/// The files that a node has beside those of all members.
pub struct NodeFiles {
    /// Its directory.
    pub state: PathBuf,
    /// The secret of its group, with which its device attests.
    pub group_secret: Zeroizing<[u8; 32]>,
}

impl MemberFile {
    /// Reads the files of a node.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn of_node(path: &Path) -> Result<(Self, NodeFiles), ConfigError> {
        let (source, fields) = Source::read::<Fields>(path)?;
        let number = fields.node.clone().ok_or_else(|| source.lacks("node"))?;
        let state = fields.state.as_ref().ok_or_else(|| source.lacks("state"))?;
        let secret = fields.group_secret.as_ref().ok_or_else(|| source.lacks("group_secret"))?;
        let group_secret = read_secret(&source.beside(secret))?;
        let files = NodeFiles { state: source.beside(state), group_secret };
        Ok((Self::new(source, &fields, &number)?, files))
    }

    /// Reads the files of a client.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn of_client(path: &Path) -> Result<Self, ConfigError> {
        let (source, fields) = Source::read::<Fields>(path)?;
        let number = fields.client.clone().ok_or_else(|| source.lacks("client"))?;
        Self::new(source, &fields, &number)
    }

    fn new(source: Source, fields: &Fields, number: &Spanned<u32>) -> Result<Self, ConfigError> {
        let files = [&*fields.authority, &*fields.certificate, &*fields.certificate_key];
        let signing_key = read_secret(&source.beside(&fields.signing_key))?;
        Ok(Self {
            number: *number.get_ref(),
            group: source.beside(&fields.group),
            certificates: source.certificates(files),
            signing_key,
            place: number.span(),
            source,
        })
    }

    /// Refuses a node that is not among those of its group, whose keys are these.
    ///
    /// # Errors
    /// [`ConfigError::Field`]
    pub fn refuse_other_node(&self, keys: &[PublicKey]) -> Result<(), ConfigError> {
        let why = match keys.get(self.number as usize) {
            Some(key) if *key == public_key(&self.signing_key) => return Ok(()),
            Some(_) => "signing_key is not the one of which the group has the public key".into(),
            None => format!("the group has nodes 0 to {}", keys.len().saturating_sub(1)),
        };
        Err(self.source.field("node", self.place.clone(), why))
    }

    /// Refuses a client that has another key than its group knows.
    ///
    /// # Errors
    /// [`ConfigError::Field`]
    pub fn refuse_other_client(&self, key: Option<&PublicKey>) -> Result<(), ConfigError> {
        if key == Some(&public_key(&self.signing_key)) {
            return Ok(());
        }
        let why = "the group has no client of this number with the key of signing_key".to_owned();
        Err(self.source.field("client", self.place.clone(), why))
    }
}
