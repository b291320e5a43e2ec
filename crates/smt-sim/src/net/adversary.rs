// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attacker on the path who knows the specification: it sees every packet, keeps those of
//! interest, changes, moves, repeats, reflects and invents. It drops little, since nobody can talk
//! through a path that drops all.
//!
//! A seed chooses a few [`Move`]s and how often each is made. The attacker's aims are a wrong
//! delivery, the end of a session, more bytes at a bystander than it has sent in the bystander's
//! name, memory without bound. It has no keys. Offsets are those of SPEC §3.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use smt_proto::Time;
use smt_switch::DATA_HEADER_BYTES;
use smt_wire::{PacketType, RECORD_HEADER_LEN, SessionIndex, TAG_LEN};

use crate::net::fault::Strikes;
use crate::net::network::LinkRule;
use crate::net::packet::{HostId, Packet, Protocol, packets_of};
use crate::random::Random;

/// A thing that the attacker does to a packet that passes, or because of it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Move {
    /// A header that claims a message of many megabytes.
    ClaimHuge,
    /// The message ends at another place, with its later packets gone.
    CutMessage,
    /// It does not arrive.
    Drop,
    /// A flight of the handshake in the peer's name, with the right indices: an alert, noise, or a
    /// bad fragment.
    ForgeFlight,
    /// An unprotected packet: RESET, COOKIE, VERSION or UNAVAILABLE.
    ForgeStateless,
    /// One field of its header is another.
    Mutate,
    /// It goes back to whom it came from.
    Reflect,
    /// One that was seen before comes again.
    Replay,
    /// It names another session.
    Retarget,
    /// Its header with the content of another.
    Splice,
    /// Something in a bystander's name: a first flight, a packet of others, or one of a version
    /// that nobody speaks.
    Spoof,
    /// Its header, with a field that may be another, as if a switch had trimmed it.
    Trim,
    /// The clear headers of a packet that a NIC has sealed, before a record of the attacker's own,
    /// in a packet that nobody has sealed (SPEC §15.4).
    Unseal,
}

/// Bytes that were sent in the bystander's name, by the session index that an answer would name.
pub type Spoofed = BTreeMap<SessionIndex, u64>;

/// The attacker.
pub struct Adversary<R> {
    inner: R,
    moves: Vec<(Move, u32)>,
    random: Random,
    strikes: Rc<RefCell<Strikes>>,
    bystander: HostId,
    seen: VecDeque<Packet>,
    first_flight: Option<Packet>,
    spoofed: Rc<RefCell<Spoofed>>,
    leaves: Option<Time>,
}

impl<R: LinkRule> Adversary<R> {
    /// An attacker behind other faults. The bytes that it sends in the bystander's name are counted
    /// in `spoofed`.
    pub fn new(
        inner: R,
        mut random: Random,
        bystander: HostId,
        strikes: Rc<RefCell<Strikes>>,
        spoofed: Rc<RefCell<Spoofed>>,
    ) -> Self {
        let mut all = Move::ALL.to_vec();
        all.retain(|of| *of != Move::Unseal);
        let moves = (0..random.between(1, 5))
            .map(|_| {
                let chosen = all.swap_remove(random.below(all.len() as u64) as usize);
                let most = if chosen == Move::Drop {
                    50_000
                } else {
                    400_000
                };
                (chosen, random.between(1_000, most) as u32)
            })
            .collect();
        Self {
            inner,
            moves,
            random,
            strikes,
            bystander,
            seen: VecDeque::new(),
            first_flight: None,
            spoofed,
            leaves: None,
        }
    }

    /// It leaves at this time.
    #[must_use]
    pub fn until(mut self, at: Time) -> Self {
        self.leaves = Some(at);
        self
    }

    /// It unseals packets too, this often in millionths.
    #[must_use]
    pub fn unsealing(mut self, chance: u32) -> Self {
        self.moves.push((Move::Unseal, chance));
        self
    }

    fn remember(&mut self, packet: &Packet) {
        if self.seen.len() == SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(packet.clone());
        if is_handshake(packet) && packet.bytes[28] == 1 {
            self.first_flight = Some(packet.clone());
        }
    }

    /// Makes a move. Returns what becomes of the packet itself.
    fn play(&mut self, play: Move, packet: Packet, out: &mut Vec<(Packet, u64)>) -> Option<Packet> {
        let later = self.random.below(200_000);
        match play {
            Move::Drop => return None,
            Move::Mutate => {
                let forged = self.mutated(&packet);
                // Beside the genuine one, or instead of it.
                if self.random.chance(500_000) {
                    out.push((forged, later));
                } else {
                    out.push((packet, later));
                    return Some(forged);
                }
            }
            Move::ClaimHuge => {
                let mut bytes = packet.bytes.to_vec();
                if is_data(&packet) {
                    let length = self.random.between(1 << 20, u64::from(u32::MAX)) as u32;
                    put(&mut bytes, LENGTH, &length.to_be_bytes());
                    let offset = self.random.below(u64::from(length)) as u32;
                    put(&mut bytes, OFFSET, &offset.to_be_bytes());
                    out.push((with(&packet, bytes), later));
                }
            }
            Move::CutMessage => return self.cut(packet),
            Move::Reflect => out.push((reflected(&packet), later)),
            Move::Replay => {
                if let Some(old) = self.any_seen() {
                    out.push((old, later));
                }
            }
            Move::Retarget => {
                let mut bytes = packet.bytes.to_vec();
                let other = self.any_seen();
                if let Some(index) = other.as_ref().and_then(|other| other.bytes.get(INDEX)) {
                    put(&mut bytes, INDEX, index);
                }
                let to = other.map_or(packet.to, |other| other.to);
                out.push((
                    Packet {
                        to,
                        ..with(&packet, bytes)
                    },
                    later,
                ));
            }
            Move::Splice => {
                if let Some(other) = self.any_seen() {
                    let kept = (36.min(packet.bytes.len()), 36.min(other.bytes.len()));
                    let bytes = [&packet.bytes[..kept.0], &other.bytes[kept.1..]].concat();
                    out.push((with(&packet, bytes), later));
                }
            }
            Move::ForgeStateless => {
                let forged = self.stateless(&packet);
                out.push((forged, later));
            }
            Move::ForgeFlight => {
                let forged = self.flight(&packet);
                out.push((forged, 0));
            }
            Move::Spoof => self.spoof(out),
            Move::Unseal => out.extend(self.unsealed(&packet).map(|forged| (forged, later))),
            Move::Trim => {
                let forged = self.trimmed(&packet);
                out.push((forged, later));
            }
        }
        Some(packet)
    }

    fn any_seen(&mut self) -> Option<Packet> {
        let at = self.random.below(self.seen.len() as u64) as usize;
        self.seen.get(at).cloned()
    }

    /// One field of the header takes another value: close to the old one, of another packet, or
    /// any.
    fn mutated(&mut self, packet: &Packet) -> Packet {
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
                if let Some(value) = other
                    .as_ref()
                    .and_then(|other| other.bytes.get(field.clone()))
                {
                    put(&mut bytes, field, value);
                }
            }
            _ => self.random.fill(&mut bytes[field]),
        }
        with(packet, bytes)
    }

    /// The rest that a switch would leave of the packet, or of one with another header.
    fn trimmed(&mut self, packet: &Packet) -> Packet {
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
    fn unsealed(&mut self, packet: &Packet) -> Option<Packet> {
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
        self.random
            .fill(&mut bytes[content..content + FORGED_BYTES]);
        Some(Packet {
            protocol: Protocol::Smt,
            ..with(packet, bytes)
        })
    }

    /// A message that claims to end where one of its records does; what comes later is withheld.
    fn cut(&mut self, packet: Packet) -> Option<Packet> {
        let mut bytes = packet.bytes.to_vec();
        if !is_data(&packet) {
            return Some(packet);
        }
        let claimed = *self
            .random
            .pick(&[1_142u32, 1_142 + 1_400, 1_142 + 16_384, 40, 64]);
        let offset = u32::from_be_bytes(bytes[OFFSET].try_into().ok()?);
        if offset >= claimed {
            return None;
        }
        put(&mut bytes, LENGTH, &claimed.to_be_bytes());
        Some(with(&packet, bytes))
    }

    /// RESET, COOKIE, VERSION or UNAVAILABLE for the session or attempt of this packet, to either
    /// end.
    fn stateless(&mut self, packet: &Packet) -> Packet {
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
        let forged = Packet {
            protocol: Protocol::Smt,
            ..with(packet, bytes)
        };
        match is_reflected {
            true => reflected(&forged),
            false => forged,
        }
    }

    /// A HANDSHAKE packet that continues the one that passes, in the name of its receiver or of its
    /// sender.
    fn flight(&mut self, packet: &Packet) -> Packet {
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

    /// Something as if the bystander had sent it: what is answered goes there.
    fn spoof(&mut self, out: &mut Vec<(Packet, u64)>) {
        let spoofed = match self.random.below(4) {
            0 => self.any_seen(),
            1 => self.of_another_version(),
            _ => self.another_first_flight(),
        };
        let Some(packet) = spoofed else {
            return;
        };
        for (index, bytes) in answerable(&packet.bytes) {
            *self.spoofed.borrow_mut().entry(index).or_default() += bytes;
        }
        let from = self.bystander;
        out.push((Packet { from, ..packet }, 0));
    }

    /// A packet whose version nobody speaks: it is answered by VERSION, which names no session.
    fn of_another_version(&mut self) -> Option<Packet> {
        let packet = self.any_seen()?;
        let mut bytes = packet.bytes.to_vec();
        *bytes.first_mut()? = self.random.between(2, 255) as u8;
        Some(with(&packet, bytes))
    }

    /// The first flight of a client that there is not.
    fn another_first_flight(&mut self) -> Option<Packet> {
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
        places
            .into_iter()
            .for_each(|at| put(&mut bytes, at..at + another.len(), &another));
        Some(with(first, bytes))
    }
}

impl<R: LinkRule> LinkRule for Adversary<R> {
    fn pass(&mut self, now: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        if self.leaves.is_some_and(|leaves| leaves <= now) {
            return self.inner.pass(now, packet, out);
        }
        let mut passed = Vec::new();
        self.inner.pass(now, packet, &mut passed);
        for (packet, later) in passed {
            self.remember(&packet);
            let mut kept = Some(packet);
            for at in 0..self.moves.len() {
                let (play, chance) = self.moves[at];
                if !self.random.chance(chance) {
                    continue;
                }
                if let Some(packet) = kept {
                    let (genuine, before) = (packet.clone(), out.len());
                    kept = self.play(play, packet, out);
                    // Some moves are about some packets only, and leave others as they are.
                    let mut beside = out[before..].iter();
                    let has_effect = kept.as_ref().is_none_or(|kept| is_other(kept, &genuine))
                        || beside.any(|(packet, _)| is_other(packet, &genuine));
                    if has_effect {
                        self.strikes.borrow_mut().note_move(play);
                    }
                }
            }
            out.extend(kept.map(|packet| (packet, later)));
        }
    }
}

impl Move {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::ClaimHuge,
        Self::CutMessage,
        Self::Drop,
        Self::ForgeFlight,
        Self::ForgeStateless,
        Self::Mutate,
        Self::Reflect,
        Self::Replay,
        Self::Retarget,
        Self::Splice,
        Self::Spoof,
        Self::Trim,
        Self::Unseal,
    ];
}

fn with(packet: &Packet, bytes: Vec<u8>) -> Packet {
    Packet {
        bytes: Bytes::from(bytes),
        ..packet.clone()
    }
}

/// The index that an answer to each packet of a datagram would name, and the packet's bytes: a
/// HANDSHAKE's source, another's session, or nothing if the version is another.
fn answerable(datagram: &[u8]) -> Vec<(SessionIndex, u64)> {
    if datagram.first() != Some(&smt_wire::VERSION) {
        return vec![(SessionIndex(0), datagram.len() as u64)];
    }
    let packets = packets_of(datagram).map(|(packet_type, bytes)| {
        let place = match packet_type {
            PacketType::Handshake => SOURCE,
            _ => INDEX,
        };
        let index = bytes.get(place).and_then(|index| index.try_into().ok());
        let index = SessionIndex(index.map_or(0, u64::from_be_bytes));
        (index, bytes.len() as u64)
    });
    packets.collect()
}

/// Whether it is a DATA packet in the clear, with something behind its header.
fn is_data(packet: &Packet) -> bool {
    packet.protocol == Protocol::Smt && packet.bytes.len() > 36 && packet.bytes[1] == DATA
}

/// Whether it is a HANDSHAKE packet with a whole header.
fn is_handshake(packet: &Packet) -> bool {
    packet.protocol == Protocol::Smt && packet.bytes.len() >= 40 && packet.bytes[1] == HANDSHAKE
}

/// Whether a receiver could tell them apart.
fn is_other(one: &Packet, other: &Packet) -> bool {
    let seen = |packet: &Packet| (packet.from, packet.to, packet.is_trimmed);
    seen(one) != seen(other) || one.bytes != other.bytes
}

fn reflected(packet: &Packet) -> Packet {
    Packet {
        from: packet.to,
        to: packet.from,
        ..packet.clone()
    }
}

fn put(bytes: &mut [u8], place: Range<usize>, value: &[u8]) {
    if let Some(place) = bytes.get_mut(place) {
        place.copy_from_slice(value);
    }
}

/// Packets that may come again.
const SEEN: usize = 512;
const DATA: u8 = 0x01;
const HANDSHAKE: u8 = 0x10;
const COOKIE: u8 = 0x11;
const VERSION: u8 = 0x12;
const UNAVAILABLE: u8 = 0x15;
const RESET: u8 = 0x13;
const INDEX: Range<usize> = 12..20;
const LENGTH: Range<usize> = 28..32;
const OFFSET: Range<usize> = 32..36;
/// The header of a DATA packet behind the headers of PSP and of native SMT, which stays clear (SPEC
/// §15.3).
const SEALED_HEADER: Range<usize> = 24..24 + DATA_HEADER_BYTES;
/// Bytes of a record that the attacker makes up.
const FORGED_BYTES: usize = 40;
/// A HANDSHAKE packet's source index.
const SOURCE: Range<usize> = 20..28;
/// Type, epoch, flags, length, session index, id or number, message length, offset.
const FIELDS: [Range<usize>; 8] = [1..2, 2..3, 3..4, 6..8, INDEX, 20..28, LENGTH, OFFSET];

#[cfg(test)]
mod tests;
