// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered keys in the key schedule (SPEC §7.2): a secret of the application is imported for one
//! client and one server (RFC 9258), and each session's secrets come from what was imported.
//!
//! 1. [`ImportedIdentity`] says for whom: the key's name, the client and the server.
//! 2. [`ImportedKey::new`] binds the secret to it. The secret itself is not needed any more.
//! 3. [`ImportedKey::session_secrets`] adds the parameter hash, and with it both fresh randoms.
//!
//! A secret that several hosts share so gives each ordered pair of them another key: a session that
//! is turned around, or led to another holder of the secret, has keys of its own.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;

use crate::hash::{Extracted, HashAlgorithm, HashProvider};
use crate::key_schedule::SessionSecrets;
use crate::secret::Secret;
use crate::suite::Suite;

/// For whom a secret is imported. Sides that differ in any of it have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedIdentity<'a> {
    /// The name that the parameters carry (SPEC §6.3, tag 13), at most 65,535 bytes here.
    pub key_name: &'a [u8],
    /// Identity of the side that calls, at most 255 bytes. Never sent.
    pub client: &'a [u8],
    /// Identity of the side that answers, at most 255 bytes. Never sent.
    pub server: &'a [u8],
}

/// A registered key as it is used between one client and one server with suites of one hash.
/// Cleared when dropped, never printed.
pub struct ImportedKey {
    suite: Suite,
    key: Secret,
}

impl ImportedKey {
    /// Imports `secret`, which is a secret of the application, or both keys and IVs of a TLS
    /// session (RFC 9258 §5.1; SPEC §7.2 says where it departs from that).
    ///
    /// # Panics
    /// If a part of `identity` is longer than it may be.
    pub fn new(
        hash: &dyn HashProvider,
        suite: Suite,
        secret: &[u8],
        identity: &ImportedIdentity<'_>,
    ) -> Self {
        let imported_for = hash.sha256(&[&identity.encode(suite)]);
        // SHA-256 whatever the suite's hash is: a secret is used with one hash alone (RFC 9258
        // §5.1).
        let extracted = Extracted::new(hash, HashAlgorithm::Sha256, &[], secret);
        let key = Secret::fill(suite, |out| {
            let prk = extracted.prk();
            prk.expand_label("derived psk", &imported_for, out);
            Ok::<(), Infallible>(())
        });
        match key {
            Ok(key) => Self { suite, key },
            Err(never) => match never {},
        }
    }

    /// The suite of its sessions.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The secrets of one session. The parameter hash holds both fresh randoms, so that no two
    /// sessions share any.
    pub fn session_secrets(
        &self,
        hash: &dyn HashProvider,
        parameter_hash: &[u8; 32],
    ) -> SessionSecrets {
        let key = self.key.as_bytes();
        let extracted = Extracted::new(hash, self.suite.hash(), parameter_hash, key);
        let secrets = SessionSecrets::from_labels(self.suite, LABELS, |out, label| {
            extracted.prk().expand_label(label, parameter_hash, out);
            Ok::<(), Infallible>(())
        });
        match secrets {
            Ok(secrets) => secrets,
            Err(never) => match never {},
        }
    }
}

impl fmt::Debug for ImportedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl ImportedIdentity<'_> {
    /// The structure ImportedIdentity of RFC 9258 §5.1, with the context of its Appendix A. Every
    /// part has its length before it, so that no byte can move from one to another.
    fn encode(&self, suite: Suite) -> Vec<u8> {
        let client_length = u8::try_from(self.client.len()).expect("documented under Panics");
        let server_length = u8::try_from(self.server.len()).expect("documented under Panics");
        let context = [&[client_length], self.client, &[server_length], self.server].concat();
        let name_length = u16::try_from(self.key_name.len()).expect("documented under Panics");
        // At most 2 * 256.
        let context_length = context.len() as u16;
        [
            &name_length.to_be_bytes()[..],
            self.key_name,
            &context_length.to_be_bytes(),
            &context,
            &TARGET_PROTOCOL.to_be_bytes(),
            &target_kdf(suite).to_be_bytes(),
        ]
        .concat()
    }
}

/// The numbers of IANA's registry "TLS KDF Identifiers".
fn target_kdf(suite: Suite) -> u16 {
    match suite.hash() {
        HashAlgorithm::Sha256 => 1,
        HashAlgorithm::Sha384 => 2,
    }
}

/// SMT version 1. TLS 1.3 is 0x0304, DTLS 1.3 is 0xFEFC: a key imported for those is another key.
const TARGET_PROTOCOL: u16 = 0x5301;

const LABELS: [&str; 5] = [
    "smt client data",
    "smt client control",
    "smt server data",
    "smt server control",
    "smt exporter",
];

#[cfg(test)]
mod tests;
