// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keyed hashing for what a host says to itself: cookies (SPEC §6.4), reset tokens (§12.1), the
//! salt of its tables.
//!
//! Flow: 1. HKDF makes independent keys from one seed: for reset tokens, for each generation of
//! cookies, for tables
//! 2. HMAC-SHA256, cut to 16 bytes.
//! No clock and no randomness here: the core builds the messages, the time in them included, and
//! compares. The reset tokens of a host live as long as its seed; for tokens that outlive a
//! restart the application keeps the seed in a durable and secret place.

use std::fmt;

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use smt_proto::key_exchange::{MacPurpose, TokenMac};
use zeroize::Zeroizing;

/// MACs for cookies, reset tokens and tables, with a key of its own for each.
pub struct HmacTokens {
    /// Cookie keys come from it as their generation begins, and are not kept.
    prk: Prk,
    reset: Key,
}

impl HmacTokens {
    /// From a secret seed of full entropy. The same seed gives the same tokens.
    pub fn new(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        let prk = Salt::new(HKDF_SHA256, SALT).extract(seed.as_ref());
        Self { reset: key(&prk, &[b"reset"]), prk }
    }
}

impl TokenMac for HmacTokens {
    fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16] {
        let mut context = match purpose {
            MacPurpose::Cookie { generation } => {
                Context::with_key(&key(&self.prk, &[b"cookie", &generation.to_be_bytes()]))
            }
            MacPurpose::Reset => Context::with_key(&self.reset),
            MacPurpose::Tables => Context::with_key(&key(&self.prk, &[b"tables"])),
        };
        for part in message {
            context.update(part);
        }
        let tag = context.sign();
        let mut token = [0; 16];
        token.copy_from_slice(&tag.as_ref()[..16]);
        token
    }
}

impl fmt::Debug for HmacTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacTokens(..)")
    }
}

fn key(prk: &Prk, purpose: &[&[u8]]) -> Key {
    let mut bytes = Zeroizing::new([0; 32]);
    prk.expand(purpose, HKDF_SHA256)
        .and_then(|okm| okm.fill(bytes.as_mut()))
        .expect("32 bytes are one block of HKDF-SHA256");
    Key::new(HMAC_SHA256, bytes.as_ref())
}

/// Keeps these keys apart from anything else that is made from the same seed.
const SALT: &[u8] = b"smt-1 host tokens";

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: [u8; 32] = [7; 32];
    const COOKIE: MacPurpose = MacPurpose::Cookie { generation: 7 };

    mod mac {
        use super::*;

        #[test]
        fn is_the_same_for_the_same_seed_and_message() {
            let [one, two] = [HmacTokens::new(SEED), HmacTokens::new(SEED)];
            let token = one.mac(COOKIE, &[b"ab", b"c"]);
            assert_eq!(token, two.mac(COOKIE, &[b"abc"]));
        }

        // SMT [12.1-1]
        #[test]
        fn differs_by_purpose_seed_and_message() {
            let tokens = HmacTokens::new(SEED);
            let token = tokens.mac(COOKIE, &[b"abc"]);
            assert_ne!(token, tokens.mac(MacPurpose::Reset, &[b"abc"]));
            assert_ne!(token, tokens.mac(MacPurpose::Tables, &[b"abc"]));
            assert_ne!(token, tokens.mac(COOKIE, &[b"abd"]));
            for purpose in [COOKIE, MacPurpose::Reset, MacPurpose::Tables] {
                let of_others = HmacTokens::new([8; 32]).mac(purpose, &[b"abc"]);
                assert_ne!(tokens.mac(purpose, &[b"abc"]), of_others);
            }
        }

        #[test]
        fn of_cookies_has_a_new_key_in_each_generation() {
            let tokens = HmacTokens::new(SEED);
            let next = MacPurpose::Cookie { generation: 8 };
            assert_ne!(tokens.mac(COOKIE, &[b"abc"]), tokens.mac(next, &[b"abc"]));
        }

        #[test]
        fn is_hkdf_and_hmac_sha256_as_documented() {
            // Computed with Python's hmac and hashlib from the definition.
            let token = HmacTokens::new(SEED).mac(MacPurpose::Reset, &[b"abc"]);
            assert_eq!(token, PYTHON_RESET);
        }

        const PYTHON_RESET: [u8; 16] = [
            0x57, 0xD7, 0x57, 0xFF, 0x87, 0x0A, 0xCD, 0x29, 0x61, 0x74, 0x37, 0x47, 0xBE, 0xA0,
            0x9C, 0xB4,
        ];
    }

    mod debug {
        use super::*;

        #[test]
        fn no_key_is_shown() {
            assert_eq!(format!("{:?}", HmacTokens::new(SEED)), "HmacTokens(..)");
        }
    }
}
