// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segments: the parts of a batch as the device takes them, each with the records in it that are
//! not sealed yet.

use std::num::NonZeroU16;

use smt_carrier::{AssociationHandle, Batch, Layout, Unsealed};
use smt_nic::segmentation::{HEADER_MAX, SEGMENT_MAX};
use smt_wire::DataHeader;
use smt_wire::native::{NativeHeader, mark_segment};

use crate::flow_contexts::RecordRun;
use crate::keys::NicKeys;

/// A segment of one message, or a datagram.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The headers, from IP up to the payload, and the payload. They are the device's while the
    /// segment is under way.
    pub(crate) bytes: Vec<u8>,
    pub(crate) header_bytes: usize,
    /// Payload bytes of each packet but the last; 0 leaves one packet.
    pub(crate) stride: u16,
    /// The records that are not sealed yet, by their places in `bytes`.
    pub(crate) records: Vec<Unsealed>,
    /// The message or session, by which the segment finds its queue.
    pub(crate) flow: u64,
    /// The association under which each packet is sealed. Without it the segment leaves as it is.
    pub(crate) association: Option<AssociationHandle>,
}

impl Segment {
    /// The segments of a batch, behind these headers of IP and the native one. `None` if a datagram
    /// in it is none of SMT's, or too long.
    pub(crate) fn of_batch(batch: &Batch<'_>, front: &[u8]) -> Option<Vec<Self>> {
        match batch.layout {
            Layout::Segmented { header, payload_max } => {
                let mut data = *header;
                let stride = NonZeroU16::new(u16::try_from(payload_max).ok()?)?;
                let is_cut = batch.bytes.len() > payload_max;
                if is_cut {
                    mark_segment(&mut data, stride);
                }
                let header_bytes = front.len() + data.len();
                let records = batch.unsealed.iter();
                let segment = Self {
                    bytes: [front, &data, batch.bytes].concat(),
                    header_bytes,
                    stride: if is_cut { stride.get() } else { 0 },
                    records: records
                        .map(|record| moved(record, 0, header_bytes))
                        .collect::<Option<_>>()?,
                    flow: flow_of(header)?,
                    association: batch.association,
                };
                segment.fits().then(|| vec![segment])
            }
            Layout::Datagrams { segment_size } => {
                let datagrams = batch.bytes.chunks(segment_size).enumerate();
                let segment = |(number, datagram): (usize, &[u8])| {
                    let from = number * segment_size;
                    Self::of_datagram(batch, front, from, datagram)
                };
                datagrams.map(segment).collect()
            }
        }
    }

    /// One datagram, at the batch's byte `from`. The device reads the first packet's header alone.
    fn of_datagram(batch: &Batch<'_>, front: &[u8], from: usize, datagram: &[u8]) -> Option<Self> {
        let words = usize::from(*datagram.get(HEADER_WORDS)? >> 4);
        let header_bytes = (words * 4).checked_sub(NativeHeader::LEN)?;
        let place = from..from + datagram.len();
        let inside = |record: &&Unsealed| place.contains(&(record.at as usize));
        let records = batch.unsealed.iter().filter(inside);
        let segment = Self {
            bytes: [front, datagram].concat(),
            header_bytes: front.len() + header_bytes,
            stride: 0,
            records: records
                .map(|record| moved(record, from, front.len()))
                .collect::<Option<_>>()?,
            flow: flow_of(datagram).unwrap_or(batch.flow.0),
            association: batch.association,
        };
        segment.fits().then_some(segment)
    }

    /// Whether the headers are whole, and no longer than a device takes them, as is the payload.
    fn fits(&self) -> bool {
        let payload = self.bytes.len().checked_sub(self.header_bytes);
        self.header_bytes <= HEADER_MAX && payload.is_some_and(|payload| payload <= SEGMENT_MAX)
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.bytes.len() - self.header_bytes
    }

    /// How many packets the segment becomes.
    pub(crate) fn packets(&self) -> u64 {
        match self.stride {
            0 => 1,
            stride => self.payload_bytes().div_ceil(stride.into()).max(1) as u64,
        }
    }

    /// The records as a run that an engine seals, if they are all of the payload.
    pub(crate) fn run(&self) -> Option<RecordRun> {
        let first = self.records.first()?;
        let mut end = self.header_bytes;
        for (record, number) in self.records.iter().zip(first.number..) {
            let place = record.record();
            let is_next = place.start == end && record.number == number;
            if !is_next || record.key != first.key {
                return None;
            }
            end = place.end;
        }
        (end == self.bytes.len()).then_some(RecordRun {
            key: first.key,
            first: first.number,
            records: self.records.len() as u64,
        })
    }

    /// Seals the records in software. Returns how many; `None` if a key is gone.
    pub(crate) fn seal(&mut self, keys: &NicKeys) -> Option<u64> {
        let records = std::mem::take(&mut self.records);
        for record in &records {
            let key = keys.get(record.key)?;
            let place = self.bytes.get_mut(record.record())?;
            let (header, rest) = place.split_at_mut(record.header().len());
            let (plaintext, tag) = rest.split_at_mut(record.body().len());
            tag.copy_from_slice(&key.aead.seal(record.number, header, plaintext).ok()?);
        }
        Some(records.len() as u64)
    }
}

/// A record of a batch in a segment that begins at the batch's byte `from`, behind `before` more
/// bytes.
fn moved(record: &Unsealed, from: usize, before: usize) -> Option<Unsealed> {
    record.header().start.checked_sub(from)?;
    let at = record.at as usize - from + before;
    Some(Unsealed { at: u32::try_from(at).ok()?, ..*record })
}

/// The message of a DATA packet: the same for all its packets.
fn flow_of(packet: &[u8]) -> Option<u64> {
    let header = DataHeader::of_trimmed(*packet.first()?, packet).ok()?;
    Some(header.id.0)
}

/// Where a packet has its header's words, the native header's among them (SPEC §3.1).
const HEADER_WORDS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_carrier::{KeyHandle, Path};

    fn record(at: u32, length: u32, number: u64) -> Unsealed {
        Unsealed { at, length, key: KeyHandle(1), number }
    }

    fn segment(unsealed: &[Unsealed], bytes: usize) -> Segment {
        let mut header = [0; DataHeader::LEN];
        (header[1], header[HEADER_WORDS]) = (0x01, 0xB0);
        let bytes = vec![0; bytes];
        let batch = Batch {
            layout: Layout::Segmented { header: &header, payload_max: 20 },
            unsealed,
            ..Batch::datagrams(Path::to("192.0.2.1:1".parse().unwrap()), 1, &bytes)
        };
        Segment::of_batch(&batch, &[]).unwrap().remove(0)
    }

    #[test]
    fn records_in_a_row_that_are_all_of_a_payload_are_a_run() {
        let two = [record(5, 9, 7), record(35, 4, 8)];
        let run = RecordRun { key: KeyHandle(1), first: 7, records: 2 };
        assert_eq!(segment(&two, 55).run(), Some(run));
        assert_eq!(segment(&two, 56).run(), None, "bytes behind them");
        assert_eq!(segment(&two[1..], 55).run(), None, "bytes before them");
        assert_eq!(segment(&[], 55).run(), None);
        let apart = [record(5, 9, 7), record(35, 4, 9)];
        assert_eq!(segment(&apart, 55).run(), None, "a number is left out");
        let mut others = two;
        others[1].key = KeyHandle(2);
        assert_eq!(segment(&others, 55).run(), None, "another key");
    }

    // SMT [15.2-5]
    #[test]
    fn a_stream_that_fits_a_packet_has_no_mark() {
        let cut = segment(&[], 21);
        assert_eq!((cut.stride, cut.bytes[10..12].to_vec()), (20, vec![0, 20]));
        let whole = segment(&[], 20);
        assert_eq!((whole.stride, whole.bytes[10..12].to_vec()), (0, vec![0, 0]));
    }
}
