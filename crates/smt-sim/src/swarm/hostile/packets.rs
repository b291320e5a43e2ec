// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of a peer that keeps no rule but their form, in the plaintext version (SPEC §14): tags
//! are zeros.

use smt_wire::{
    Body, ControlHeader, ControlNumber, DataHeader, Geometry, InnerHeader, Kind, MemberHeader,
    MessageId, PLAINTEXT_VERSION, PartMarks, SessionIndex, TAG_LEN,
};

/// A message as a hostile peer sends it: its application bytes are zeros, but for those that it
/// has.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: MessageId,
    pub(super) kind: Kind,
    /// Application bytes, at least as many as `content` has.
    pub(super) length: u32,
    /// The bytes with which the message begins.
    pub(super) content: Vec<u8>,
    pub(super) geometry: Geometry,
    pub(super) parts: PartMarks,
}

impl Message {
    /// How many records it has.
    pub(super) fn records(&self) -> u32 {
        self.geometry.records(self.padded())
    }

    /// Packets with these records, one or two in each datagram's worth.
    pub(super) fn data(&self, session: SessionIndex, records: std::ops::Range<u32>) -> Vec<u8> {
        let first = self.geometry.record(self.padded(), records.start);
        let stream: Vec<u8> = records.flat_map(|index| self.record(index)).collect();
        self.part(session, first.stream_start, &stream)
    }

    /// The packet with `len` bytes of a record, from `at` on.
    pub(super) fn piece(
        &self,
        session: SessionIndex,
        index: u32,
        at: usize,
        len: usize,
    ) -> Vec<u8> {
        let place = self.geometry.record(self.padded(), index);
        let record = self.record(index);
        let at = at % record.len();
        let end = record.len().min(at + len.max(1));
        self.part(session, place.stream_start + at as u32, &record[at..end])
    }

    fn padded(&self) -> u32 {
        InnerHeader::LEN as u32 + self.length
    }

    fn part(&self, session: SessionIndex, offset: u32, bytes: &[u8]) -> Vec<u8> {
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session,
            id: self.id,
            message_length: self.padded(),
            offset,
        };
        let mut packet = vec![0; DataHeader::LEN];
        let head = packet.first_chunk_mut().expect("as long as a header");
        header.emit(PLAINTEXT_VERSION, head);
        packet.extend_from_slice(bytes);
        packet
    }

    /// A record as it stands in the stream.
    fn record(&self, index: u32) -> Vec<u8> {
        let place = self.geometry.record(self.padded(), index);
        let extent = usize::from(place.extent);
        let mut inner = Vec::new();
        if index == 0 {
            let mut header = [0; InnerHeader::LEN];
            self.inner_header().emit(&mut header);
            inner.extend_from_slice(&header);
        }
        let start = (place.inner_start as usize).saturating_sub(InnerHeader::LEN);
        let content = self.content.get(start..).unwrap_or_default();
        inner.extend_from_slice(&content[..content.len().min(extent - inner.len())]);
        inner.resize(extent, 0);
        let [high, low] = (place.extent + 17).to_be_bytes();
        let mut record = vec![0x17, 3, 3, high, low];
        record.extend_from_slice(&inner);
        record.push(0x17);
        record.resize(record.len() + TAG_LEN, 0);
        record
    }

    fn inner_header(&self) -> InnerHeader {
        InnerHeader {
            true_length: self.length,
            padded_length: self.padded(),
            kind: self.kind,
            deadline_us: 0,
            reply_unscheduled: 60_000,
            failure: None,
            has_metadata: false,
            parts: self.parts,
            window: 0,
            ack: None,
        }
    }
}

/// A member of a bundle.
pub(super) struct Member<'a> {
    pub(super) id: MessageId,
    pub(super) kind: Kind,
    /// Application bytes, at least as many as `content` has.
    pub(super) length: u16,
    /// The bytes with which the member begins.
    pub(super) content: &'a [u8],
    pub(super) parts: PartMarks,
}

impl Member<'_> {
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let header = MemberHeader {
            id: self.id,
            kind: self.kind,
            length: self.length,
            deadline_us: 0,
            reply_unscheduled: 60_000,
            failure: None,
            has_metadata: false,
            parts: self.parts,
        };
        let mut bytes = [0; MemberHeader::LEN];
        header.emit(&mut bytes);
        into.extend_from_slice(&bytes);
        let end = into.len() + usize::from(self.length);
        into.extend_from_slice(self.content);
        into.resize(end, 0x43);
    }
}

/// A control packet under this number.
pub(super) fn control(session: SessionIndex, counter: u64, body: &Body<'_>) -> Vec<u8> {
    let number = ControlNumber { stripe: 0, counter };
    let header = ControlHeader { epoch: 0, session, number };
    let mut packet = vec![0; ControlHeader::packet_len(body)];
    header.emit(PLAINTEXT_VERSION, body, &mut packet);
    packet
}
