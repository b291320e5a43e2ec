// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of a group on the loopback, and addresses of its replicas.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use smt::pki::{
    CertificateAuthority, CertificatePlan, KeyKind, MakeCertificateError, Purpose, SubjectName,
    Validity,
};
use smt_mesh::{Certificates, Member, Place};

/// The one member that speaks for all clients: requests and replies are signed, and name theirs.
pub(crate) const CLIENTS: u32 = 1;

/// The places of all members, with their files in a directory that ends with this value.
pub(crate) struct Credentials {
    directory: PathBuf,
    addresses: Vec<String>,
}

impl Credentials {
    pub(crate) fn make(replicas: u32) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-minbft-keys-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        // Replicas know all addresses before any of them listens. All sockets are there at once, so
        // that no port comes twice.
        let sockets = (0..replicas).map(|_| UdpSocket::bind("127.0.0.1:0"));
        let sockets: Vec<UdpSocket> = sockets.collect::<Result<_, _>>()?;
        let addresses = sockets.iter().map(|it| Ok(it.local_addr()?.to_string()));
        let addresses = addresses.collect::<io::Result<_>>()?;
        let own = Self { directory, addresses };
        own.write(replicas).map_err(io::Error::other)?;
        Ok(own)
    }

    fn write(&self, replicas: u32) -> Result<(), MakeCertificateError> {
        let authority =
            CertificateAuthority::new("minbft", Validity::days(2)?, KeyKind::EcdsaP256)?;
        let write = |name: String, text: &[u8]| {
            // A file that is missing is told when it is read.
            let _ = std::fs::write(self.directory.join(name), text);
        };
        write("authority.pem".to_owned(), authority.certificate_pem().as_bytes());
        for member in (0..replicas).map(Member::Replica).chain([Member::Client(CLIENTS)]) {
            let issued = authority.issue(&CertificatePlan {
                common_name: member.name(),
                names: vec![SubjectName::parse(&member.name())?],
                purpose: Purpose::ServerAndClient,
                validity: Validity::days(1)?,
                key_kind: KeyKind::EcdsaP256,
            })?;
            write(format!("{}.pem", member.name()), issued.certificate_pem.as_bytes());
            write(format!("{}.key", member.name()), issued.key_pem.as_bytes());
        }
        Ok(())
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
            clients: BTreeSet::from([CLIENTS]),
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
