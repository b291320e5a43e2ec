// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets are coalesced into super-packets, as Linux's GRO does.

use crate::ip::{self, Headers};
use crate::limits::{LONGEST_SUPER_PACKET, UDP_SEGMENTS};
use crate::offload::candidate::Candidate;
use crate::offload::header::{Checksum, Offload, SegmentKind, Segmentation};
use crate::offload::transport::{
    CWR, FIN, PSH, TCP_CHECKSUM, TCP_FLAGS, UDP_CHECKSUM, UDP_LENGTH, put_u16,
};
use crate::selector::Flow;

/// Coalesces packets of the same flow that follow each other.
///
/// Packets of a flow leave in the order in which they came. A packet that cannot be coalesced
/// sends what its flow has gathered before it.
#[derive(Debug)]
pub struct Coalescer {
    slots: Vec<Slot>,
    /// Whether datagrams of UDP are coalesced.
    takes_udp: bool,
    /// Grows with each super-packet that begins, so that the oldest is known.
    age: u64,
}

/// A super-packet in the making.
#[derive(Debug)]
struct Slot {
    /// The flow, while the slot is in use.
    flow: Option<Flow>,
    age: u64,
    /// The first packet, and behind it the payloads of the others; its capacity is never exceeded.
    packet: Vec<u8>,
    headers: Option<Headers>,
    header_len: usize,
    segments: u16,
    /// Bytes of payload of all segments but the last.
    size: usize,
    next_sequence: u32,
    identification: Identification,
}

/// How the IPv4 identification goes on from packet to packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Identification {
    /// IPv6 has none.
    Absent,
    /// One packet so far, and whether it must not be fragmented.
    First { last: u16, atomic: bool },
    /// Each packet has the number after its predecessor's.
    Rising { last: u16 },
    /// All packets have the same: a packet that is not fragmented needs none (RFC 6864 §4.1).
    Fixed { last: u16 },
}

impl Identification {
    const fn of(identification: Option<(u16, bool)>) -> Self {
        match identification {
            None => Self::Absent,
            Some((last, atomic)) => Self::First { last, atomic },
        }
    }

    /// The state once a packet of this identification has followed; nothing if it may not.
    fn after(self, next: Option<(u16, bool)>) -> Option<Self> {
        let Some((next, _)) = next else {
            return (self == Self::Absent).then_some(self);
        };
        match self {
            Self::First { last, .. } | Self::Rising { last } if next == last.wrapping_add(1) => {
                Some(Self::Rising { last: next })
            }
            Self::First { last, atomic: true } | Self::Fixed { last } if next == last => {
                Some(Self::Fixed { last })
            }
            _ => None,
        }
    }
}

impl Coalescer {
    /// A coalescer of so many flows at a time, at least one: 64 KB of memory for each.
    #[must_use]
    pub fn new(flows: usize) -> Self {
        let slots = (0..flows.max(1)).map(|_| Slot::new()).collect();
        Self { slots, takes_udp: true, age: 0 }
    }

    /// Whether datagrams of UDP are coalesced, as they are at first. A Linux before 6.2 refuses
    /// such super-packets ([`SegmentKind::Udp`]), and would lose all datagrams in them.
    pub const fn set_udp(&mut self, takes_udp: bool) {
        self.takes_udp = takes_udp;
    }

    /// Takes a packet, and hands over what is complete: packets as they came, and super-packets.
    ///
    /// A packet that is malformed is handed over as it is: the stack above counts it.
    pub fn push(&mut self, packet: &[u8], deliver: &mut impl FnMut(&[u8], Offload)) {
        let Ok(headers) = Headers::parse(packet) else {
            deliver(packet, Offload::default());
            return;
        };
        let flow = Flow::new(packet, &headers);
        let held = self.slots.iter().position(|slot| slot.flow == Some(flow));
        let Some(candidate) = Candidate::new(packet, &headers) else {
            if let Some(held) = held {
                self.slots[held].finish(deliver);
            }
            deliver(&packet[..headers.length], Offload::default());
            return;
        };
        if let Some(held) = held {
            let slot = &mut self.slots[held];
            if slot.append(&candidate) {
                if candidate.is_last(slot.size) || slot.is_full() {
                    slot.finish(deliver);
                }
                return;
            }
            slot.finish(deliver);
        }
        let is_alone = !candidate.is_tcp() && !self.takes_udp;
        if is_alone || candidate.is_last(0) {
            deliver(candidate.packet, verified());
            return;
        }
        self.begin(held, flow, &candidate, deliver);
    }

    /// Hands over all that has gathered, the oldest first: the end of a batch of packets.
    pub fn flush(&mut self, deliver: &mut impl FnMut(&[u8], Offload)) {
        while let Some(slot) = self.oldest() {
            self.slots[slot].finish(deliver);
        }
    }

    fn oldest(&self) -> Option<usize> {
        let used = self.slots.iter().enumerate();
        let used = used.filter(|(_, slot)| slot.flow.is_some());
        used.min_by_key(|(_, slot)| slot.age).map(|(at, _)| at)
    }

    fn begin(
        &mut self,
        slot: Option<usize>,
        flow: Flow,
        candidate: &Candidate<'_>,
        deliver: &mut impl FnMut(&[u8], Offload),
    ) {
        let free = || self.slots.iter().position(|slot| slot.flow.is_none());
        let at = slot.or_else(free).or_else(|| self.oldest()).unwrap_or(0);
        self.slots[at].finish(deliver);
        self.age += 1;
        self.slots[at].begin(flow, candidate, self.age);
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            flow: None,
            age: 0,
            packet: Vec::with_capacity(LONGEST_SUPER_PACKET),
            headers: None,
            header_len: 0,
            segments: 0,
            size: 0,
            next_sequence: 0,
            identification: Identification::Absent,
        }
    }

    fn begin(&mut self, flow: Flow, candidate: &Candidate<'_>, age: u64) {
        self.flow = Some(flow);
        self.age = age;
        self.packet.clear();
        self.packet.extend_from_slice(candidate.packet);
        self.headers = Some(candidate.headers);
        self.header_len = candidate.header_len;
        self.segments = 1;
        self.size = candidate.payload_len();
        self.next_sequence = next_sequence(candidate);
        self.identification = Identification::of(candidate.identification());
    }

    /// Appends a packet that continues this one; says whether it does.
    fn append(&mut self, candidate: &Candidate<'_>) -> bool {
        let in_order = !candidate.is_tcp() || candidate.sequence() == self.next_sequence;
        let fits = self.packet.len() + candidate.payload_len() <= LONGEST_SUPER_PACKET;
        let identification = self.identification.after(candidate.identification());
        let (true, true, Some(identification)) = (in_order, fits, identification) else {
            return false;
        };
        if candidate.header_len != self.header_len
            || candidate.payload_len() > self.size
            || !candidate.has_headers_of(&self.packet)
        {
            return false;
        }
        self.packet.extend_from_slice(candidate.payload());
        if let Some(headers) = self.headers.filter(|_| candidate.is_tcp()) {
            self.packet[headers.upper.at + TCP_FLAGS] |= candidate.flags() & (FIN | PSH);
        }
        self.segments += 1;
        self.next_sequence = next_sequence(candidate);
        self.identification = identification;
        true
    }

    /// Whether no further segment of the same size is taken.
    fn is_full(&self) -> bool {
        let udp = self.flow.is_some_and(|flow| flow.protocol == ip::protocol::UDP);
        udp && self.segments >= UDP_SEGMENTS
    }

    /// Hands over what has gathered, and empties the slot.
    fn finish(&mut self, deliver: &mut impl FnMut(&[u8], Offload)) {
        let (Some(_), Some(headers)) = (self.flow.take(), self.headers) else {
            return;
        };
        let offload = if self.segments == 1 { verified() } else { self.complete(&headers) };
        deliver(&self.packet, offload);
    }

    /// Writes lengths and the sum of the pseudo-header.
    fn complete(&mut self, headers: &Headers) -> Offload {
        let length = self.packet.len();
        ip::set_length(&mut self.packet, length);
        let start = headers.upper.at;
        let sum = headers.pseudo_sum(length - start).folded();
        let transport = &mut self.packet[start..];
        let tcp = headers.upper.protocol == ip::protocol::TCP;
        let kind = match (tcp, headers.is_v4()) {
            (true, true) => SegmentKind::TcpV4,
            (true, false) => SegmentKind::TcpV6,
            (false, _) => SegmentKind::Udp,
        };
        let offset = if tcp { TCP_CHECKSUM } else { UDP_CHECKSUM };
        put_u16(transport, offset, sum);
        if !tcp {
            put_u16(transport, UDP_LENGTH, transport.len() as u16);
        }
        Offload {
            segmentation: Some(Segmentation {
                kind,
                // All of these are less than LONGEST_SUPER_PACKET.
                size: self.size as u16,
                header_len: self.header_len as u16,
                ecn: tcp && transport[TCP_FLAGS] & CWR != 0,
            }),
            checksum: Checksum::Partial { start: start as u16, offset: offset as u16 },
        }
    }
}

fn next_sequence(candidate: &Candidate<'_>) -> u32 {
    if candidate.is_tcp() {
        let length = candidate.payload_len() as u32;
        candidate.sequence().wrapping_add(length)
    } else {
        0
    }
}

/// A packet alone, whose checksum was checked.
fn verified() -> Offload {
    Offload { segmentation: None, checksum: Checksum::Verified }
}
