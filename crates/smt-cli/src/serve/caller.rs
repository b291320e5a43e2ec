// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The caller of a request: its address, and what the certificate says that it has shown.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use smt::Peer;
use smt::pki::CertificateText;

use crate::fingerprint::fingerprint;

/// A caller, as far as the server knows it.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    /// Subject of its certificate.
    pub(super) subject: Option<String>,
    /// Serial number of its certificate, in hexadecimal.
    pub(super) serial: Option<String>,
    /// DNS names and IP addresses in its certificate.
    pub(super) names: Vec<String>,
    /// URIs in its certificate.
    pub(super) uris: Vec<String>,
    /// The SPIFFE ID that its certificate proves.
    pub(super) spiffe_id: Option<String>,
    /// SHA-256 of the public key that it has shown in the place of a certificate, in hexadecimal.
    pub(super) public_key: Option<String>,
}

impl Caller {
    /// Reads its certificate. Each kind of name stands for itself: a DNS name that looks like a URI
    /// is none.
    pub(super) fn of(peer: &Peer) -> Self {
        let leaf = peer.certificates.first();
        let text = leaf.and_then(|leaf| CertificateText::from_der(leaf).ok());
        let (subject, serial) = text.map(|text| (text.subject, text.serial)).unzip();
        let mut names = Vec::new();
        let mut uris = Vec::new();
        if let Some(certificate) = peer.certificate() {
            names.clone_from(&certificate.dns_names);
            names.extend(certificate.ip_addresses.iter().map(IpAddr::to_string));
            uris.clone_from(&certificate.uris);
        }
        Self {
            address: peer.address,
            subject,
            serial,
            names,
            uris,
            spiffe_id: peer.spiffe_id().map(str::to_owned),
            public_key: peer.public_key.as_deref().map(fingerprint),
        }
    }

    /// The name by which people know it: the first in its certificate, or else the subject, or
    /// else its key's hash.
    pub(super) fn name(&self) -> Option<&str> {
        let first = self.names.first().or_else(|| self.uris.first()).or(self.subject.as_ref());
        first.or(self.public_key.as_ref()).map(String::as_str)
    }
}

/// The callers that a worker has met, by session: a certificate is read once.
#[derive(Debug, Default)]
pub(super) struct Callers {
    of: HashMap<u64, Arc<Caller>>,
}

impl Callers {
    /// The caller of this session.
    pub(super) fn of(&mut self, session: u64, peer: &Peer) -> Arc<Caller> {
        if self.of.len() >= KEPT && !self.of.contains_key(&session) {
            self.of.clear();
        }
        let of_session = self.of.entry(session);
        Arc::clone(of_session.or_insert_with(|| Arc::new(Caller::of(peer))))
    }
}

/// Callers that are kept: few KB each, and a certificate is read in some microseconds.
const KEPT: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_known_by_its_first_name_or_its_subject() {
        let caller = |names: &[&str], uris: &[&str]| Caller {
            address: ([127, 0, 0, 1], 1).into(),
            subject: Some("CN=alice".to_owned()),
            serial: None,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
            spiffe_id: None,
            public_key: None,
        };
        assert_eq!(caller(&["a.example", "b"], &["urn:c"]).name(), Some("a.example"));
        assert_eq!(caller(&[], &["urn:c"]).name(), Some("urn:c"));
        assert_eq!(caller(&[], &[]).name(), Some("CN=alice"));
    }
}
