// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of a new group: keys, certificates, and a configuration of each member.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use smt::pki::{
    CertificateAuthority, CertificatePlan, KeyKind, MakeCertificateError, Purpose, SubjectName,
    Validity,
};
use smt_mesh::Member;
use zeroize::Zeroizing;

use crate::keys::public_key;
use crate::state;

/// Why a group is not made.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The number of members is even, or out of bounds.
    #[error("your request: {0}")]
    Count(String),
    /// An argument has a value that it cannot have.
    #[error("your request: {0}: {1}")]
    Argument(&'static str, String),
    /// A file cannot be written, or is there.
    #[error("your files: {0} cannot be made")]
    File(String, #[source] io::Error),
    /// A certificate cannot be made.
    #[error("the certificates cannot be made: {0}")]
    Certificate(#[from] MakeCertificateError),
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Days until certificates and their authority end.
const DAYS: u32 = 365;

/// The directory of a group, and the authority of its certificates.
pub struct NewGroup {
    directory: PathBuf,
    authority: CertificateAuthority,
    has_secret: bool,
}

impl NewGroup {
    /// Makes the directory and the authority.
    ///
    /// # Errors
    /// [`InitError`]
    pub fn create(directory: &Path) -> Result<Self, InitError> {
        let directory = directory.to_path_buf();
        let failed = |error| InitError::File(directory.display().to_string(), error);
        fs::create_dir_all(&directory).map_err(failed)?;
        let validity = Validity::days(DAYS + 1)?;
        let name = "smt-trusted group";
        let authority = CertificateAuthority::new(name, validity, KeyKind::EcdsaP256)?;
        let group = Self { directory, authority, has_secret: false };
        let key = group.authority.key_pem();
        group.write("authority.key", key.as_bytes(), 0o600)?;
        group.write("authority.pem", group.authority.certificate_pem().as_bytes(), 0o644)?;
        Ok(group)
    }

    /// Makes the group's secret, with which its devices attest.
    ///
    /// # Errors
    /// [`InitError`]
    pub fn with_secret(mut self) -> Result<Self, InitError> {
        self.secret("group.secret")?;
        self.has_secret = true;
        Ok(self)
    }

    /// Makes all files of a member, whose names begin with `noun`, and returns the public key by
    /// which others verify it.
    ///
    /// # Errors
    /// [`InitError`]
    pub fn member(&self, member: Member, noun: &str) -> Result<[u8; 32], InitError> {
        let (Member::Replica(number) | Member::Client(number)) = member;
        let name = format!("{noun}-{number}");
        let seed = self.secret(&format!("{name}.signing"))?;
        let issued = self.authority.issue(&CertificatePlan {
            common_name: member.name(),
            names: vec![SubjectName::parse(&member.name())?],
            purpose: match member {
                Member::Replica(_) => Purpose::ServerAndClient,
                Member::Client(_) => Purpose::Client,
            },
            validity: Validity::days(DAYS)?,
            key_kind: KeyKind::EcdsaP256,
        })?;
        self.write(&format!("{name}.pem"), issued.certificate_pem.as_bytes(), 0o644)?;
        self.write(&format!("{name}.key"), issued.key_pem.as_bytes(), 0o600)?;
        let own = match member {
            Member::Replica(_) => {
                let directory = self.directory.join(format!("{name}.state"));
                let failed = |error| InitError::File(directory.display().to_string(), error);
                state::create(&directory).map_err(failed)?;
                let secret = match self.has_secret {
                    true => "group_secret = \"group.secret\"\n",
                    false => "",
                };
                format!("{noun} = {number}\nstate = \"{name}.state\"\n{secret}")
            }
            Member::Client(_) => format!("client = {number}\n"),
        };
        let text = format!(
            "{own}group = \"group.toml\"\nauthority = \"authority.pem\"\n\
             certificate = \"{name}.pem\"\ncertificate_key = \"{name}.key\"\n\
             signing_key = \"{name}.signing\"\n"
        );
        self.write(&format!("{name}.toml"), text.as_bytes(), 0o644)?;
        Ok(public_key(&seed))
    }

    /// The part of the group's file about clients, whose files are made.
    ///
    /// # Errors
    /// [`InitError`]
    pub fn clients(&self, count: u32) -> Result<String, InitError> {
        let mut text = String::new();
        for number in 1..=count {
            let key = HEXLOWER.encode(&self.member(Member::Client(number), "client")?);
            let _ = write!(text, "\n[[clients]]\nnumber = {number}\nkey = \"{key}\"\n");
        }
        Ok(text)
    }

    fn secret(&self, name: &str) -> Result<Zeroizing<[u8; 32]>, InitError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(InitError::Random)?;
        let text = Zeroizing::new(HEXLOWER.encode(&*bytes));
        self.write(name, text.as_bytes(), 0o600)?;
        Ok(bytes)
    }

    /// Writes a new file.
    ///
    /// # Errors
    /// [`InitError`]
    pub fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), InitError> {
        let path = self.directory.join(name);
        let failed = |error| InitError::File(path.display().to_string(), error);
        // Never over a file that is there: it may hold the only copy of a key.
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = file.map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
    }
}
