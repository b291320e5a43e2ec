// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The null cipher: plaintext unchanged, 16 zeros as tag.
//!
//! It has no suite number and no key, and protects nothing. There are two ways to it:
//! 1. [`crate::SessionSecrets::plaintext`], whose secrets carry no bytes: the measurement version
//!    (SPEC §14), which shows what encryption costs.
//! 2. [`crate::SealKeys::leave_records_to_packets`] and its counterpart: the carrier seals the
//!    packets in which the records lie (SPEC §15.4). Control packets keep their own cipher.
//!
//! Readers of captures borrow it ([`null_cipher`]) for records of the second kind.

use smt_wire::TAG_LEN;

use crate::aead::{Aead, OpenFailed, Unavailable};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaintextAead;

/// The null cipher itself, for those who borrow one.
pub(crate) static PLAINTEXT: PlaintextAead = PlaintextAead;

/// The cipher of records without a seal, for a reader of captures that has opened the packets in
/// which they lie (SPEC §15.4). It proves nothing: what it opens is as authentic as its packet was.
#[must_use]
pub fn null_cipher() -> &'static dyn Aead {
    &PLAINTEXT
}

impl Aead for PlaintextAead {
    fn seal(
        &self,
        _number: u64,
        _aad: &[u8],
        _plaintext_in_place: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        Ok([0; TAG_LEN])
    }

    fn seal_scatter(
        &self,
        _number: u64,
        _aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        let (body_out, rest) = out.split_at_mut(body.len());
        let (tail_out, tag_out) = rest.split_at_mut(tail.len());
        body_out.copy_from_slice(body);
        tail_out.copy_from_slice(tail);
        tag_out.copy_from_slice(&[0; TAG_LEN]);
        Ok(())
    }

    fn open(
        &self,
        _number: u64,
        _aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        if *tag != [0; TAG_LEN] {
            return Err(OpenFailed::Forged);
        }
        out.copy_from_slice(ciphertext);
        Ok(())
    }

    fn open_in_place(
        &self,
        _number: u64,
        _aad: &[u8],
        ciphertext_and_tag: &mut [u8],
    ) -> Result<(), OpenFailed> {
        match ciphertext_and_tag.last_chunk::<TAG_LEN>() {
            Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) => Ok(()),
            _ => Err(OpenFailed::Forged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod open {
        use super::*;

        // SMT [14-3]
        #[test]
        fn zeros_as_tag_are_accepted_and_nothing_else() {
            let mut out = [0; 3];
            let mut tag = [0; TAG_LEN];
            assert_eq!(PlaintextAead.open(1, b"", b"abc", &tag, &mut out), Ok(()));
            assert_eq!(&out, b"abc");
            tag[15] = 1;
            assert_eq!(PlaintextAead.open(1, b"", b"abc", &tag, &mut out), Err(OpenFailed::Forged));
            assert_eq!(PlaintextAead.open_in_place(1, b"", &mut [0; 15]), Err(OpenFailed::Forged));
            assert_eq!(PlaintextAead.open_in_place(1, b"", &mut tag), Err(OpenFailed::Forged));
        }
    }

    mod seal_scatter {
        use super::*;

        // SMT [14-3]
        #[test]
        fn opens_again() {
            let mut out = [9; 5 + TAG_LEN];
            let sealing = PlaintextAead.seal_scatter(7, b"", b"abc", b"de", &mut out);
            assert_eq!(sealing, Ok(()));
            assert_eq!(PlaintextAead.open_in_place(7, b"", &mut out), Ok(()));
            assert_eq!(&out[..5], b"abcde");
            assert_eq!(PlaintextAead.seal(7, b"", &mut [1, 2]), Ok([0; TAG_LEN]));
        }
    }
}
