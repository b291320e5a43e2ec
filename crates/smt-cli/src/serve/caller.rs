// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The caller of a request: its address, and what the certificate says that it has shown.

use std::collections::HashMap;
use std::net::SocketAddr;
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
    /// Names in its certificate.
    pub(super) names: Vec<String>,
    /// SHA-256 of the public key that it has shown in the place of a certificate, in hexadecimal.
    pub(super) public_key: Option<String>,
}

impl Caller {
    /// Reads its certificate. Control characters of the names are escaped.
    pub(super) fn of(peer: &Peer) -> Self {
        let leaf = peer.certificates.first();
        let text = leaf.and_then(|leaf| CertificateText::from_der(leaf).ok());
        let (subject, names) = match text {
            Some(text) => (Some(text.subject), text.names),
            None => (None, Vec::new()),
        };
        Self {
            address: peer.address,
            subject,
            names,
            public_key: peer.public_key.as_deref().map(fingerprint),
        }
    }

    /// The name by which people know it: the first in its certificate, or else the subject, or
    /// else its key's hash.
    pub(super) fn name(&self) -> Option<&str> {
        let first = self.names.first().or(self.subject.as_ref());
        first.or(self.public_key.as_ref()).map(String::as_str)
    }

    /// Its SPIFFE ID: the only URI of its certificate, as SPIFFE wants it.
    pub(super) fn spiffe_id(&self) -> Option<&str> {
        let mut uris = self.names.iter().filter(|name| name.contains("://"));
        let only = uris.next().filter(|_| uris.next().is_none());
        only.filter(|uri| uri.starts_with("spiffe://")).map(String::as_str)
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

    fn caller(names: &[&str]) -> Caller {
        Caller {
            address: ([127, 0, 0, 1], 1).into(),
            subject: Some("CN=alice".to_owned()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            public_key: None,
        }
    }

    #[test]
    fn a_caller_is_known_by_its_first_name_or_its_subject() {
        assert_eq!(caller(&["a.example", "b"]).name(), Some("a.example"));
        assert_eq!(caller(&[]).name(), Some("CN=alice"));
    }

    #[test]
    fn an_identity_of_spiffe_is_the_only_uri() {
        for (names, id) in [
            (&["a", "spiffe://x/y"][..], Some("spiffe://x/y")),
            (&["spiffe://x/y", "spiffe://x/z"], None),
            (&["spiffe://x/y", "https://z"], None),
            (&["https://z"], None),
            (&[], None),
        ] {
            assert_eq!(caller(names).spiffe_id(), id, "{names:?}");
        }
    }
}
