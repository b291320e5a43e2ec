// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network's treatment of a datagram, as decided by a test.

use core::time::Duration;
use std::fmt::Write;

use smt_proto::Time;
use smt_wire::{Data, DataHeader, Handshake, Packet, PacketType, parse};

use super::Random;

/// A datagram on its way, by node numbers.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub at: Time,
    pub from: usize,
    pub to: usize,
    pub bytes: Vec<u8>,
    /// A switch has left only these first bytes of it.
    pub is_trimmed: bool,
}

/// The fate of a datagram.
#[derive(Clone, Debug)]
pub enum Verdict {
    Deliver,
    Drop,
    Duplicate,
    /// Later than others by this much: reordered.
    Delay(Duration),
    /// A switch cuts it to its header, and says so.
    Trim,
    /// These come instead, in this order.
    Replace(Vec<Vec<u8>>),
}

impl Datagram {
    /// The rest of the datagram that a switch leaves when it trims.
    pub fn trimmed(mut self) -> Self {
        self.bytes.truncate(DataHeader::LEN);
        self.is_trimmed = true;
        self
    }

    /// The packets in it, as far as they parse.
    pub fn packets(&self) -> Vec<Packet<'_>> {
        let mut packets = Vec::new();
        let mut rest = self.bytes.as_slice();
        while let Ok((packet, further)) = parse(smt_wire::VERSION, rest) {
            packets.push(packet);
            rest = further;
        }
        packets
    }

    pub fn has(&self, packet_type: PacketType) -> bool {
        self.packets().iter().any(|packet| packet.packet_type() == packet_type)
    }

    /// The DATA packet, if it is one.
    pub fn data(&self) -> Option<Data<'_>> {
        match self.packets().first() {
            Some(Packet::Data(data)) => Some(*data),
            _ => None,
        }
    }

    /// The HANDSHAKE packet, if it begins with one.
    pub fn handshake(&self) -> Option<Handshake<'_>> {
        match self.packets().first() {
            Some(Packet::Handshake(handshake)) => Some(*handshake),
            _ => None,
        }
    }

    /// One line for traces.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:>12} us  {} > {}  {:>5} B",
            self.at.as_nanos() / 1000,
            self.from,
            self.to,
            self.bytes.len()
        );
        for packet in self.packets() {
            let _ = write!(line, "  [{packet}]");
        }
        line
    }
}

/// Loses, repeats and reorders so many percent each.
pub fn trouble(
    mut random: Random,
    percent: usize,
) -> impl FnMut(&Datagram, &mut Vec<Datagram>) -> Verdict + 'static {
    move |_, _| {
        if random.percent(percent) {
            Verdict::Drop
        } else if random.percent(percent) {
            Verdict::Duplicate
        } else if random.percent(percent) {
            Verdict::Delay(Duration::from_micros(1 + random.below(3_000) as u64))
        } else {
            Verdict::Deliver
        }
    }
}
