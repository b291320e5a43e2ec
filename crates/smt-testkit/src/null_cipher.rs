// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No encryption, for scale: bytes stay as they are, and the tag only tells which key and number
//! they belong to.
//!
//! It has no suite number. An endpoint gets it from [`smt_proto::Endpoint::set_aead_provider`].

use smt_record::{Aead, AeadProvider, OpenFailed, Suite, Unavailable};
use smt_wire::TAG_LEN;

/// Makes keys that protect nothing.
#[derive(Clone, Copy, Debug)]
pub struct NullCipher;

impl AeadProvider for NullCipher {
    fn aead(&self, _suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        let name = key
            .iter()
            .chain(&iv)
            .fold(0, |name, byte| mix(name ^ u64::from(*byte)).wrapping_add(u64::from(*byte) + 1));
        Ok(Box::new(NullAead { name }))
    }
}

/// Spreads the bits of a number (SplitMix64).
fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

struct NullAead {
    name: u64,
}

impl NullAead {
    fn tag(&self, number: u64) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        tag[..8].copy_from_slice(&self.name.to_be_bytes());
        tag[8..].copy_from_slice(&number.to_be_bytes());
        tag
    }
}

impl Aead for NullAead {
    fn seal(
        &self,
        number: u64,
        _aad: &[u8],
        _plaintext_in_place: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        Ok(self.tag(number))
    }

    fn seal_scatter(
        &self,
        number: u64,
        _aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        let (body_out, rest) = out.split_at_mut(body.len());
        let (tail_out, tag_out) = rest.split_at_mut(tail.len());
        body_out.copy_from_slice(body);
        tail_out.copy_from_slice(tail);
        tag_out.copy_from_slice(&self.tag(number));
        Ok(())
    }

    fn open(
        &self,
        number: u64,
        _aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        if *tag != self.tag(number) {
            return Err(OpenFailed::Forged);
        }
        out.copy_from_slice(ciphertext);
        Ok(())
    }

    fn open_in_place(
        &self,
        number: u64,
        _aad: &[u8],
        ciphertext_and_tag: &mut [u8],
    ) -> Result<(), OpenFailed> {
        match ciphertext_and_tag.last_chunk::<TAG_LEN>() {
            Some(tag) if *tag == self.tag(number) => Ok(()),
            _ => Err(OpenFailed::Forged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_number_open() {
        let aead = |key| NullCipher.aead(Suite::Aes128Gcm, &[key; 16], [1; 12]).unwrap();
        let mut sealed = b"text".to_vec();
        let tag = aead(1).seal(7, &[], &mut sealed).unwrap();
        sealed.extend_from_slice(&tag);
        assert!(aead(1).open_in_place(7, &[], &mut sealed).is_ok());
        assert!(aead(1).open_in_place(8, &[], &mut sealed).is_err());
        assert!(aead(2).open_in_place(7, &[], &mut sealed).is_err());
        assert!(aead(1).open_in_place(7, &[], &mut sealed[..10]).is_err());
    }
}
