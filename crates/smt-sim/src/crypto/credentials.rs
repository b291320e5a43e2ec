// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of the simulated hosts: Ed25519 keys from fixed seeds, so every byte is the same
//! everywhere.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use smt_handshake::{Identity, Trust};

use crate::net::packet::HostId;

/// An authority, and a certificate of it for each host.
pub struct Credentials {
    trust: Trust,
    identities: Vec<Identity>,
}

impl Credentials {
    /// For this many hosts; each certificate is so many bytes longer than it need be, as chains
    /// are.
    ///
    /// # Panics
    /// If the certificate library refuses what it has always taken.
    pub fn new(hosts: u32, longer_by: usize) -> Self {
        let authority_key = key(u32::MAX);
        let mut params = params("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root = params.self_signed(&authority_key).expect(FIXED);
        let issuer = Issuer::from_params(&params, &authority_key);
        let identities = (0..hosts)
            .map(|host| {
                let key = key(host);
                let name = name(HostId(host));
                let mut params = self::params(&name);
                params.subject_alt_names =
                    vec![rcgen::SanType::DnsName(name.try_into().expect(FIXED))];
                if longer_by > 0 {
                    let content = vec![0x5A; longer_by];
                    let extension = CustomExtension::from_oid_content(&NOBODYS, content);
                    params.custom_extensions.push(extension);
                }
                let certificate = params.signed_by(&key, &issuer).expect(FIXED);
                Identity::from_der(vec![certificate.der().to_vec()], key.serialize_der())
                    .expect(FIXED)
            })
            .collect();
        Self { trust: Trust::roots_from_pem(root.pem().as_bytes()).expect(FIXED), identities }
    }

    /// Returns the trust that all hosts share.
    pub fn trust(&self) -> Trust {
        self.trust.clone()
    }

    /// Returns the identity of a host.
    pub fn identity(&self, host: HostId) -> Identity {
        self.identities[host.0 as usize].clone()
    }

    /// The host whose certificate this is (DER).
    pub fn owner(&self, certificate: &[u8]) -> Option<HostId> {
        let owns = |identity: &Identity| identity.certificates().next() == Some(certificate);
        let host = self.identities.iter().position(owns)?;
        Some(HostId(host as u32))
    }
}

/// The name that a host is called by.
pub(crate) fn name(host: HostId) -> String {
    format!("host-{}.sim", host.0)
}

/// The date of all simulations, by which the certificates are valid.
pub(crate) const DATE: Duration = Duration::from_secs(1_800_000_000);

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let year = Duration::from_secs(365 * 86_400);
    params.not_before = (SystemTime::UNIX_EPOCH + DATE - year).into();
    params.not_after = (SystemTime::UNIX_EPOCH + DATE + year).into();
    params
}

/// An Ed25519 key whose seed is the host's number (PKCS#8, RFC 8410 §7).
fn key(host: u32) -> KeyPair {
    let mut der = vec![
        0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    der.extend_from_slice(&[0x5A; 28]);
    der.extend_from_slice(&host.to_be_bytes());
    KeyPair::try_from(der).expect(FIXED)
}

/// An extension that nobody knows and that is not critical (2.25: UUIDs as OIDs).
const NOBODYS: [u64; 3] = [2, 25, 0x5A5A_5A5A];
const FIXED: &str = "the same bytes as in every run";
