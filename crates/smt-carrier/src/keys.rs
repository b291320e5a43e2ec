// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of a carrier that seals records itself, and the records that it seals.

use core::ops::Range;
use thiserror::Error;

/// The keys that a carrier seals records with.
///
/// A key is installed when it comes into use, and removed when no record will be sealed with it any
/// more.
pub trait KeyStore: Send + Sync {
    /// Gives the carrier a sending key: the cipher suite's code of TLS 1.3, its key and its IV.
    ///
    /// # Errors
    /// The store is full, or does not know the suite. Records under this key are then sealed before
    /// they come to the carrier.
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom>;

    /// Takes a key back; a key that is not there is no error. No batch names the handle any more.
    fn remove(&self, key: KeyHandle);
}

/// A key in a [`KeyStore`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyHandle(pub u64);

/// A [`KeyStore`] takes no key of this kind at present.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the carrier takes no key of this kind at present")]
pub struct NoRoom;

/// A record in a batch that the carrier seals, in place.
///
/// The five bytes before `at` are the record's header, which is the additional data of the cipher.
/// The sixteen bytes behind the record are room for its tag. The carrier seals a record whenever
/// the batch names it: two batches may have the same record, and then have the same bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unsealed {
    /// Where its plaintext begins in the bytes of the batch; at least 5.
    pub at: u32,
    /// Bytes of its plaintext.
    pub length: u32,
    /// The key.
    pub key: KeyHandle,
    /// The record number: with the key's IV it is the nonce, as in TLS 1.3.
    pub number: u64,
}

impl Unsealed {
    /// Where the record's header is in the bytes of the batch.
    ///
    /// # Panics
    /// If `at` is below 5: the caller's mistake.
    #[must_use]
    pub fn header(&self) -> Range<usize> {
        let at = self.at as usize;
        assert!(at >= HEADER_BYTES, "a record has its header before it");
        at - HEADER_BYTES..at
    }

    /// Where the record's plaintext is in the bytes of the batch.
    #[must_use]
    pub fn body(&self) -> Range<usize> {
        let at = self.at as usize;
        at..at + self.length as usize
    }
}

/// Bytes of a record's header.
const HEADER_BYTES: usize = 5;
/// Bytes of a record's tag.
pub const TAG_BYTES: usize = 16;
