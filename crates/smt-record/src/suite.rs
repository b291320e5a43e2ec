// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cipher suites of SMT: the three of TLS 1.3 that SPEC §5.1 names.
//!
//! When you add a suite, also change `aws_lc.rs` (the AEAD), `hash.rs` (the hash), SPEC
//! §5.1 and §7.3 (integrity limit), and the generator of `vectors/`.

use core::fmt;

use crate::hash::HashAlgorithm;

/// An AEAD with its hash, by the name and number that TLS 1.3 gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// `TLS_AES_128_GCM_SHA256`, 0x1301.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`, 0x1302.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`, 0x1303.
    ChaCha20Poly1305,
}

impl Suite {
    /// Every suite, in the order of the TLS numbers.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// The suite of a TLS number, if it is one of SMT's.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.code() == code)
    }

    /// The TLS number.
    pub const fn code(self) -> u16 {
        match self {
            Self::Aes128Gcm => 0x1301,
            Self::Aes256Gcm => 0x1302,
            Self::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// Bytes of the AEAD's key.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// The hash that its secrets are derived by.
    pub const fn hash(self) -> HashAlgorithm {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => HashAlgorithm::Sha256,
            Self::Aes256Gcm => HashAlgorithm::Sha384,
        }
    }

    /// Bytes of the hash's output, which is the length of every secret.
    pub const fn hash_len(self) -> usize {
        self.hash().output_len()
    }

    /// Failed openings after which a key must not open anything more (SPEC §7.3).
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod from_code {
        use super::*;

        #[test]
        fn every_suite_has_its_own_number() {
            for suite in Suite::ALL {
                assert_eq!(Suite::from_code(suite.code()), Some(suite));
            }
        }

        // SMT [5.1-5]
        #[test]
        fn other_numbers_are_no_suite() {
            for code in [0, 0x1300, 0x1304, 0x1305, 0xC02F, 0xFFFF] {
                assert_eq!(Suite::from_code(code), None);
            }
        }
    }
}
