// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam to the cryptographic library: its hashes, and HKDF on top of them (RFC 5869).
//!
//! 1. A [`HashProvider`] hashes and authenticates; it may bring a faster HKDF-Expand.
//! 2. A [`Prk`] gives keys and later secrets by HKDF-Expand-Label (RFC 8446 §7.1).
//!
//! Hashing cannot fail: an implementation has its state on the stack. In a kernel that is the
//! kernel's own library function, or a hash in plain Rust.

use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use crate::suite::Suite;

/// The hash of a suite, by which its secrets are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

impl HashAlgorithm {
    /// Bytes of the output.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// Hashes for the key schedule; implemented once per cryptographic library.
pub trait HashProvider: Send + Sync {
    /// SHA-256 of the parts, one after the other.
    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32];

    /// HMAC of the parts, one after the other, under a key of any length.
    ///
    /// # Panics
    /// If `out` is not [`HashAlgorithm::output_len`] bytes long.
    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]], out: &mut [u8]);

    /// HKDF-Expand (RFC 5869 §2.3) of `prk`, with the parts of `info` one after the other; fills
    /// `out`. The default is made of [`Self::hmac`].
    ///
    /// # Panics
    /// If `prk` is longer than 64 bytes, or `out` longer than 255 outputs of the hash.
    fn hkdf_expand(&self, algorithm: HashAlgorithm, prk: &[u8], info: &[&[u8]], out: &mut [u8]) {
        let length = algorithm.output_len();
        assert!(out.len() <= 255 * length, "HKDF-Expand has 255 blocks");
        let mut before = Zeroizing::new([0; OUTPUT_LEN_MAX]);
        let mut block = Zeroizing::new([0; OUTPUT_LEN_MAX]);
        for (number, out) in (1..=255_u8).zip(out.chunks_mut(length)) {
            let before_len = if number == 1 { 0 } else { length };
            let mut parts = Vec::with_capacity(info.len() + 2);
            parts.push(&before[..before_len]);
            parts.extend_from_slice(info);
            let number = [number];
            parts.push(&number);
            self.hmac(algorithm, prk, &parts, &mut block[..length]);
            out.copy_from_slice(&block[..out.len()]);
            *before = *block;
        }
    }
}

/// A pseudorandom key of HKDF: a traffic secret, or what a secret was extracted to.
#[derive(Clone, Copy)]
pub struct Prk<'a> {
    provider: &'a dyn HashProvider,
    algorithm: HashAlgorithm,
    key: &'a [u8],
}

impl<'a> Prk<'a> {
    /// A secret of `suite` as a key of its hash.
    pub fn new(provider: &'a dyn HashProvider, suite: Suite, key: &'a [u8]) -> Self {
        let algorithm = suite.hash();
        Self { provider, algorithm, key }
    }

    /// HKDF-Expand-Label of RFC 8446 §7.1; fills `out`.
    ///
    /// # Panics
    /// If the key is longer than 64 bytes, `label` longer than 249, `context` longer than 255, or
    /// `out` longer than 255 hashes: all of them are constants of the specification.
    pub fn expand_label(&self, label: &str, context: &[u8], out: &mut [u8]) {
        let out_length = u16::try_from(out.len()).expect("documented under Panics");
        let label_length =
            u8::try_from(PREFIX.len() + label.len()).expect("documented under Panics");
        let context_length = u8::try_from(context.len()).expect("documented under Panics");
        let info = [
            &out_length.to_be_bytes()[..],
            &[label_length],
            PREFIX,
            label.as_bytes(),
            &[context_length],
            context,
        ];
        self.provider.hkdf_expand(self.algorithm, self.key, &info, out);
    }
}

/// No byte of the key.
impl fmt::Debug for Prk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prk").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// The pseudorandom key of HKDF-Extract (RFC 5869 §2.2): as many bytes as the hash has.
pub(crate) struct Extracted<'a> {
    provider: &'a dyn HashProvider,
    algorithm: HashAlgorithm,
    key: Zeroizing<[u8; OUTPUT_LEN_MAX]>,
}

impl<'a> Extracted<'a> {
    pub(crate) fn new(
        provider: &'a dyn HashProvider,
        algorithm: HashAlgorithm,
        salt: &[u8],
        secret: &[u8],
    ) -> Self {
        let mut key = Zeroizing::new([0; OUTPUT_LEN_MAX]);
        let out = &mut key[..algorithm.output_len()];
        provider.hmac(algorithm, salt, &[secret], out);
        Self { provider, algorithm, key }
    }

    pub(crate) fn prk(&self) -> Prk<'_> {
        Prk {
            provider: self.provider,
            algorithm: self.algorithm,
            key: &self.key[..self.algorithm.output_len()],
        }
    }
}

/// The longest output is SHA-384's.
const OUTPUT_LEN_MAX: usize = 48;

const PREFIX: &[u8] = b"tls13 ";

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use super::*;
    use crate::aws_lc::AwsLc;
    use crate::testing::hex;

    /// The library's HMAC under the default HKDF-Expand.
    struct HmacAlone;

    impl HashProvider for HmacAlone {
        fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
            AwsLc.sha256(parts)
        }

        fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]], out: &mut [u8]) {
            AwsLc.hmac(algorithm, key, parts, out);
        }
    }

    const PROVIDERS: [&dyn HashProvider; 2] = [&AwsLc, &HmacAlone];

    mod hkdf_expand {
        use super::*;

        #[test]
        fn the_default_gives_what_the_library_gives() {
            for algorithm in [HashAlgorithm::Sha256, HashAlgorithm::Sha384] {
                let length = algorithm.output_len();
                for out_len in [0, 1, 12, 31, 32, 33, 48, 49, 96, 97, 255 * length] {
                    let [library, default] = PROVIDERS.map(|provider| {
                        let mut out = vec![0; out_len];
                        provider.hkdf_expand(algorithm, &[7; 48], &[b"in", b"", b"fo"], &mut out);
                        out
                    });
                    assert_eq!(library, default, "{algorithm:?}, {out_len}");
                }
            }
        }
    }

    mod extract {
        use super::*;

        /// RFC 5869, Appendix A.1 and A.3.
        #[test]
        fn gives_the_keys_of_rfc_5869() {
            let cases = [
                (
                    &hex("000102030405060708090a0b0c")[..],
                    "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
                ),
                (&[], "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04"),
            ];
            for (salt, prk) in cases {
                let secret = [0x0B; 22];
                let extracted = Extracted::new(&AwsLc, HashAlgorithm::Sha256, salt, &secret);
                assert_eq!(extracted.prk().key, hex(prk));
            }
        }
    }

    mod expand_label {
        use super::*;

        /// RFC 8448 §3: {server} derive write traffic keys for handshake data.
        #[test]
        fn gives_the_keys_of_rfc_8448() {
            let secret = hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
            for provider in PROVIDERS {
                let prk = Prk::new(provider, Suite::Aes128Gcm, &secret);
                let mut key = [0; 16];
                let mut iv = [0; 12];
                prk.expand_label("key", b"", &mut key);
                prk.expand_label("iv", b"", &mut iv);
                assert_eq!(key[..], hex("3fce516009c21727d0f2e4e86ee403bc"));
                assert_eq!(iv[..], hex("5d313eb2671276ee13000b30"));
            }
        }
    }

    mod debug {
        use super::*;

        #[test]
        fn shows_no_byte() {
            let prk = Prk::new(&AwsLc, Suite::Aes256Gcm, b"key");
            assert_eq!(format!("{prk:?}"), "Prk { algorithm: Sha384, .. }");
        }
    }
}
