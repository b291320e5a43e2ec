// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Record 0 of a message, opened from the packet that brought it (SPEC §5.4). Most messages are
//! whole with it: they are a header and a body at once, and never become an [`Incoming`].

use alloc::boxed::Box;
use bytes::Bytes;
use smt_carrier::Opened;
use smt_record::{NoKey, OpenError, open_first, take_opened_first};
use smt_wire::{Geometry, InnerHeader, RECORD_OVERHEAD};

use super::{Incoming, Opener, Piece};

/// The content of a message's first packet.
#[derive(Debug)]
pub(crate) struct FirstRecord {
    pub(crate) header: InnerHeader,
    /// Bytes of the record stream that have opened.
    pub(crate) arrived: u32,
    pub(crate) message: Message,
}

/// A message after its record 0.
#[derive(Debug)]
pub(crate) enum Message {
    /// The message is whole: these are the application's bytes.
    Whole(Bytes),
    /// The message has more records.
    Part(Box<Incoming>),
}

impl FirstRecord {
    /// Opens record 0 from the payload of a packet with offset 0. `None` if it does not open:
    /// nothing of the packet is then to be believed.
    pub(crate) fn open(
        piece: Piece<'_>,
        geometry: Geometry,
        opener: &mut Opener<'_>,
    ) -> Option<Self> {
        let place = geometry.record(piece.message_length, 0);
        let record = piece.payload.get(..place.extent as usize + RECORD_OVERHEAD)?;
        let (epoch, opened) = match piece.opened.at(0) {
            None => Self::open_here(piece, geometry, record, opener)?,
            Some(word) => Self::take_opened(piece, geometry, record, word, opener)?,
        };
        let header = match opened {
            Ok(header) => header,
            Err(error) => {
                opener.not_opened(&error);
                return None;
            }
        };
        opener.keys.open.opened(epoch);
        let plaintext = &mut *opener.scratch;
        let arrived = record.len() as u32;
        let message = match geometry.records(piece.message_length) {
            1 => Message::Whole(opener.bodies.of(plaintext)),
            _ => Message::Part(Box::new(Incoming::new(
                header,
                geometry,
                arrived,
                plaintext,
                opener.buffer_pool,
            ))),
        };
        Some(Self { header, arrived, message })
    }

    /// Opens record 0 into the scratch buffer. `None` if it could not be tried.
    fn open_here(
        piece: Piece<'_>,
        geometry: Geometry,
        record: &[u8],
        opener: &mut Opener<'_>,
    ) -> Option<(u32, Result<InnerHeader, OpenError>)> {
        let sequence = opener.keys.index_bits.sequence(opener.keys.id, 0).ok()?;
        let (epoch, aead) = match opener.keys.open.data(piece.epoch) {
            Ok(key) => key,
            Err(NoKey::NoSuchEpoch) => return None,
            Err(NoKey::Unavailable(_)) => {
                opener.statistics.crypto_unavailable += 1;
                return None;
            }
        };
        opener.scratch.clear();
        let opened =
            open_first(aead, sequence, geometry, piece.message_length, record, opener.scratch);
        Some((epoch, opened))
    }

    /// Takes record 0, which the carrier has opened, into the scratch buffer. `None` if the
    /// carrier's word is not good.
    fn take_opened(
        piece: Piece<'_>,
        geometry: Geometry,
        record: &[u8],
        word: Opened,
        opener: &mut Opener<'_>,
    ) -> Option<(u32, Result<InnerHeader, OpenError>)> {
        let epoch = opener.epoch_of(word, piece.epoch, 0)?;
        opener.scratch.clear();
        let length = piece.message_length;
        let taken = take_opened_first(geometry, length, record, opener.scratch);
        opener.statistics.records_opened_by_carrier += u64::from(taken.is_ok());
        Some((epoch, taken))
    }
}
