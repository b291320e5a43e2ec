// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of one run, and addresses of its replicas.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use smt::pki::{CertificateAuthority, CertificatePlan, KeyKind, Purpose, SubjectName, Validity};
use smt_mesh::{Certificates, Member, Place};

use super::REPLICAS;
use crate::Failure;

/// The one member that speaks for all clients: identities of channels play no part in the systems.
pub(crate) const CLIENT: Member = Member::Client(1);

/// The places of all members, with their files in a directory.
pub(crate) struct Credentials {
    directory: PathBuf,
    addresses: Vec<String>,
}

impl Credentials {
    pub(crate) fn make(directory: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory)?;
        let validity = Validity::days(2)?;
        let authority = CertificateAuthority::new("figures", validity, KeyKind::EcdsaP256)?;
        std::fs::write(directory.join("authority.pem"), authority.certificate_pem())?;
        for member in (0..REPLICAS).map(Member::Replica).chain([CLIENT]) {
            let issued = authority.issue(&CertificatePlan {
                common_name: member.name(),
                names: vec![SubjectName::parse(&member.name())?],
                purpose: Purpose::ServerAndClient,
                validity: Validity::days(1)?,
                key_kind: KeyKind::EcdsaP256,
            })?;
            let file = |end| directory.join(format!("{}.{end}", member.name()));
            std::fs::write(file("pem"), issued.certificate_pem)?;
            std::fs::write(file("key"), issued.key_pem.as_bytes())?;
        }
        // Replicas know all addresses before any of them listens.
        let free = |_| Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string());
        let addresses = (0..REPLICAS).map(free).collect::<Result<_, Failure>>()?;
        Ok(Self { directory: directory.to_path_buf(), addresses })
    }

    pub(crate) fn place(&self, own: Member) -> Place {
        let file = |end: &str| self.directory.join(format!("{}.{end}", own.name()));
        Place {
            own,
            certificates: Certificates {
                authority: self.directory.join("authority.pem"),
                certificate: file("pem"),
                key: file("key"),
            },
            addresses: self.addresses.clone(),
            clients: BTreeSet::from([1]),
            boot: None,
            packet_max: None,
        }
    }
}

impl Drop for Credentials {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
