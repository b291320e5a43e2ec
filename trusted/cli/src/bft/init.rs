// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft init`: the files of a new group.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use data_encoding::HEXLOWER;
use smt::pki::{
    CertificateAuthority, CertificatePlan, KeyKind, MakeCertificateError, Purpose, SubjectName,
    Validity,
};
use smt_mesh::Member;
use zeroize::Zeroizing;

use crate::bft::config::ServiceName;
use crate::bft::state;

/// Makes configuration, keys and certificates of a new group in a new directory
///
/// Each member gets the files that begin with its name, group.toml and authority.pem; replicas also
/// group.secret. authority.key stays with the operator, who renews certificates by it.
#[derive(Args)]
pub(crate) struct InitArguments {
    /// The directory
    directory: PathBuf,
    /// Address and port of each replica: 3, 5, 7 or 9 of them
    #[arg(long = "replica", value_name = "ADDRESS", required = true)]
    replicas: Vec<String>,
    /// How many clients the group has, numbered from 1
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// The service that is replicated
    #[arg(long, default_value = "key-value")]
    service: ServiceName,
}

/// Why a group is not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    /// The number of replicas is even, or out of bounds.
    #[error("your request: {0} replicas: a group has 2f + 1 of them, 3, 5, 7 or 9")]
    Count(usize),
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

impl InitArguments {
    pub(crate) fn run(self) -> Result<(), InitError> {
        if !matches!(self.replicas.len(), 3 | 5 | 7 | 9) {
            return Err(InitError::Count(self.replicas.len()));
        }
        let group = NewGroup::create(&self.directory)?;
        let service = self.service.to_possible_value();
        let service = service.map(|it| it.get_name().to_owned()).unwrap_or_default();
        let mut text = format!("stream = 1\nservice = \"{service}\"\n");
        for (number, address) in (0..).zip(&self.replicas) {
            let key = group.member(Member::Replica(number))?;
            let key = HEXLOWER.encode(&key);
            let _ = write!(text, "\n[[replicas]]\naddress = {address:?}\nreply_key = \"{key}\"\n");
        }
        for number in 1..=self.clients {
            let key = group.member(Member::Client(number))?;
            let key = HEXLOWER.encode(&key);
            let _ = write!(text, "\n[[clients]]\nnumber = {number}\nkey = \"{key}\"\n");
        }
        if self.clients == 0 {
            text = format!("clients = []\n{text}");
        }
        group.write("group.toml", text.as_bytes(), 0o644)
    }
}

/// The directory of a group, and the authority of its certificates.
struct NewGroup {
    directory: PathBuf,
    authority: CertificateAuthority,
}

impl NewGroup {
    fn create(directory: &Path) -> Result<Self, InitError> {
        let directory = directory.to_path_buf();
        let failed = |error| InitError::File(directory.display().to_string(), error);
        fs::create_dir_all(&directory).map_err(failed)?;
        let validity = Validity::days(DAYS + 1)?;
        let name = "smt-trusted group";
        let authority = CertificateAuthority::new(name, validity, KeyKind::EcdsaP256)?;
        let group = Self { directory, authority };
        let key = group.authority.key_pem();
        group.write("authority.key", key.as_bytes(), 0o600)?;
        group.write("authority.pem", group.authority.certificate_pem().as_bytes(), 0o644)?;
        group.secret("group.secret")?;
        Ok(group)
    }

    /// Makes all files of a member, and returns the public key by which others verify it.
    fn member(&self, member: Member) -> Result<[u8; 32], InitError> {
        let name = member.name();
        let seed = self.secret(&format!("{name}.signing"))?;
        let issued = self.authority.issue(&CertificatePlan {
            common_name: name.clone(),
            names: vec![SubjectName::parse(&name)?],
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
            Member::Replica(number) => {
                let directory = self.directory.join(format!("{name}.state"));
                let failed = |error| InitError::File(directory.display().to_string(), error);
                state::create(&directory).map_err(failed)?;
                format!(
                    "replica = {number}\nstate = \"{name}.state\"\ngroup_secret = \"group.secret\"\n"
                )
            }
            Member::Client(number) => format!("client = {number}\n"),
        };
        let text = format!(
            "{own}group = \"group.toml\"\nauthority = \"authority.pem\"\n\
             certificate = \"{name}.pem\"\ncertificate_key = \"{name}.key\"\n\
             signing_key = \"{name}.signing\"\n"
        );
        self.write(&format!("{name}.toml"), text.as_bytes(), 0o644)?;
        Ok(smt_bft::public_key(&seed))
    }

    fn secret(&self, name: &str) -> Result<Zeroizing<[u8; 32]>, InitError> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(InitError::Random)?;
        let text = Zeroizing::new(HEXLOWER.encode(&*bytes));
        self.write(name, text.as_bytes(), 0o600)?;
        Ok(bytes)
    }

    fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), InitError> {
        let path = self.directory.join(name);
        let failed = |error| InitError::File(path.display().to_string(), error);
        // Never over a file that is there: it may hold the only copy of a key.
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = file.map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)
    }
}
