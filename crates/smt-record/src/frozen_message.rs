// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message to be sent: its bytes are fixed before the first record is sealed (SPEC §5.5).
//!
//! 1. [`FrozenMessage::new`] takes the right to an id, the inner header and the body, for good.
//! 2. [`FrozenMessage::seal`] seals the records in order, each under the current epoch, counted.
//! 3. Asked again for a record it gives the same ciphertext: same bytes, epoch and number. Where
//!    that cannot be, since the body's memory has changed, it gives none.
//! 4. [`FrozenMessage::place`] leaves the sealing of a record to the carrier, if that has the key.
//!    No tag tells then whether the body has changed, so the message makes the body its own before.
//!
//! Each record's tag, 16 bytes, is all that is kept of the ciphertext; the rest is computed again.
//! A body in memory that others have changed meanwhile would give two plaintexts under one key and
//! number; its tag differs, and the record is refused. A record of application bytes only is sealed
//! straight from the body; others (the first, padding, over the border of two buffers) are composed
//! in `out` and sealed there. Only the tags of a message of several records are allocated. The
//! caller decides when which record leaves, and keeps an epoch's key until no record of it is
//! outstanding.

use alloc::vec::Vec;
use core::fmt;

use smt_carrier::KeyHandle;
use smt_wire::{
    Geometry, InnerHeader, MessageId, RECORD_HEADER_LEN, RECORD_OVERHEAD, Record, TAG_LEN,
};

use crate::aead::{Aead, NoKey, Unavailable};
use crate::body::Body;
use crate::key_limits::KeyUsedUp;
use crate::numbers::{IndexBits, NumberError, OutgoingId};
use crate::record_header::{APPLICATION_DATA, record_header};
use crate::seal_keys::SealKeys;

/// The frozen inner plaintext of a message, the right to seal it, and the progress of sealing.
///
/// Always give the keys of one session: the id is new in that session only.
pub struct FrozenMessage {
    id: OutgoingId,
    header: [u8; InnerHeader::LEN],
    body: Body,
    /// Inner bytes with padding (P).
    padded_length: u32,
    geometry: Geometry,
    index_bits: IndexBits,
    /// Records that were sealed at least once: those below this index.
    sealed: u32,
    epochs: Epochs,
    tags: Tags,
    /// The first record that was sealed when nobody else could reach the body any more.
    own_from: Option<u32>,
}

impl FrozenMessage {
    /// Freezes a message. The memory of `body` must not change from now on. It can change if
    /// a buffer has an owner of its own (a mapped file, shared memory).
    ///
    /// # Errors
    /// [`NumberError`] if the id or the last record's index does not fit: nothing is sealed.
    ///
    /// # Panics
    /// If `header` does not say the length of `body`, or a padded length that is too small.
    pub fn new(
        id: OutgoingId,
        header: &InnerHeader,
        body: Body,
        geometry: Geometry,
        index_bits: IndexBits,
    ) -> Result<Self, NumberError> {
        let padded_length = header.padded_length;
        index_bits.sequence(id.id(), geometry.records(padded_length) - 1)?;
        Ok(Self {
            id,
            header: header_of(&body, header),
            body,
            padded_length,
            geometry,
            index_bits,
            sealed: 0,
            epochs: Epochs::default(),
            tags: Tags::default(),
            own_from: None,
        })
    }

    /// Seals record `index` into the beginning of `out`: its extent and 22 bytes, whose number is
    /// the answer. The first time under the current epoch, and in order; later the same bytes.
    ///
    /// # Errors
    /// [`SealError`]; nothing was sealed or counted, and `out` is unchanged. After
    /// [`SealError::BodyChanged`] and [`SealError::Unavailable`] it is all zeros.
    pub fn seal(
        &mut self,
        index: u32,
        keys: &mut SealKeys,
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let (task, record) = self.task(index, keys, out)?;
        self.seal_record(&task, keys, record)
    }

    /// As [`Self::seal`], but the carrier seals the record if it has the key: then `out` has the
    /// record's header, its plaintext, and 16 bytes for the tag.
    ///
    /// The carrier seals what it finds, and the tag that would tell of a changed body stays with
    /// it. The message therefore copies the buffers of the body that others can reach, once, before
    /// the first record that it leaves to the carrier. A record that was sealed before that is
    /// sealed here for ever.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn place(
        &mut self,
        index: u32,
        keys: &mut SealKeys,
        out: &mut [u8],
    ) -> Result<Placed, SealError> {
        let (task, record) = self.task(index, keys, out)?;
        let is_own = task.is_first || self.own_from.is_some_and(|from| from <= index);
        let key = keys.carrier_key(task.epoch).filter(|_| is_own);
        let Some(key) = key else {
            return self.seal_record(&task, keys, record).map(Placed::Sealed);
        };
        if self.own_from.is_none() {
            self.body.make_own();
            self.own_from = Some(index);
        }
        let (header, rest) = record.split_at_mut(RECORD_HEADER_LEN);
        header.copy_from_slice(&record_header(task.place.extent));
        let (plaintext, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        let content = task.place.content(self.true_inner());
        self.compose(task.place.inner_start as usize, content, plaintext);
        tag.fill(0);
        self.count(&task, keys)?;
        Ok(Placed::Plain { length: record.len(), key, number: task.sequence })
    }

    /// Checks that a record may be sealed now, and tells where and under which epoch.
    fn task<'a>(
        &self,
        index: u32,
        keys: &SealKeys,
        out: &'a mut [u8],
    ) -> Result<(SealTask, &'a mut [u8]), SealError> {
        let (id, records) = (self.id(), self.records());
        if index >= records {
            return Err(SealError::NoSuchRecord { id, index, records });
        }
        if index > self.sealed {
            return Err(SealError::OutOfOrder { id, index, expected: self.sealed });
        }
        let place = self.geometry.record(self.padded_length, index);
        let needed = place.stream_len();
        let available = out.len();
        let out = out.get_mut(..needed).ok_or(SealError::OutTooShort { needed, available })?;
        let sequence = self.index_bits.sequence(id, index)?;
        let is_first = index == self.sealed;
        let epoch = if is_first {
            keys.check_record()?;
            Some(keys.epoch())
        } else {
            self.epochs.of(index)
        };
        let epoch = epoch.ok_or(SealError::EpochFinished { id, index })?;
        let task = SealTask { place, sequence, epoch, is_first };
        Ok((task, out))
    }

    /// Seals a record into its place.
    fn seal_record(
        &mut self,
        task: &SealTask,
        keys: &mut SealKeys,
        out: &mut [u8],
    ) -> Result<usize, SealError> {
        let (id, index) = (self.id(), task.place.index);
        let aead = keys.data(task.epoch).map_err(|error| match error {
            NoKey::NoSuchEpoch => SealError::EpochFinished { id, index },
            NoKey::Unavailable(unavailable) => unavailable.into(),
        });
        let sealing = self.seal_at(&task.place, task.sequence, aead?, out);
        let tag = sealing.inspect_err(|Unavailable| out.fill(0))?;
        self.count(task, keys)?;
        if !self.tags.is_as_before(index, tag) {
            out.fill(0);
            return Err(SealError::BodyChanged { id, index });
        }
        Ok(out.len())
    }

    /// Counts a record that was sealed, or left to the carrier, if it is the first time.
    fn count(&mut self, task: &SealTask, keys: &mut SealKeys) -> Result<(), SealError> {
        if task.is_first {
            keys.count_record()?;
            self.epochs.first_sealed(task.place.index, task.epoch);
            self.sealed += 1;
        }
        Ok(())
    }

    /// The message's id.
    pub fn id(&self) -> MessageId {
        self.id.id()
    }

    /// Inner bytes with padding (P).
    pub fn padded_length(&self) -> u32 {
        self.padded_length
    }

    /// Bytes of all records.
    pub fn stream_length(&self) -> u32 {
        self.geometry.stream_length(self.padded_length)
    }

    /// Number of records, at least 1.
    pub fn records(&self) -> u32 {
        self.geometry.records(self.padded_length)
    }

    /// Number of records that were sealed at least once.
    pub fn sealed_records(&self) -> u32 {
        self.sealed
    }

    /// The epoch that a record was sealed under. `None` if it was not sealed, or under an epoch
    /// that ended before the last two this message was sealed under.
    pub fn epoch_of(&self, index: u32) -> Option<u32> {
        if index >= self.sealed {
            return None;
        }
        self.epochs.of(index)
    }

    /// The oldest epoch that [`Self::epoch_of`] names; `None` if nothing was sealed.
    pub fn first_epoch(&self) -> Option<u32> {
        self.epochs.older.or(self.epochs.newer).map(|run| run.epoch)
    }

    /// The application bytes.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the record's tag.
    fn seal_at(
        &self,
        place: &Record,
        sequence: u64,
        aead: &dyn Aead,
        out: &mut [u8],
    ) -> Result<Tag, Unavailable> {
        let aad = record_header(place.extent);
        let (header_out, out) = out.split_at_mut(RECORD_HEADER_LEN);
        header_out.copy_from_slice(&aad);
        let from = place.inner_start as usize;
        let content = place.content(self.true_inner());
        if from >= InnerHeader::LEN && content == usize::from(place.extent) {
            let body = self.body.contiguous(from - InnerHeader::LEN, content);
            // A record over the border of two buffers is composed like others.
            if let Some(body) = body {
                aead.seal_scatter(sequence, &aad, body, &[APPLICATION_DATA], out)?;
                return Ok(*out.last_chunk().expect("a record ends in its tag"));
            }
        }
        let (plaintext, tag_out) = out.split_at_mut(out.len() - TAG_LEN);
        self.compose(from, content, plaintext);
        let tag = aead.seal(sequence, &aad, plaintext)?;
        tag_out.copy_from_slice(&tag);
        Ok(tag)
    }

    /// Writes `content` bytes of the inner stream from `from` on, and the content type and zeros
    /// behind them.
    fn compose(&self, from: usize, content: usize, plaintext: &mut [u8]) {
        let (content_out, end) = plaintext.split_at_mut(content);
        let header = &self.header[from.min(InnerHeader::LEN)..];
        let header = &header[..header.len().min(content)];
        let (header_out, body_out) = content_out.split_at_mut(header.len());
        header_out.copy_from_slice(header);
        // A record that lies wholly in the padding begins past the body.
        let body_from = from.saturating_sub(InnerHeader::LEN).min(self.body.len());
        self.body.copy_to(body_from, body_out);
        end.fill(0);
        end[0] = APPLICATION_DATA;
    }

    fn true_inner(&self) -> u32 {
        // `new` has checked that the body's length fits, and P, which is not smaller, is a u32.
        (InnerHeader::LEN + self.body.len()) as u32
    }
}

/// How a record got into its place ([`FrozenMessage::place`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placed {
    /// It is sealed, and has this many bytes.
    Sealed(usize),
    /// It is plaintext that the carrier seals.
    Plain {
        /// Bytes of the record: header, plaintext, and room for the tag.
        length: usize,
        /// The key.
        key: KeyHandle,
        /// The record number.
        number: u64,
    },
}

/// The sealing of one record.
struct SealTask {
    place: Record,
    sequence: u64,
    epoch: u32,
    /// Whether it is the record's first.
    is_first: bool,
}

/// Numbers only, no byte of the message.
impl fmt::Debug for FrozenMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenMessage")
            .field("id", &self.id())
            .field("padded_length", &self.padded_length)
            .field("records", &self.records())
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

/// Panics if the header is not that of the body: `emit` checks the padded length.
fn header_of(body: &Body, header: &InnerHeader) -> [u8; InnerHeader::LEN] {
    assert_eq!(header.true_length as usize, body.len(), "the header is that of the body");
    let mut bytes = [0; InnerHeader::LEN];
    header.emit(&mut bytes);
    bytes
}

/// Which epoch each record was first sealed under. A key may be used no longer than until its
/// epoch is finished, and a third epoch begins only then (SPEC §7.3), so two runs are enough.
#[derive(Debug, Default)]
struct Epochs {
    older: Option<Run>,
    newer: Option<Run>,
}

/// Records from `first` on, up to the next run.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u32,
    epoch: u32,
}

impl Epochs {
    fn first_sealed(&mut self, index: u32, epoch: u32) {
        if self.newer.is_some_and(|run| run.epoch == epoch) {
            return;
        }
        self.older = self.newer.replace(Run { first: index, epoch });
    }

    fn of(&self, index: u32) -> Option<u32> {
        [self.newer, self.older]
            .into_iter()
            .flatten()
            .find(|run| run.first <= index)
            .map(|run| run.epoch)
    }
}

/// The tags of the records that were sealed, which tell whether one that is sealed again is the
/// same. The tag of one that the carrier has sealed is not known before it is sealed here. Record
/// 0's is kept in place: most messages have no other.
#[derive(Default)]
struct Tags {
    first: Option<Tag>,
    others: Vec<Option<Tag>>,
}

impl Tags {
    /// Whether record `index` had this tag whenever it was sealed here; keeps that of a new one.
    fn is_as_before(&mut self, index: u32, tag: Tag) -> bool {
        let known = match (index as usize).checked_sub(1) {
            None => &mut self.first,
            Some(place) => {
                if self.others.len() <= place {
                    self.others.resize(place + 1, None);
                }
                &mut self.others[place]
            }
        };
        *known.get_or_insert(tag) == tag
    }
}

type Tag = [u8; TAG_LEN];

/// A record was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The caller's mistake: the message is shorter.
    #[error("message {id} has {records} records, no record {index}")]
    NoSuchRecord {
        /// The message.
        id: MessageId,
        /// The record asked for.
        index: u32,
        /// Records of the message.
        records: u32,
    },
    /// The caller's mistake: records are first sealed in order.
    #[error("message {id}: record {expected} is to be sealed before record {index}")]
    OutOfOrder {
        /// The message.
        id: MessageId,
        /// The record asked for.
        index: u32,
        /// The record that is next.
        expected: u32,
    },
    /// The caller's mistake: give a larger buffer.
    #[error("a record of {needed} bytes does not fit the buffer of {available}")]
    OutTooShort {
        /// Bytes of the record.
        needed: usize,
        /// Bytes of the buffer.
        available: usize,
    },
    /// The caller's mistake: the memory of the body has changed since the record was first sealed.
    /// Sealed again it would disclose both contents. End the message.
    #[error("message {id}: the body changed while it was being sent, in record {index}")]
    BodyChanged {
        /// The message.
        id: MessageId,
        /// The record asked for.
        index: u32,
    },
    /// The record's epoch was declared finished, so the peer has it; its key is gone.
    #[error("message {id}: record {index} belongs to a finished epoch and cannot be repeated")]
    EpochFinished {
        /// The message.
        id: MessageId,
        /// The record asked for.
        index: u32,
    },
    /// The cryptographic library could not try: seal the record again, later.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Update the key, then seal again.
    #[error(transparent)]
    KeyUsedUp(#[from] KeyUsedUp),
    /// The id or index does not fit; [`FrozenMessage::new`] has refused such messages already.
    #[error(transparent)]
    Number(#[from] NumberError),
}

const _: () = assert!(RECORD_HEADER_LEN + 1 + TAG_LEN == RECORD_OVERHEAD);

#[cfg(test)]
mod tests;
