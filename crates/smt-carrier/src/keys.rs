// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of a carrier that seals or opens records itself, and the records that it sealed or opened.

use core::ops::Range;
use thiserror::Error;

/// The keys that a carrier seals and opens records with.
///
/// A key is installed when it comes into use, and removed when no record will be sealed or opened
/// with it any more.
pub trait KeyStore: Send + Sync {
    /// Gives the carrier a sending key: the cipher suite's code of TLS 1.3, its key and its IV. The
    /// handle is new: a batch that waited may name a key that was removed, and must find no other
    /// key in its place.
    ///
    /// # Errors
    /// The store is full, or does not know the suite. Records under this key are then sealed before
    /// they come to the carrier.
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom>;

    /// Gives the carrier a receiving key, under which a record has opened already. The handle is
    /// new, as that of a sending key.
    ///
    /// # Errors
    /// The store is full, knows no such suite, or its carrier opens no records. Records under this
    /// key then arrive as they came.
    fn install_receiving(&self, _: &ReceivingKey<'_>) -> Result<KeyHandle, NoRoom> {
        Err(NoRoom)
    }

    /// Takes a key back; a key that is not there is no error. A batch that waited may still name
    /// the handle: its records cannot be sealed, and it is as good as lost. An arrival that still
    /// names it is lost likewise.
    fn remove(&self, key: KeyHandle);
}

/// A receiving key, and what a carrier has to know to find its records in clear headers.
#[derive(Clone, Copy)]
pub struct ReceivingKey<'a> {
    /// The cipher suite's code of TLS 1.3.
    pub suite: u16,
    /// The key.
    pub key: &'a [u8],
    /// The IV.
    pub iv: &'a [u8; 12],
    /// The epoch byte of its packets.
    pub epoch: u8,
    /// The session.
    pub flow: ReceivingFlow,
}

/// The packets of a session, and where records are in them (SPEC §5.1, §5.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivingFlow {
    /// The session index in the packets: this host has chosen it.
    pub session: u64,
    /// Low bits of a record number that are the record's index in its message.
    pub index_bits: u8,
    /// Bytes of the inner stream in record 0.
    pub first_record: u16,
    /// Bytes of the inner stream in each further record.
    pub record: u16,
}

/// No byte of the key.
impl core::fmt::Debug for ReceivingKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReceivingKey")
            .field("suite", &self.suite)
            .field("epoch", &self.epoch)
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
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
    /// The record that is at `place` in the bytes of the batch, from its header to the room for its
    /// tag.
    #[must_use]
    pub const fn of_record(place: Range<usize>, key: KeyHandle, number: u64) -> Self {
        Self {
            at: (place.start + HEADER_BYTES) as u32,
            length: (place.end - place.start - HEADER_BYTES - TAG_BYTES) as u32,
            key,
            number,
        }
    }

    /// Where the record is in the bytes of the batch, from its header to the room for its tag.
    ///
    /// # Panics
    /// If `at` is below 5: the caller's mistake.
    #[must_use]
    pub fn record(&self) -> Range<usize> {
        self.header().start..self.body().end + TAG_BYTES
    }

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

/// A record in an arrival that the carrier has opened, in place: its tag was right under this key
/// and number.
///
/// Between the record's header and its tag is then the inner plaintext. This is the word of the
/// carrier, not of the network: a receiver takes it only for keys that it has given the carrier
/// itself, and only for the number that the record must have. It says nothing of repetitions: a
/// carrier opens a record as often as it comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opened {
    /// Where the record begins in the bytes of the arrival, with its header.
    pub at: u32,
    /// The key.
    pub key: KeyHandle,
    /// The record number.
    pub number: u64,
}

/// Bytes of a record's header.
const HEADER_BYTES: usize = 5;
/// Bytes of a record's tag.
pub const TAG_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_where_it_was_said_to_be() {
        let record = Unsealed::of_record(30..61, KeyHandle(1), 7);
        assert_eq!((record.header(), record.body()), (30..35, 35..45));
        assert_eq!(record.record(), 30..61);
    }
}
