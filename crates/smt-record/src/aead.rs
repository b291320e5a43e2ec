// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam to the cryptographic library: one AEAD key with its IV.
//!
//! 1. An [`AeadProvider`] makes an [`Aead`] from a suite, a key and an IV.
//! 2. Every operation takes a 64-bit number; the nonce is IV XOR number, left-padded with zeros
//!    (RFC 8446 §5.3, SPEC §5.1), computed inside.
//!
//! 3. An operation that could not be tried is [`Unavailable`]: a kernel's cipher may lack memory.
//!    It is no forgery, is not counted as one, and the packet is as good as lost.
//!
//! An `Aead` does not count and does not know which numbers were used; [`crate::FrozenMessage`]
//! and [`crate::SealKeys`] see to that.

use alloc::boxed::Box;

use smt_wire::TAG_LEN;

use crate::suite::Suite;

/// One AEAD key with its IV. Shared between threads; every method takes `&self`.
pub trait Aead: Send + Sync {
    /// Encrypts in place and returns the tag.
    ///
    /// # Errors
    /// [`Unavailable`]: the bytes are undefined, and must not be sent.
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext_in_place: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable>;

    /// Encrypts `body || tail` into `out` as ciphertext and tag, without copying `body` first.
    ///
    /// # Errors
    /// [`Unavailable`]: `out` is undefined, and must not be sent.
    ///
    /// # Panics
    /// If `out` is not `body.len() + tail.len() + 16` bytes long.
    #[expect(clippy::too_many_arguments, reason = "an AEAD has that many inputs")]
    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable>;

    /// Decrypts `ciphertext` into `out`, which has the same length.
    ///
    /// # Errors
    /// [`OpenFailed::Forged`] if the tag is wrong. `out` then holds nothing of the plaintext, as
    /// after [`OpenFailed::Unavailable`].
    ///
    /// # Panics
    /// If `out` is not as long as `ciphertext`.
    #[expect(clippy::too_many_arguments, reason = "an AEAD has that many inputs")]
    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed>;

    /// Decrypts `ciphertext || tag` in place; the plaintext is all but the last 16 bytes.
    ///
    /// # Errors
    /// [`OpenFailed::Forged`] if the tag is wrong or there are fewer than 16 bytes. The buffer then
    /// holds nothing of the plaintext, as after [`OpenFailed::Unavailable`].
    fn open_in_place(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext_and_tag: &mut [u8],
    ) -> Result<(), OpenFailed>;
}

/// Makes AEAD keys; implemented once per cryptographic library.
pub trait AeadProvider: Send + Sync {
    /// The AEAD of `suite` under `key` and `iv`.
    ///
    /// # Errors
    /// [`Unavailable`]; it is asked for again when the key is needed again.
    ///
    /// # Panics
    /// If `key` is not [`Suite::key_len`] bytes long.
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable>;
}

/// Nothing was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenFailed {
    /// The tag does not fit: forged, damaged, or of another key, number or place.
    #[error("bytes from the network do not authenticate under this key and number: drop them")]
    Forged,
    /// The tag was not looked at.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The cryptographic library could not try, for lack of memory or of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cryptographic library could not try, for lack of memory or of a device: try later")]
pub struct Unavailable;

/// A key cannot be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// There is no such epoch, not yet or no longer, or its key is worn out.
    #[error("no key of that epoch can be used: drop the packet")]
    NoSuchEpoch,
    /// The key's cipher could not be made.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The nonce of a number: IV XOR number (SPEC §5.1). For implementations of [`Aead`].
pub fn nonce(iv: &[u8; 12], number: u64) -> [u8; 12] {
    let mut nonce = *iv;
    for (byte, part) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= part;
    }
    nonce
}

#[cfg(test)]
mod tests {
    mod nonce {
        use proptest::prelude::*;

        use crate::aead::nonce;

        #[test]
        fn zero_leaves_the_iv() {
            assert_eq!(nonce(&[7; 12], 0), [7; 12]);
        }

        #[test]
        fn number_is_big_endian_at_the_end() {
            let expected = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
            assert_eq!(nonce(&[0; 12], 0x0102_0304_0506_0708), expected);
        }

        proptest! {
            #[test]
            fn different_numbers_give_different_nonces(iv: [u8; 12], a: u64, b: u64) {
                prop_assert_eq!(a == b, nonce(&iv, a) == nonce(&iv, b));
            }
        }
    }
}
