// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of a peer that keeps no rule but the form of records: any kind, length, id and part.

use arbitrary::Arbitrary;
use smt_wire::{Ack, DataHeader, Geometry, InnerHeader, PLAINTEXT_VERSION};

use super::content::{Content, said_flags, said_words};
use super::said::Id;
use super::victim::Victim;

/// A part of a message.
#[derive(Arbitrary, Debug)]
pub(super) struct Sealed {
    id: Id,
    /// Distance from the epoch that the peer is in.
    epoch: i8,
    is_again: bool,
    content: Content,
    padding: u16,
    flags: u8,
    first: u32,
    second: u32,
    window: i16,
    ack: Option<(Id, u64)>,
    part: Part,
    /// Bytes of the plaintext that are not what they must be.
    changes: Vec<(u16, u8)>,
}

/// Which bytes of the record stream.
#[derive(Arbitrary, Debug)]
enum Part {
    /// From the beginning, about this many records.
    First(u8),
    /// All.
    All,
    /// One record.
    Record(u8),
    /// From somewhere to somewhere.
    Range(u16, u16),
}

impl Sealed {
    /// The packet.
    pub(super) fn datagram(&self, victim: &mut Victim) -> Vec<u8> {
        let geometry = victim.geometry;
        let body = self.content.body(victim.stripes_log2);
        let true_length = body.len() as u32;
        let padded = 40 + true_length + u32::from(self.padding) % PADDING_MAX;
        let stream = self.stream(victim, &body, padded);
        let (start, end) = self.part.range(geometry, padded, stream.len());
        let header = DataHeader {
            epoch: victim.peer_epoch.wrapping_add_signed(self.epoch),
            retransmit: self.is_again,
            session: victim.session,
            id: self.id.id(victim.stripes_log2),
            message_length: padded,
            offset: start as u32,
        };
        let mut bytes = vec![0; DataHeader::LEN];
        header.emit(PLAINTEXT_VERSION, (&mut bytes[..]).try_into().expect("36 bytes"));
        bytes.extend_from_slice(&stream[start..end]);
        bytes
    }

    /// The message's records, one after the other.
    fn stream(&self, victim: &Victim, body: &[u8], padded: u32) -> Vec<u8> {
        let geometry = victim.geometry;
        let inner = self.inner(victim, body, padded);
        let mut stream = Vec::new();
        for index in 0..geometry.records(padded) {
            let place = geometry.record(padded, index);
            let content = place.content(inner.len() as u32);
            let start = (place.inner_start as usize).min(inner.len());
            let mut plaintext = inner[start..start + content].to_vec();
            plaintext.push(0x17);
            plaintext.resize(usize::from(place.extent) + 1, 0);
            let [high, low] = (place.extent + 17).to_be_bytes();
            stream.extend_from_slice(&[0x17, 3, 3, high, low]);
            stream.extend_from_slice(&plaintext);
            stream.extend_from_slice(&[0; 16]);
        }
        for (at, byte) in &self.changes {
            let at = usize::from(*at) % stream.len();
            stream[at] = *byte;
        }
        stream
    }

    fn inner(&self, victim: &Victim, body: &[u8], padded: u32) -> Vec<u8> {
        let limit = victim.window.saturating_add_signed(self.window.into());
        let kind = self.content.kind();
        let flags = said_flags(kind, self.flags);
        let [first, second] = said_words(kind, [self.first, self.second]);
        let ack = self.ack.map(|(base, bits)| Ack { base: base.id(victim.stripes_log2), bits });
        let (base, bits) = ack.map_or((0, 0), |ack| (ack.base.0, ack.bits));
        let mut inner = Vec::with_capacity(InnerHeader::LEN + body.len());
        inner.extend_from_slice(&(body.len() as u32).to_be_bytes());
        inner.extend_from_slice(&padded.to_be_bytes());
        inner.extend_from_slice(&[kind, flags, 0, 0]);
        inner.extend_from_slice(&first.to_be_bytes());
        inner.extend_from_slice(&second.to_be_bytes());
        inner.extend_from_slice(&(limit as u32).to_be_bytes());
        inner.extend_from_slice(&base.to_be_bytes());
        inner.extend_from_slice(&bits.to_be_bytes());
        inner.extend_from_slice(body);
        inner
    }
}

impl Part {
    /// At least one byte, at most what a datagram carries.
    fn range(&self, geometry: Geometry, padded: u32, length: usize) -> (usize, usize) {
        let record = |index: u32| geometry.record(padded, index % geometry.records(padded));
        let (start, end) = match self {
            Self::First(count) => {
                let last = record((*count).into());
                (0, last.stream_start as usize + last.stream_len())
            }
            Self::All => (0, length),
            Self::Record(index) => {
                let place = record((*index).into());
                let start = place.stream_start as usize;
                (start, start + place.stream_len())
            }
            Self::Range(start, more) => {
                let start = usize::from(*start) % length;
                (start, start + 1 + usize::from(*more))
            }
        };
        (start, end.min(length).min(start + PAYLOAD_MAX))
    }
}

const PADDING_MAX: u32 = 5_000;
/// The largest UDP payload less the header.
const PAYLOAD_MAX: usize = 65_507 - DataHeader::LEN;
