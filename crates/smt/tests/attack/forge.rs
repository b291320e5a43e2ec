// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Forged packets with headers that make sense, by SPEC §3, §6 and §12.

use crate::support::random::Random;

/// The same packet with one clear field rewritten.
pub(super) fn rewritten(random: &mut Random, datagram: &[u8]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    let is_data = bytes[1] == 0x01;
    // (offset, width) of: type, epoch, flags, length, index, id or number, message length, offset.
    let fields: &[(usize, usize)] = if is_data {
        &[(1, 1), (2, 1), (3, 1), (6, 2), (12, 8), (20, 8), (28, 4), (32, 4)]
    } else {
        &[(1, 1), (2, 1), (3, 1), (6, 2), (12, 8), (20, 8)]
    };
    let (at, width) = fields[random.below(fields.len())];
    if bytes.len() < at + width {
        return bytes;
    }
    let mut value =
        bytes[at..at + width].iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    value = match random.below(4) {
        // A neighbour: the next epoch, the next id, one byte on.
        0 => value.wrapping_add(1 + random.below(4) as u64),
        1 => value.wrapping_sub(1 + random.below(4) as u64),
        2 => random.next(),
        _ => value ^ 1 << random.below(8 * width),
    };
    let big = value.to_be_bytes();
    bytes[at..at + width].copy_from_slice(&big[8 - width..]);
    bytes
}

/// A control packet of any type for the session of `datagram`, with a plausible number and body,
/// and a tag that can only be guessed.
pub(super) fn control(random: &mut Random, datagram: &[u8]) -> Vec<u8> {
    let packet_type = 0x20 + random.below(0x16) as u8;
    let index = field(datagram, 12);
    let id = field(datagram, 20);
    let body = match packet_type {
        0x20 => vec![random.next() as u8; 16],
        // GRANT: id, granted, received, priority.
        0x21 => [id, u64::MAX, 7 << 56].concat_bytes(),
        // RESEND: id, offset, length.
        0x22 => [id, u64::from(u32::MAX)].concat_bytes(),
        // ACK: base, bits.
        0x24 => [id & 0xFFFF, u64::MAX].concat_bytes(),
        // ABORT: id, code.
        0x2B => [id, (1 + random.below(3) as u64) << 48].concat_bytes(),
        0x2D => vec![],
        // Epochs, PROBE_ACK: u32.
        0x2E..=0x30 | 0x34 => (random.below(3) as u32).to_be_bytes().to_vec(),
        // WINDOW, PING, PONG, CLOSE.
        0x2C | 0x31 | 0x32 | 0x35 => (random.below(5) as u64).to_be_bytes().to_vec(),
        0x33 => vec![0; 1_200],
        // Lists of ids: BUSY, NEED_ACK, CANCEL, VOIDED, SEEN, NEVER_SEEN, SEEN_AND_GONE.
        _ => [id, id.wrapping_add(2), id.wrapping_sub(2)].concat_bytes(),
    };
    let number = match random.below(3) {
        0 => field(datagram, 20).wrapping_add(1),
        1 => random.below(10_000) as u64,
        _ => random.next() >> 16,
    };
    let mut bytes = prefix(packet_type, 0x50, 28 + body.len() + 16);
    bytes[2] = datagram.get(2).copied().unwrap_or(0);
    bytes.extend_from_slice(&index.to_be_bytes());
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&body);
    bytes.extend((0..16).map(|_| random.next() as u8));
    bytes
}

/// A packet of a type that nothing protects, or only a token does.
pub(super) fn unauthenticated(random: &mut Random, datagram: &[u8]) -> (&'static str, Vec<u8>) {
    let index = field(datagram, 12).to_be_bytes();
    match random.below(5) {
        0 => {
            let mut bytes = prefix(0x13, 0x50, 36);
            bytes.extend_from_slice(&index);
            bytes.extend((0..16).map(|_| random.next() as u8));
            ("RESET forged", bytes)
        }
        1 => {
            let mut bytes = prefix(0x12, 0x50, 13);
            bytes[0] = 0;
            bytes.push(2);
            ("VERSION forged", bytes)
        }
        2 => {
            let mut bytes = prefix(0x11, 0x50, 44);
            bytes.extend_from_slice(&index);
            bytes.extend((0..24).map(|_| random.next() as u8));
            ("COOKIE forged", bytes)
        }
        3 => ("HANDSHAKE forged", handshake(random, datagram)),
        _ => ("DATA forged", data(random, datagram)),
    }
}

/// A flight that answers, or begins, the handshake of `datagram`.
fn handshake(random: &mut Random, datagram: &[u8]) -> Vec<u8> {
    let length = 1 + random.below(300);
    let mut bytes = prefix(0x10, 0x50, 40 + length);
    let (to, from) = (field(datagram, 12), field(datagram, 20));
    let is_first = random.one_in(4);
    bytes.extend_from_slice(&(if is_first { 0 } else { from }).to_be_bytes());
    bytes.extend_from_slice(
        &(if random.one_in(2) { to | 1 } else { random.next() | 1 }).to_be_bytes(),
    );
    bytes.extend_from_slice(&[if is_first { 1 } else { 1 + random.below(4) as u8 }, 0]);
    bytes.extend_from_slice(&(length as u16).to_be_bytes());
    bytes.extend_from_slice(&(length as u32).to_be_bytes());
    bytes.extend_from_slice(&0_u32.to_be_bytes());
    bytes.extend((0..length).map(|_| random.next() as u8));
    bytes
}

/// DATA of this or a neighbouring message, at a plausible place, of bytes that do not open.
fn data(random: &mut Random, datagram: &[u8]) -> Vec<u8> {
    let (index, id) = (field(datagram, 12), field(datagram, 20));
    let id = id.wrapping_add(random.below(9) as u64).wrapping_sub(4);
    let claimed = match random.below(3) {
        0 => field(datagram, 28) >> 32,
        1 => 40 + random.below(100_000) as u64,
        _ => u64::from(random.next() as u32),
    };
    let offset = match random.below(3) {
        0 => 0,
        1 => (field(datagram, 32) >> 32) as u32,
        _ => random.below(200_000) as u32,
    };
    let mut bytes = prefix(0x01, 0xB0, 0);
    bytes[2] = datagram.get(2).copied().unwrap_or(0);
    bytes.extend_from_slice(&index.to_be_bytes());
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&(claimed as u32).to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&[0x17, 3, 3]);
    bytes.extend((0..random.below(1_200)).map(|_| random.next() as u8));
    bytes
}

/// SPEC §3.1.
fn prefix(packet_type: u8, words: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![1, packet_type, 0, 0, words, 0];
    bytes.extend_from_slice(&(length as u16).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// Eight bytes at an offset; zero if there are none.
fn field(datagram: &[u8], at: usize) -> u64 {
    let bytes = datagram.get(at..at + 8);
    bytes.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

trait ConcatBytes {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl<const N: usize> ConcatBytes for [u64; N] {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|value| value.to_be_bytes()).collect()
    }
}
