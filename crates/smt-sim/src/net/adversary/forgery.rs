// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets that an attacker makes up, from those that it has seen.

use std::ops::Range;

use smt_nic::psp;
use smt_switch::DATA_HEADER_BYTES;
use smt_wire::native::NativeHeader;
use smt_wire::{RECORD_HEADER_LEN, TAG_LEN};

use super::{
    Adversary, DATA, HANDSHAKE, INDEX, LENGTH, OFFSET, SOURCE, is_handshake, put, reflected, with,
};
use crate::net::network::LinkRule;
use crate::net::packet::{Packet, Protocol};

impl<R: LinkRule> Adversary<R> {
    /// One field of the header takes another value: close to the old one, of another packet, or
    /// any.
    pub(super) fn mutated(&mut self, packet: &Packet) -> Packet {
        let mut bytes = packet.bytes.to_vec();
        let field = self.random.pick(&FIELDS).clone();
        if bytes.len() < field.end {
            return packet.clone();
        }
        match self.random.below(3) {
            0 => {
                let last = &mut bytes[field.end - 1];
                *last = last.wrapping_add(self.random.between(1, 255) as u8);
            }
            1 => {
                let other = self.any_seen();
                if let Some(value) = other.as_ref().and_then(|other| other.bytes.get(field.clone()))
                {
                    put(&mut bytes, field, value);
                }
            }
            _ => self.random.fill(&mut bytes[field]),
        }
        with(packet, bytes)
    }

    /// The rest that a switch would leave of the packet, or of one with another header.
    pub(super) fn trimmed(&mut self, packet: &Packet) -> Packet {
        let mut forged = match self.random.chance(500_000) {
            true => self.mutated(packet),
            false => packet.clone(),
        };
        forged.bytes.truncate(DATA_HEADER_BYTES);
        forged.is_trimmed = true;
        forged
    }

    /// A packet without a seal in the place of one of PSP, if that has DATA: a record that is as
    /// unsealed as those inside of sealed packets.
    pub(super) fn unsealed(&mut self, packet: &Packet) -> Option<Packet> {
        if packet.protocol != Protocol::Psp {
            return None;
        }
        let header = packet.bytes.get(SEALED_HEADER)?;
        let mut bytes = header.to_vec();
        if bytes[1] != DATA {
            return None;
        }
        let length = (header.len() + RECORD_HEADER_LEN + FORGED_BYTES + TAG_LEN) as u16;
        put(&mut bytes, 6..8, &length.to_be_bytes());
        bytes.extend([0x17, 3, 3]);
        bytes.extend(((FORGED_BYTES + TAG_LEN) as u16).to_be_bytes());
        let content = bytes.len();
        bytes.resize(content + FORGED_BYTES + TAG_LEN, 0);
        self.random.fill(&mut bytes[content..content + FORGED_BYTES]);
        Some(Packet { protocol: Protocol::Smt, ..with(packet, bytes) })
    }

    /// RESET, COOKIE, VERSION or UNAVAILABLE for the session or attempt of this packet, to either
    /// end.
    pub(super) fn stateless(&mut self, packet: &Packet) -> Packet {
        let kind = *self.random.pick(&[COOKIE, VERSION, RESET, UNAVAILABLE]);
        let is_reflected = self.random.chance(500_000);
        let (version, length) = match kind {
            VERSION => (0, 36),
            UNAVAILABLE => (smt_wire::VERSION, 22),
            _ => (smt_wire::VERSION, 36),
        };
        // The sender of a flight knows its attempt by the source.
        let index = match packet.bytes.get(1) {
            Some(&HANDSHAKE) if is_reflected => SOURCE,
            _ => INDEX,
        };
        let mut bytes = vec![version, kind, 0, 0, 0x50, 0, 0, length, 0, 0, 0, 0];
        bytes.extend_from_slice(packet.bytes.get(index).unwrap_or(&[0; 8]));
        bytes.resize(usize::from(length), 0);
        self.random.fill(&mut bytes[20..]);
        let forged = Packet { protocol: Protocol::Smt, ..with(packet, bytes) };
        match is_reflected {
            true => reflected(&forged),
            false => forged,
        }
    }

    /// A HANDSHAKE packet that continues the one that passes, in the name of its receiver or of its
    /// sender.
    pub(super) fn flight(&mut self, packet: &Packet) -> Packet {
        let mut bytes = packet.bytes.to_vec();
        if bytes.len() < 48 || !is_handshake(packet) {
            return packet.clone();
        }
        match self.random.below(4) {
            // An alert in the clear, as a server may send instead of its flight 2.
            0 => {
                bytes[28] = bytes[28].wrapping_add(1);
                bytes[29] = 0;
                let body = [0, 0, 0x15, 3, 3, 0, 2, 2, 40];
                put(&mut bytes, 30..32, &9u16.to_be_bytes());
                put(&mut bytes, 32..36, &9u32.to_be_bytes());
                put(&mut bytes, 36..40, &0u32.to_be_bytes());
                bytes[40..48].copy_from_slice(&body[..8]);
                let (destination, source) = bytes[12..28].split_at_mut(8);
                destination.swap_with_slice(source);
                return reflected(&with(packet, bytes));
            }
            1 => self.random.fill(&mut bytes[40..]),
            2 => self.random.fill(&mut bytes[32..40]),
            _ => bytes[28] = self.random.below(9) as u8,
        }
        with(packet, bytes)
    }

    /// A packet whose version nobody speaks: it is answered by VERSION, which names no session.
    pub(super) fn of_another_version(&mut self) -> Option<Packet> {
        let packet = self.any_seen()?;
        let mut bytes = packet.bytes.to_vec();
        *bytes.first_mut()? = self.random.between(2, 255) as u8;
        Some(with(&packet, bytes))
    }

    /// The first flight of a client that there is not.
    pub(super) fn another_first_flight(&mut self) -> Option<Packet> {
        let first = self.first_flight.as_ref()?;
        // Another index makes it another client's; it stands in the header and in the parameters
        // (SPEC §6.3).
        let mut bytes = first.bytes.to_vec();
        let index = bytes[SOURCE].to_vec();
        let mut another = [0; 8];
        self.random.fill(&mut another);
        let places: Vec<usize> = (SOURCE.start..=bytes.len() - index.len())
            .filter(|at| bytes[*at..].starts_with(&index))
            .collect();
        places.into_iter().for_each(|at| put(&mut bytes, at..at + another.len(), &another));
        Some(with(first, bytes))
    }
}

const COOKIE: u8 = 0x11;
const VERSION: u8 = 0x12;
const RESET: u8 = 0x13;
const UNAVAILABLE: u8 = 0x15;
/// Type, epoch, flags, length, session index, id or number, message length, offset.
const FIELDS: [Range<usize>; 8] = [1..2, 2..3, 3..4, 6..8, INDEX, 20..28, LENGTH, OFFSET];
/// The headers of PSP and of native SMT, before that of a DATA packet, which stays clear (SPEC
/// §15.3).
const BEFORE_DATA: usize = psp::HEADER_BYTES + NativeHeader::LEN;
const SEALED_HEADER: Range<usize> = BEFORE_DATA..BEFORE_DATA + DATA_HEADER_BYTES;
/// Bytes of a record that the attacker makes up.
const FORGED_BYTES: usize = 40;
