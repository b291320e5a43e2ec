// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cables as capture files, which Wireshark, tcpdump and `smt dump` read.
//!
//! The format is pcap with nanoseconds; frames are IPv4 packets with UDP (link type RAW), checksums
//! included. The time is that of the simulation, from 1970 on. Priorities are in the traffic class
//! byte as `smt-io` puts them there, marks in its ECN bits.
//!
//! 1. A [`CaptureTap`] watches a network and writes into the [`Capture`] that it shares with
//!    whoever made it.
//! 2. The file grows up to a limit; packets after that are counted and left out. A write that fails
//!    ends it too.
//! 3. [`Capture::finish`] tells how it went.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use smt_nic::psp;
use smt_proto::Time;

use crate::net::network::Tap;
use crate::net::packet::{HostId, Packet, Protocol};

/// Which packets a capture has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum View {
    /// Packets that hosts send, before any fault.
    Sent,
    /// Packets that reach hosts, after all faults, forged ones included.
    Arrived,
    /// Packets at this host's cable: those that it sends, and those that reach it.
    Host(HostId),
    /// Packets between these switches, both ways; racks' switches are numbered first, then spines.
    Between([u32; 2]),
}

/// A capture that is being written.
pub struct Capture {
    output: Box<dyn Write>,
    view: View,
    bytes_left: u64,
    frame: Vec<u8>,
    captured: Captured,
    failure: Option<io::Error>,
}

/// The size of a capture.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Captured {
    /// Packets in it.
    pub packets: u64,
    /// Packets that came when it was full.
    pub left_out: u64,
}

impl Capture {
    /// Begins a file of at most so many bytes.
    ///
    /// # Errors
    /// Its header could not be written.
    pub fn create(mut output: Box<dyn Write>, view: View, bytes_max: u64) -> io::Result<Self> {
        // Nanoseconds, version 2.4, UTC, no accuracy, longest frame, link type.
        let words = [NANOSECONDS, 0x0004_0002, 0, 0, 65_535, RAW_IP];
        words.iter().try_for_each(|word| output.write_all(&word.to_le_bytes()))?;
        Ok(Self {
            output,
            view,
            bytes_left: bytes_max.saturating_sub(FILE_HEADER_LEN),
            frame: Vec::new(),
            captured: Captured::default(),
            failure: None,
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(&mut self) -> io::Result<Captured> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.output.flush().map(|()| self.captured),
        }
    }

    fn take(&mut self, now: Time, packet: &Packet) {
        let length = (HEADERS_LEN + packet.bytes.len()) as u64;
        if self.captured.left_out > 0 || self.bytes_left < FRAME_HEADER_LEN + length {
            self.captured.left_out += 1;
            return;
        }
        if self.failure.is_some() {
            return;
        }
        self.bytes_left -= FRAME_HEADER_LEN + length;
        self.frame.clear();
        let nanos = now.as_nanos();
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        for word in [seconds, rest, length, length] {
            self.frame.extend((word as u32).to_le_bytes());
        }
        emit(packet, &mut self.frame);
        match self.output.write_all(&self.frame) {
            Ok(()) => self.captured.packets += 1,
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// Watches a network into a [`Capture`].
pub struct CaptureTap(pub Rc<RefCell<Capture>>);

impl Tap for CaptureTap {
    fn departed(&mut self, now: Time, packet: &Packet) {
        let mut capture = self.0.borrow_mut();
        let is_seen = match capture.view {
            View::Sent => true,
            View::Arrived | View::Between(_) => false,
            View::Host(host) => packet.from.cable() == host,
        };
        if is_seen {
            capture.take(now, packet);
        }
    }

    fn arrived(&mut self, now: Time, packet: &Packet) {
        let mut capture = self.0.borrow_mut();
        let is_seen = match capture.view {
            View::Sent | View::Between(_) => false,
            View::Arrived => true,
            View::Host(host) => packet.to.cable() == host,
        };
        if is_seen {
            capture.take(now, packet);
        }
    }

    fn crossed(&mut self, now: Time, switches: [u32; 2], packet: &Packet) {
        let mut capture = self.0.borrow_mut();
        let [one, other] = switches;
        if [[one, other], [other, one]].map(View::Between).contains(&capture.view) {
            capture.take(now, packet);
        }
    }
}

/// Appends it as an IPv4 packet.
fn emit(packet: &Packet, out: &mut Vec<u8>) {
    let from = packet.from.address().port();
    let to = match packet.protocol {
        Protocol::Psp => psp::PORT,
        Protocol::Smt | Protocol::Tcp => packet.to.address().port(),
    };
    let [source, target] = [packet.from, packet.to].map(HostId::ip);
    let udp_length = (UDP_HEADER_LEN + packet.bytes.len()) as u16;
    let class = packet.priority << 5 | if packet.is_marked { MARKED } else { 0 };
    let mut header = [0; IP_HEADER_LEN];
    header[0] = 0x45;
    header[1] = class;
    header[2..4].copy_from_slice(&(udp_length + IP_HEADER_LEN as u16).to_be_bytes());
    // Not to be fragmented, as SPEC §15.1 has it.
    header[6..10].copy_from_slice(&[0x40, 0, TIME_TO_LIVE, UDP]);
    header[12..16].copy_from_slice(&source);
    header[16..20].copy_from_slice(&target);
    let checksum = checksum(0, &header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend(header);
    let mut udp = [0; UDP_HEADER_LEN];
    udp[0..2].copy_from_slice(&from.to_be_bytes());
    udp[2..4].copy_from_slice(&to.to_be_bytes());
    udp[4..6].copy_from_slice(&udp_length.to_be_bytes());
    let addresses = sum(sum(0, &source), &target) + u64::from(UDP) + u64::from(udp_length);
    let checksum = match self::checksum(sum(addresses, &udp), &packet.bytes) {
        // 0 would say that there is none (RFC 768).
        0 => 0xFFFF,
        checksum => checksum,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    out.extend(udp);
    out.extend(&packet.bytes[..]);
}

/// The Internet's checksum (RFC 1071) of these bytes and of what has been summed up.
pub(super) fn checksum(summed: u64, bytes: &[u8]) -> u16 {
    let mut sum = sum(summed, bytes);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

fn sum(summed: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(2).fold(summed, |sum, pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        sum + u64::from(u16::from_be_bytes([pair[0], low]))
    })
}

/// 256 MB: some 20 random cases, or 20 ms of the Homa papers' datacenter.
pub const CAPTURE_BYTES_MAX: u64 = 256 << 20;

const NANOSECONDS: u32 = 0xA1B2_3C4D;
const RAW_IP: u32 = 101;
const FILE_HEADER_LEN: u64 = 24;
const FRAME_HEADER_LEN: u64 = 16;
const IP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
const HEADERS_LEN: usize = IP_HEADER_LEN + UDP_HEADER_LEN;
const UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
/// "Congestion experienced" (RFC 3168).
const MARKED: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// The bytes that were written, shared with the test.
    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match bytes.len() {
                4 => Ok(4),
                _ => Err(io::Error::other("full")),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn packet(from: u32, to: u32, bytes: &'static [u8]) -> Packet {
        Packet {
            from: HostId(from),
            to: HostId(to),
            bytes: Bytes::from_static(bytes),
            priority: 5,
            is_marked: true,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        }
    }

    /// The content of a file of these packets, sent at 1.000000002 s and arrived 1 ns later.
    fn file(view: View, bytes_max: u64, packets: &[Packet]) -> (Vec<u8>, Captured) {
        let shared = Shared::default();
        let capture = Capture::create(Box::new(shared.clone()), view, bytes_max).unwrap();
        let capture = Rc::new(RefCell::new(capture));
        let mut tap = CaptureTap(Rc::clone(&capture));
        for packet in packets {
            tap.departed(Time::from_nanos(1_000_000_002), packet);
            tap.crossed(Time::from_nanos(1_000_000_003), [packet.from.0, 9], packet);
            tap.arrived(Time::from_nanos(1_000_000_003), packet);
        }
        let captured = capture.borrow_mut().finish().unwrap();
        let bytes = shared.0.borrow().clone();
        (bytes, captured)
    }

    #[test]
    fn a_packet_is_written_with_times_addresses_and_checksums() {
        let (bytes, captured) = file(View::Sent, 1_000, &[packet(1, 258, b"abc")]);
        assert_eq!(captured.packets, 1);
        assert_eq!(bytes[..4], [0x4D, 0x3C, 0xB2, 0xA1]);
        assert_eq!(bytes[20..24], [101, 0, 0, 0]);
        assert_eq!(bytes[24..40], [1, 0, 0, 0, 2, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0]);
        // Checksums computed by hand: 0x45A3 + 0x1F + 0x4000 + 0x4011 + 0x0A00 + 1 + 0x0A00 + 0x102
        // = 0xDAD6.
        let ip = [0x45, 0xA3, 0, 31, 0, 0, 0x40, 0, 64, 17, 0x25, 0x29, 10, 0, 0, 1, 10, 0, 1, 2];
        assert_eq!(bytes[40..60], ip);
        // 0x0A00 + 1 + 0x0A00 + 0x102 + 17 + 11 + 2 * 0x43E3 + 11 + 0x6162 + 0x6300 = 0x1_6152.
        assert_eq!(bytes[60..], [0x43, 0xE3, 0x43, 0xE3, 0, 11, 0x9E, 0xAC, b'a', b'b', b'c']);
    }

    #[test]
    fn a_view_is_what_is_sent_or_what_arrives_or_one_link() {
        let packets = [packet(1, 2, b"1"), packet(2, 3, b"2"), packet(3, 1, b"3")];
        let seen = |view| {
            let (bytes, _) = file(view, 1_000, &packets);
            let frames = bytes[24..].chunks(16 + 29);
            let frames = frames.map(|frame| (frame[4], char::from(frame[44])));
            frames.collect::<Vec<_>>()
        };
        assert_eq!(seen(View::Sent), [(2, '1'), (2, '2'), (2, '3')]);
        assert_eq!(seen(View::Arrived), [(3, '1'), (3, '2'), (3, '3')]);
        assert_eq!(seen(View::Host(HostId(1))), [(2, '1'), (3, '3')]);
        assert_eq!(seen(View::Between([2, 9])), [(3, '2')]);
        assert_eq!(seen(View::Between([9, 3])), [(3, '3')]);
        assert_eq!(seen(View::Between([2, 3])), []);
    }

    #[test]
    fn a_full_capture_ends_with_a_whole_packet_and_counts_the_rest() {
        let packets = [packet(1, 2, b"1"), packet(2, 3, b"22"), packet(3, 1, b"3")];
        let (bytes, captured) = file(View::Sent, 24 + 2 * 45, &packets);
        assert_eq!(bytes.len(), 24 + 45);
        let expected = Captured { packets: 1, left_out: 2 };
        assert_eq!(captured, expected);
    }

    #[test]
    fn a_write_that_fails_is_told_at_the_end() {
        let mut capture = Capture::create(Box::new(Full), View::Sent, 1_000).unwrap();
        capture.take(Time::default(), &packet(1, 2, b"1"));
        capture.take(Time::default(), &packet(1, 2, b"1"));
        assert_eq!(capture.finish().unwrap_err().to_string(), "full");
    }
}
