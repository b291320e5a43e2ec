// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Record 0 of a message, opened from the packet that brought it (SPEC §5.4). Most messages are
//! whole with it: they are a header and a body at once, and never become an [`Incoming`].

use alloc::boxed::Box;
use bytes::Bytes;
use smt_record::{NoKey, open_first};
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
        let record = piece
            .payload
            .get(..place.extent as usize + RECORD_OVERHEAD)?;
        let sequence = opener.keys.index_bits.sequence(opener.keys.id, 0).ok()?;
        let (epoch, aead) = match opener.keys.open.data(piece.epoch) {
            Ok(key) => key,
            Err(NoKey::NoSuchEpoch) => return None,
            Err(NoKey::Unavailable(_)) => {
                opener.statistics.crypto_unavailable += 1;
                return None;
            }
        };
        let plaintext = &mut *opener.scratch;
        plaintext.clear();
        let opened = open_first(
            aead,
            sequence,
            geometry,
            piece.message_length,
            record,
            plaintext,
        );
        let header = match opened {
            Ok(header) => header,
            Err(error) => {
                opener.not_opened(&error);
                return None;
            }
        };
        opener.keys.open.opened(epoch);
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
        Some(Self {
            header,
            arrived,
            message,
        })
    }
}
