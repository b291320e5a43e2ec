// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of a receiver of a datagram's first bytes, written from SPEC §3, §6, §8 and §12 alone.
//!
//! No line of it is shared with the parser: where the two differ one of them is wrong.

/// The verdict of the specification on the first packet of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// A packet of this many bytes.
    Packet(usize),
    /// A packet of an unknown type, of this many bytes: the datagram goes on behind it (§3.2).
    Unknown(usize),
    /// To be answered with VERSION at most (§12.2).
    OtherVersion,
    /// There is no packet: the datagram is over.
    Refused,
}

pub(super) fn judge(version: u8, datagram: &[u8]) -> Verdict {
    let (Some(&first), ty) = (datagram.first(), datagram.get(1)) else {
        return Verdict::Refused;
    };
    let is_version_answer = first == 0 && ty == Some(&0x12);
    if first != version && !is_version_answer {
        // A lone 0 may be a VERSION that was cut short.
        let is_cut = first == 0 && ty.is_none();
        return if is_cut { Verdict::Refused } else { Verdict::OtherVersion };
    }
    if datagram.len() < PREFIX {
        return Verdict::Refused;
    }
    let ty = datagram[1];
    let words = if ty == 0x01 { 0xB0 } else { 0x50 };
    let length = usize::from(u16::from_be_bytes([datagram[6], datagram[7]]));
    if datagram[4] != words || length > datagram.len() || (1..PREFIX).contains(&length) {
        return Verdict::Refused;
    }
    let length = match (ty, length) {
        (0x01, 0) => datagram.len(),
        (_, 0) if is_known(ty) => return Verdict::Refused,
        // The end of an unknown packet is not known; it takes the rest of the datagram with it.
        (_, 0) => return Verdict::Unknown(0),
        (_, stated) => stated,
    };
    if !is_known(ty) {
        return Verdict::Unknown(length);
    }
    if is_body(ty, is_version_answer, &datagram[..length]) {
        Verdict::Packet(length)
    } else {
        Verdict::Refused
    }
}

/// Whether a switch may have left these bytes of a DATA packet (§9.10): its header at least, as
/// §3.1 and §3.3 have it. The length field was true of the bytes that are gone.
pub(super) fn is_trimmed(version: u8, left: &[u8]) -> bool {
    left.len() >= 36 && left[0] == version && left[1] == 0x01 && left[4] == 0xB0
}

fn is_known(ty: u8) -> bool {
    matches!(ty, 0x01 | 0x10..=0x13 | 0x15 | 0x20..=0x3A)
}

fn is_body(ty: u8, is_version_answer: bool, packet: &[u8]) -> bool {
    match ty {
        0x01 => packet.len() > 36,
        0x10 => is_handshake(packet),
        0x11 => (20 + 1..=20 + 64).contains(&packet.len()),
        0x12 => is_version_answer && (PREFIX + 1..=PREFIX + 255).contains(&packet.len()),
        0x13 => packet.len() == 36,
        0x15 => packet.len() == 22,
        _ => is_control(ty, packet),
    }
}

/// §6.2.
fn is_handshake(packet: &[u8]) -> bool {
    if packet.len() < 40 {
        return false;
    }
    let long = |at: usize| u64::from_be_bytes(packet[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("4 bytes"));
    let cookie = usize::from(packet[29]);
    let fragment = usize::from(u16::from_be_bytes([packet[30], packet[31]]));
    let (flight_length, offset) = (u64::from(word(32)), u64::from(word(36)));
    long(20) != 0
        && (1..=7).contains(&packet[28])
        && cookie <= 64
        && 40 + cookie + fragment <= packet.len()
        && flight_length <= 65_536
        && offset + fragment as u64 <= flight_length
}

/// §3.4 and the table of §8.
fn is_control(ty: u8, packet: &[u8]) -> bool {
    let sealed = match ty {
        0x20 => 32,
        0x38 => 48,
        _ => 16,
    };
    let Some(body) = packet.len().checked_sub(28 + sealed) else {
        return false;
    };
    let is_list_of =
        |entry: usize| body.is_multiple_of(entry) && (1..=64).contains(&(body / entry));
    match ty {
        0x20 | 0x2D => body == 0,
        0x38 => body == 12,
        0x21 => is_list_of(24),
        0x22 | 0x24 | 0x36 => is_list_of(16),
        0x23 | 0x25..=0x2A | 0x37 => is_list_of(8),
        0x2B => body == 16,
        0x2C | 0x31 | 0x32 | 0x35 => body == 8,
        0x2E..=0x30 | 0x34 | 0x39 | 0x3A => body == 4,
        0x33 => true,
        _ => false,
    }
}

/// Bytes of the prefix (§3.1).
const PREFIX: usize = 12;
