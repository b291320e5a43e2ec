// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The AEADs of aws-lc-rs behind [`Aead`], and its hashes behind [`HashProvider`].
//!
//! `LessSafeKey` is used because SMT's numbers are composite and not used in rising order; keys
//! with a built-in counter refuse that. [`crate::OutgoingId`] makes each number unique. Sealing
//! cannot fail here: the library refuses only inputs beyond 2^36 bytes.

use alloc::boxed::Box;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::{digest, hkdf, hmac};
use smt_wire::TAG_LEN;
use zeroize::Zeroizing;

use crate::aead::{Aead, AeadProvider, OpenFailed, Unavailable, nonce};
use crate::hash::{HashAlgorithm, HashProvider};
use crate::suite::Suite;

/// The library aws-lc: the default [`AeadProvider`] and [`HashProvider`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AwsLc;

impl AeadProvider for AwsLc {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        let unbound = UnboundKey::new(algorithm(suite), key)
            .expect("the key is as long as its suite says: documented under Panics");
        Ok(Box::new(AwsLcAead { key: LessSafeKey::new(unbound), iv: Zeroizing::new(iv) }))
    }
}

struct AwsLcAead {
    /// The library clears the key's memory when it is dropped.
    key: LessSafeKey,
    iv: Zeroizing<[u8; 12]>,
}

impl AwsLcAead {
    fn nonce(&self, number: u64) -> Nonce {
        Nonce::assume_unique_for_key(nonce(&self.iv, number))
    }
}

impl Aead for AwsLcAead {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext_in_place: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(aad), plaintext_in_place)
            .expect(SEAL_CANNOT_FAIL);
        let tag = tag.as_ref().try_into();
        Ok(tag.expect("every suite has a 16-byte tag"))
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        assert_length(out, body.len() + tail.len() + TAG_LEN);
        let (ciphertext, tail_and_tag) = out.split_at_mut(body.len());
        let nonce = self.nonce(number);
        self.key
            .seal_out_of_place_scatter(nonce, Aad::from(aad), body, ciphertext, tail, tail_and_tag)
            .expect(SEAL_CANNOT_FAIL);
        Ok(())
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        assert_length(out, ciphertext.len());
        self.key
            .open_separate_gather(self.nonce(number), Aad::from(aad), ciphertext, tag, out)
            .map_err(|_| OpenFailed::Forged)
    }

    fn open_in_place(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext_and_tag: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.key
            .open_in_place(self.nonce(number), Aad::from(aad), ciphertext_and_tag)
            .map(|_| ())
            .map_err(|_| OpenFailed::Forged)
    }
}

impl HashProvider for AwsLc {
    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        parts.iter().for_each(|part| context.update(part));
        let hash = context.finish();
        hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]], out: &mut [u8]) {
        let algorithm = hkdf_algorithm(algorithm).hmac_algorithm();
        let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm, key));
        parts.iter().for_each(|part| context.update(part));
        out.copy_from_slice(context.sign().as_ref());
    }

    fn hkdf_expand(&self, algorithm: HashAlgorithm, prk: &[u8], info: &[&[u8]], out: &mut [u8]) {
        hkdf::Prk::new_less_safe(hkdf_algorithm(algorithm), prk)
            .expand(info, OutputLength(out.len()))
            .and_then(|okm| okm.fill(out))
            .expect("documented under Panics");
    }
}

fn hkdf_algorithm(algorithm: HashAlgorithm) -> hkdf::Algorithm {
    match algorithm {
        HashAlgorithm::Sha256 => hkdf::HKDF_SHA256,
        HashAlgorithm::Sha384 => hkdf::HKDF_SHA384,
    }
}

struct OutputLength(usize);

impl hkdf::KeyType for OutputLength {
    fn len(&self) -> usize {
        self.0
    }
}

/// The library would call it a failed operation, which it is not.
fn assert_length(out: &[u8], length: usize) {
    assert_eq!(out.len(), length, "out holds the result");
}

fn algorithm(suite: Suite) -> &'static Algorithm {
    match suite {
        Suite::Aes128Gcm => &AES_128_GCM,
        Suite::Aes256Gcm => &AES_256_GCM,
        Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    }
}

const SEAL_CANNOT_FAIL: &str = "a record is far below the AEAD's length limit";

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const NUMBER: u64 = 0x1234_0005;
    const AAD: &[u8] = &[0x17, 3, 3, 0, 64];

    fn aead(suite: Suite) -> Box<dyn Aead> {
        let key = vec![9; suite.key_len()];
        AwsLc.aead(suite, &key, [3; 12]).unwrap()
    }

    fn sealed(suite: Suite, plaintext: &[u8]) -> Vec<u8> {
        let mut bytes = plaintext.to_vec();
        let tag = aead(suite).seal(NUMBER, AAD, &mut bytes).unwrap();
        bytes.extend_from_slice(&tag);
        bytes
    }

    mod seal_scatter {
        use super::*;

        #[test]
        fn gives_the_bytes_of_seal() {
            let plaintext: Vec<u8> = (0..=255).cycle().take(1000).collect();
            for suite in Suite::ALL {
                for split in [0, 1, 16, 500, 999, 1000] {
                    let (body, tail) = plaintext.split_at(split);
                    let mut out = vec![0; plaintext.len() + TAG_LEN];
                    let sealing = aead(suite).seal_scatter(NUMBER, AAD, body, tail, &mut out);
                    assert_eq!(sealing, Ok(()));
                    assert_eq!(out, sealed(suite, &plaintext), "{suite} split at {split}");
                }
            }
        }
    }

    mod open {
        use super::*;

        #[test]
        fn gives_the_plaintext_back() {
            for suite in Suite::ALL {
                for len in [0, 1, 64, 16_385] {
                    let plaintext = vec![5; len];
                    let mut bytes = sealed(suite, &plaintext);
                    let (ciphertext, tag) = bytes.split_at(len);
                    let mut out = vec![0; len];
                    let opened = aead(suite).open(
                        NUMBER,
                        AAD,
                        ciphertext,
                        tag.try_into().unwrap(),
                        &mut out,
                    );
                    assert_eq!((opened, &out), (Ok(()), &plaintext));
                    assert_eq!(aead(suite).open_in_place(NUMBER, AAD, &mut bytes), Ok(()));
                    assert_eq!(bytes[..len], plaintext);
                }
            }
        }

        #[test]
        fn any_flipped_bit_fails_and_shows_no_plaintext() {
            for suite in Suite::ALL {
                let good = sealed(suite, &[0xAA; 40]);
                for bit in 0..good.len() * 8 {
                    let mut bytes = good.clone();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    let (ciphertext, tag) = bytes.split_at(40);
                    let mut out = [0; 40];
                    let tag = tag.try_into().unwrap();
                    let opened = aead(suite).open(NUMBER, AAD, ciphertext, tag, &mut out);
                    assert_eq!(opened, Err(OpenFailed::Forged));
                    assert!(!out.contains(&0xAA), "plaintext in {out:?}");
                    assert_eq!(
                        aead(suite).open_in_place(NUMBER, AAD, &mut bytes),
                        Err(OpenFailed::Forged)
                    );
                    assert!(!bytes[..8].iter().all(|byte| *byte == 0xAA));
                }
            }
        }

        #[test]
        fn another_number_or_aad_fails() {
            for suite in Suite::ALL {
                let good = sealed(suite, &[1; 64]);
                for bit in 0..64 {
                    let number = NUMBER ^ (1 << bit);
                    assert!(aead(suite).open_in_place(number, AAD, &mut good.clone()).is_err());
                }
                let aad = [0x17, 3, 3, 0, 65];
                assert!(aead(suite).open_in_place(NUMBER, &aad, &mut good.clone()).is_err());
            }
        }

        #[test]
        fn fewer_bytes_than_a_tag_fail() {
            for suite in Suite::ALL {
                for len in 0..TAG_LEN {
                    let mut bytes = vec![0; len];
                    assert!(aead(suite).open_in_place(NUMBER, AAD, &mut bytes).is_err());
                }
            }
        }
    }
}
