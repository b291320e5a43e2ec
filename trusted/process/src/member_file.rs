// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of a member of a group: of a node, which serves, or of a client.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use smt_mesh::Certificates;
use toml::Spanned;
use zeroize::Zeroizing;

use crate::keys::{PublicKey, public_key};
use crate::own_secret::{DeviceEntry, OwnSecret, SecretField};
use crate::source::{ConfigError, Source, read_secret};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    group: PathBuf,
    node: Option<Spanned<u32>>,
    replica: Option<Spanned<u32>>,
    client: Option<Spanned<u32>>,
    state: Option<Spanned<PathBuf>>,
    authority: PathBuf,
    certificate: PathBuf,
    certificate_key: PathBuf,
    signing_key: PathBuf,
    group_secret: Option<Spanned<PathBuf>>,
    log_bytes: Option<Spanned<u32>>,
    device: Option<Spanned<DeviceEntry>>,
}

/// The role of a member, whose name is the field with its number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It serves, and its system calls it a node.
    Node,
    /// It serves, and its system calls it a replica.
    Replica,
    /// It makes requests.
    Client,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Replica => "replica",
            Self::Client => "client",
        }
    }
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
    role: Role,
    place: Range<usize>,
}

/// The parts of its file that a member has beside those of all if it serves.
pub struct Serving {
    /// Its directory.
    pub state: PathBuf,
    /// The secret of its group, with which it attests.
    pub secret: OwnSecret,
    /// Bytes by which its log grows before it is begun anew.
    pub log_bytes: u64,
}

/// The same for a member that has no device of its own, and whose log only grows.
pub struct ServingAlone {
    /// Its directory.
    pub state: PathBuf,
    /// The secret of its group, with which it attests.
    pub group_secret: Zeroizing<[u8; 32]>,
}

impl MemberFile {
    /// Reads the files of a member that serves.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn serving(path: &Path, role: Role) -> Result<(Self, Serving), ConfigError> {
        let (source, fields) = Source::read::<Fields>(path)?;
        let number = fields.number(&source, role)?;
        let path = fields.group_secret.as_ref().map(|it| it.get_ref().as_path());
        let field = SecretField { name: "group_secret", path };
        let secret = OwnSecret::read(&source, field, fields.device.as_ref())?;
        let state = fields.state(&source)?;
        let log_bytes = source.growth("log_bytes", fields.log_bytes.as_ref())?;
        let serving = Serving { state, secret, log_bytes };
        Ok((Self::new(source, &fields, role, &number)?, serving))
    }

    /// Reads the files of a node that has no device of its own, and whose log only grows.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn serving_alone(path: &Path) -> Result<(Self, ServingAlone), ConfigError> {
        let (source, fields) = Source::read::<Fields>(path)?;
        let number = fields.number(&source, Role::Node)?;
        let device = Present::of("device", fields.device.as_ref());
        let log_bytes = Present::of("log_bytes", fields.log_bytes.as_ref());
        refuse_any(&source, [device, log_bytes], "nodes of this system have none")?;
        let secret = fields.group_secret.as_ref().ok_or_else(|| source.lacks("group_secret"))?;
        let group_secret = read_secret(&source.beside(secret.get_ref()))?;
        let serving = ServingAlone { state: fields.state(&source)?, group_secret };
        Ok((Self::new(source, &fields, Role::Node, &number)?, serving))
    }

    /// Reads the files of a client.
    ///
    /// # Errors
    /// [`ConfigError`]
    pub fn of_client(path: &Path) -> Result<Self, ConfigError> {
        let (source, fields) = Source::read::<Fields>(path)?;
        let number = fields.number(&source, Role::Client)?;
        let others = [
            Present::of("state", fields.state.as_ref()),
            Present::of("group_secret", fields.group_secret.as_ref()),
            Present::of("log_bytes", fields.log_bytes.as_ref()),
            Present::of("device", fields.device.as_ref()),
        ];
        refuse_any(&source, others, "clients have none")?;
        Self::new(source, &fields, Role::Client, &number)
    }

    fn new(
        source: Source,
        fields: &Fields,
        role: Role,
        number: &Spanned<u32>,
    ) -> Result<Self, ConfigError> {
        let files = [&*fields.authority, &*fields.certificate, &*fields.certificate_key];
        let signing_key = read_secret(&source.beside(&fields.signing_key))?;
        Ok(Self {
            number: *number.get_ref(),
            group: source.beside(&fields.group),
            certificates: source.certificates(files),
            signing_key,
            role,
            place: number.span(),
            source,
        })
    }

    /// Refuses a member that is not among those of its group that serve, whose keys are these.
    ///
    /// # Errors
    /// [`ConfigError::Field`]
    pub fn refuse_other(&self, keys: &[PublicKey]) -> Result<(), ConfigError> {
        let role = self.role.name();
        let why = match keys.get(self.number as usize) {
            Some(key) if *key == public_key(&self.signing_key) => return Ok(()),
            Some(_) => "signing_key is not the one of which the group has the public key".into(),
            None => format!("the group has {role}s 0 to {}", keys.len().saturating_sub(1)),
        };
        Err(self.source.field(role, self.place.clone(), why))
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

impl Fields {
    /// The number of a member in a role, which has none in another one.
    fn number(&self, source: &Source, role: Role) -> Result<Spanned<u32>, ConfigError> {
        let roles = [Role::Node, Role::Replica, Role::Client];
        let own = self.number_as(role).ok_or_else(|| source.lacks(role.name()))?;
        let others =
            roles.map(|it| Present::of(it.name(), self.number_as(it).filter(|_| it != role)));
        refuse_any(source, others, &format!("this file is that of a {}", role.name()))?;
        Ok(own.clone())
    }

    fn number_as(&self, role: Role) -> Option<&Spanned<u32>> {
        match role {
            Role::Node => self.node.as_ref(),
            Role::Replica => self.replica.as_ref(),
            Role::Client => self.client.as_ref(),
        }
    }

    fn state(&self, source: &Source) -> Result<PathBuf, ConfigError> {
        let state = self.state.as_ref().ok_or_else(|| source.lacks("state"))?;
        Ok(source.beside(state.get_ref()))
    }
}

/// A field that a file has.
struct Present {
    name: &'static str,
    place: Range<usize>,
}

impl Present {
    fn of<T>(name: &'static str, value: Option<&Spanned<T>>) -> Option<Self> {
        value.map(|it| Self { name, place: it.span() })
    }
}

/// Refuses fields that members of a role do not have.
fn refuse_any<const N: usize>(
    source: &Source,
    fields: [Option<Present>; N],
    why: &str,
) -> Result<(), ConfigError> {
    match fields.into_iter().flatten().next() {
        Some(Present { name, place }) => Err(source.field(name, place, why.to_owned())),
        None => Ok(()),
    }
}
