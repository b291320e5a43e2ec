// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture with plaintext: the packets of another one, with each DATA packet whose records have
//! opened as a packet of the plaintext version (SPEC §14).
//!
//! 1. Frames are kept until the end of the capture, since a record opens when its last part has
//!    come.
//! 2. A packet all of whose bytes are of opened records gets the plaintext in their place, zeros
//!    for the tags, and the version 0xF1. Lengths and places stay as they were.
//! 3. The datagram of a packet of PSP that has opened is put into a native packet (SPEC §15.2),
//!    which is shorter. DATA in it whose records have no seal gets the version 0xF1.
//! 4. The file is pcap with nanoseconds, and its frames are IP packets. Checksums of UDP are
//!    computed anew.
//!
//! Both the frames and the plaintext are in memory: about twice the size of the capture.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use smt_wire::native::NativeHeader;
use smt_wire::{Data, DataHeader, MessageId, PLAINTEXT_VERSION, TAG_LEN};

use crate::datagram::{CarrierKind, Datagram};
use crate::terms::Direction;

/// A record as it was captured, and as it is after its tag was found right.
#[derive(Debug)]
pub(crate) struct OpenedRecord {
    /// The place in its message's record stream.
    start: usize,
    sealed: Vec<u8>,
    /// As long, with zeros for the tag.
    plain: Vec<u8>,
}

/// The records that have opened, by their messages.
pub(crate) type OpenedRecords = HashMap<(Direction, MessageId), Vec<OpenedRecord>>;

/// The frames of a capture, and where DATA packets are in them.
#[derive(Debug, Default)]
pub(crate) struct DecryptedCapture {
    frames: Vec<Frame>,
}

#[derive(Debug)]
struct Frame {
    time: Duration,
    carrier: CarrierKind,
    packet: Vec<u8>,
    payload_at: usize,
    missing: usize,
    data: Vec<DataPlace>,
}

/// A DATA packet in a frame.
#[derive(Clone, Copy, Debug)]
struct DataPlace {
    /// Where the packet begins in its IP packet.
    at: usize,
    payload_length: usize,
    to: Direction,
    id: MessageId,
    /// Where its payload is in the record stream.
    offset: usize,
}

impl OpenedRecord {
    /// A record at `start` of its stream, with this plaintext.
    pub(crate) fn new(start: u32, sealed: &[u8], plaintext: &[u8]) -> Self {
        let mut plain = sealed[..RECORD_HEADER_BYTES].to_vec();
        plain.extend(plaintext);
        plain.extend([0; TAG_LEN]);
        Self { start: start as usize, sealed: sealed.to_vec(), plain }
    }
}

impl DecryptedCapture {
    /// Keeps the frame of a datagram.
    pub(crate) fn keep(&mut self, time: Duration, datagram: &Datagram<'_>) {
        self.frames.push(Frame {
            time,
            carrier: datagram.carrier,
            packet: datagram.packet.to_vec(),
            payload_at: datagram.payload_at,
            missing: datagram.cut_off,
            data: Vec::new(),
        });
    }

    /// Keeps the datagram of a packet of PSP natively, with these contents: the native header and
    /// what is behind it.
    pub(crate) fn keep_opened(
        &mut self,
        time: Duration,
        datagram: &Datagram<'_>,
        contents: &[u8],
        protocol: u8,
    ) {
        let mut packet = datagram.packet[..datagram.transport_at].to_vec();
        packet[datagram.protocol_at] = protocol;
        packet.extend(contents);
        set_ip_length(&mut packet);
        self.frames.push(Frame {
            time,
            carrier: CarrierKind::Native,
            packet,
            payload_at: datagram.transport_at + NativeHeader::LEN,
            missing: 0,
            data: Vec::new(),
        });
    }

    /// Notes that the records of a DATA packet of the last frame, `at` bytes into its payload, are
    /// plaintext as they stand.
    pub(crate) fn note_plaintext(&mut self, at: usize) {
        let version = (self.frames.last_mut()).and_then(|it| it.packet.get_mut(it.payload_at + at));
        if let Some(version) = version {
            *version = PLAINTEXT_VERSION;
        }
    }

    /// Notes a DATA packet of the last frame, `at` bytes into its payload.
    pub(crate) fn note(&mut self, at: usize, to: Direction, data: &Data<'_>) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        frame.data.push(DataPlace {
            at: frame.payload_at + at,
            payload_length: data.payload.len(),
            to,
            id: data.header.id,
            offset: data.header.offset as usize,
        });
    }

    /// Writes the file.
    pub(crate) fn write(
        mut self,
        opened: &OpenedRecords,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        // Nanoseconds, version 2.4, UTC, no accuracy, longest frame, link type.
        for word in [NANOSECONDS, 0x0004_0002, 0, 0, FRAME_BYTES_MAX, RAW_IP] {
            output.write_all(&word.to_le_bytes())?;
        }
        for frame in &mut self.frames {
            frame.decrypt(opened);
            let length = u32::try_from(frame.packet.len()).unwrap_or(u32::MAX);
            let original = length.saturating_add(u32::try_from(frame.missing).unwrap_or(u32::MAX));
            let seconds = u32::try_from(frame.time.as_secs()).unwrap_or(u32::MAX);
            for word in [seconds, frame.time.subsec_nanos(), length, original] {
                output.write_all(&word.to_le_bytes())?;
            }
            output.write_all(&frame.packet)?;
        }
        Ok(())
    }
}

impl Frame {
    fn decrypt(&mut self, opened: &OpenedRecords) {
        let mut has_changed = false;
        for place in &self.data {
            let start = place.at + DataHeader::LEN;
            let sealed = self.packet.get(start..start + place.payload_length);
            let records = opened.get(&(place.to, place.id));
            let (Some(sealed), Some(records)) = (sealed, records) else {
                continue;
            };
            if let Some(plain) = plaintext_of(place.offset, sealed, records) {
                self.packet[start..start + plain.len()].copy_from_slice(&plain);
                self.packet[place.at] = PLAINTEXT_VERSION;
                has_changed = true;
            }
        }
        if has_changed && self.carrier == CarrierKind::Udp && self.missing == 0 {
            self.set_udp_checksum();
        }
    }

    /// The header of UDP ends where the payload begins.
    fn set_udp_checksum(&mut self) {
        let Some(udp_at) = self.payload_at.checked_sub(8) else {
            return;
        };
        let addresses = match self.packet[0] >> 4 {
            4 => 12..20,
            _ => 8..40,
        };
        let (ip, udp) = self.packet.split_at_mut(udp_at);
        udp[6..8].fill(0);
        let length = usize::from(u16::from_be_bytes([udp[4], udp[5]])).min(udp.len());
        let mut sum = words(&ip[addresses]) + words(&udp[..length]);
        sum += u64::from(UDP) + length as u64;
        // 0 stands for no checksum.
        let checksum = match checksum(sum) {
            0 => 0xFFFF,
            checksum => checksum,
        };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Tells the length in the first header of an IP packet, whose checksum is computed anew.
fn set_ip_length(packet: &mut [u8]) {
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(0).to_be_bytes();
    match packet[0] >> 4 {
        4 => {
            let all = length(packet.len());
            packet[2..4].copy_from_slice(&all);
            packet[10..12].fill(0);
            let header = usize::from(packet[0] & 0x0F) * 4;
            let checksum = checksum(words(&packet[..header]));
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        _ => {
            let behind = length(packet.len() - 40);
            packet[4..6].copy_from_slice(&behind);
        }
    }
}

/// The plaintext of a part of a record stream; `None` if a byte of it is of no opened record.
fn plaintext_of(offset: usize, sealed: &[u8], records: &[OpenedRecord]) -> Option<Vec<u8>> {
    let mut plain = vec![0; sealed.len()];
    let mut known = 0;
    for record in records {
        let from = record.start.max(offset);
        let to = (record.start + record.sealed.len()).min(offset + sealed.len());
        if from >= to {
            continue;
        }
        let (here, there) = (from - offset..to - offset, from - record.start..to - record.start);
        if sealed[here.clone()] != record.sealed[there.clone()] {
            // Forged, or damaged on the way.
            return None;
        }
        known += here.len();
        plain[here].copy_from_slice(&record.plain[there]);
    }
    (known == sealed.len()).then_some(plain)
}

/// The checksum of a sum of words.
fn checksum(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of 16-bit words, as checksums of the Internet have it (RFC 1071).
fn words(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u64::from);
    bytes.chunks(2).map(word).sum()
}

const NANOSECONDS: u32 = 0xA1B2_3C4D;
const RAW_IP: u32 = 101;
/// A batch that was captured before it was cut may be as long as IP permits.
const FRAME_BYTES_MAX: u32 = 1 << 18;
const UDP: u8 = 17;
/// Bytes of a record's clear header (SPEC §5.1).
pub(crate) const RECORD_HEADER_BYTES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: u32, plaintext: &[u8]) -> OpenedRecord {
        let sealed = vec![0xEE; RECORD_HEADER_BYTES + plaintext.len() + TAG_LEN];
        OpenedRecord::new(start, &sealed, plaintext)
    }

    mod plaintext_of {
        use super::*;

        #[test]
        fn parts_of_two_records_are_put_together() {
            let records = [record(0, b"abc"), record(24, b"defgh")];
            let plain = plaintext_of(6, &[0xEE; 26], &records).unwrap();
            assert_eq!(&plain[..2], b"bc");
            assert_eq!(plain[2..18], [0; TAG_LEN]);
            assert_eq!(&plain[18..], [&[0xEE; RECORD_HEADER_BYTES][..], b"def"].concat());
        }

        #[test]
        fn bytes_that_have_not_opened_leave_all_as_it_was() {
            let records = [record(0, b"abc")];
            assert!(plaintext_of(0, &[0xEE; 24], &records).is_some());
            assert_eq!(plaintext_of(0, &[0xEE; 25], &records), None);
            let mut damaged = [0xEE; 24];
            damaged[20] = 0;
            assert_eq!(plaintext_of(0, &damaged, &records), None);
        }
    }

    mod set_ip_length {
        use super::*;

        #[test]
        fn tells_the_new_length_under_a_right_checksum() {
            let mut packet = vec![0x45, 0, 0, 99, 0, 0, 0x40, 0, 64, 253, 1, 2];
            packet.extend([10, 0, 0, 1, 10, 0, 0, 2, b'a', b'b']);
            set_ip_length(&mut packet);
            assert_eq!(packet[2..4], [0, 22]);
            assert_eq!(checksum(words(&packet[..20])), 0);
            let mut packet = vec![0; 43];
            packet[0] = 0x60;
            set_ip_length(&mut packet);
            assert_eq!(packet[4..6], [0, 3]);
        }
    }
}
