// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attacker on the path who knows the specification: it sees every packet, keeps those of
//! interest, changes, moves, repeats, reflects and invents. It drops little, since nobody can talk
//! through a path that drops all.
//!
//! A seed chooses a few [`Move`]s and how often each is made. The attacker's aims are a wrong
//! delivery, the end of a session, more bytes at a bystander than it has sent in the bystander's
//! name, memory without bound. It has no keys. Offsets are those of SPEC §3.

mod forgery;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use smt_proto::Time;
use smt_wire::{PacketType, SessionIndex};

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
                let most = if chosen == Move::Drop { 50_000 } else { 400_000 };
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
                out.push((Packet { to, ..with(&packet, bytes) }, later));
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

    /// A message that claims to end where one of its records does; what comes later is withheld.
    fn cut(&mut self, packet: Packet) -> Option<Packet> {
        let mut bytes = packet.bytes.to_vec();
        if !is_data(&packet) {
            return Some(packet);
        }
        let claimed = *self.random.pick(&[1_142u32, 1_142 + 1_400, 1_142 + 16_384, 40, 64]);
        let offset = u32::from_be_bytes(bytes[OFFSET].try_into().ok()?);
        if offset >= claimed {
            return None;
        }
        put(&mut bytes, LENGTH, &claimed.to_be_bytes());
        Some(with(&packet, bytes))
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
    Packet { bytes: Bytes::from(bytes), ..packet.clone() }
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
    Packet { from: packet.to, to: packet.from, ..packet.clone() }
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
const INDEX: Range<usize> = 12..20;
const LENGTH: Range<usize> = 28..32;
const OFFSET: Range<usize> = 32..36;
/// A HANDSHAKE packet's source index.
const SOURCE: Range<usize> = 20..28;

#[cfg(test)]
mod tests;
