// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which cipher suites and key exchange groups TLS may use, and in which order.
//!
//! Flow: 1. [`Algorithms::default`] or lists of one's own  2. `provider` turns them into a rustls
//! provider on aws-lc-rs. Only TLS 1.3 suites exist here (SPEC §5.1).
//! Not here: signature algorithms; all that webpki checks by default are accepted.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use smt_record::Suite;

use crate::key_pairs::PooledGroup;

/// Suites and groups, preferred first. The server's order decides among the suites in common, the
/// client's among the groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Algorithms {
    /// Cipher suites; they also protect the messages afterwards.
    pub suites: Vec<Suite>,
    /// Key exchange groups.
    pub groups: Vec<Group>,
}

impl Default for Algorithms {
    /// AES-128-GCM first, as the fastest on every CPU with AES instructions; post-quantum first.
    fn default() -> Self {
        Self {
            suites: vec![Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305],
            groups: vec![Group::X25519MlKem768, Group::X25519, Group::P256],
        }
    }
}

impl Algorithms {
    pub(crate) fn provider(&self) -> CryptoProvider {
        CryptoProvider {
            cipher_suites: self.suites.iter().map(|suite| cipher_suite(*suite)).collect(),
            kx_groups: self.groups.iter().map(|group| group.kx_group()).collect(),
            ..default_provider()
        }
    }
}

/// A key exchange group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Group {
    /// X25519 together with ML-KEM-768: safe also against quantum computers to come. About 1.2 KB
    /// more in each direction.
    X25519MlKem768,
    /// X25519.
    X25519,
    /// NIST P-256 (secp256r1).
    P256,
}

impl Group {
    pub(crate) fn kx_group(self) -> &'static dyn SupportedKxGroup {
        self.pool()
    }

    /// The group with the process's pool of its key pairs.
    pub(crate) fn pool(self) -> &'static PooledGroup {
        static X25519_ML_KEM_768: PooledGroup = PooledGroup::new(kx_group::X25519MLKEM768, false);
        static X25519: PooledGroup = PooledGroup::new(kx_group::X25519, true);
        static P256: PooledGroup = PooledGroup::new(kx_group::SECP256R1, true);
        match self {
            Self::X25519MlKem768 => &X25519_ML_KEM_768,
            Self::X25519 => &X25519,
            Self::P256 => &P256,
        }
    }
}

fn cipher_suite(suite: Suite) -> SupportedCipherSuite {
    match suite {
        Suite::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
        Suite::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
        Suite::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod provider {
        use super::*;

        #[test]
        fn order_is_kept_and_every_suite_has_its_tls_number() {
            for suites in [Suite::ALL.to_vec(), Suite::ALL.into_iter().rev().collect()] {
                let algorithms = Algorithms { suites, ..Algorithms::default() };
                let provider = algorithms.provider();
                let codes = provider.cipher_suites.iter().map(|suite| u16::from(suite.suite()));
                let wanted = algorithms.suites.iter().map(|suite| suite.code());
                assert!(codes.eq(wanted));
            }
        }
    }
}
