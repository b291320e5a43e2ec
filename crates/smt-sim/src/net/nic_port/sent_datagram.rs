// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that have left a device, and not yet the host.

use std::collections::VecDeque;
use std::net::SocketAddr;

use smt_nic_driver::NativePacket;

use super::PROTOCOL;

/// A datagram that has left a device.
pub(super) struct SentDatagram {
    to: SocketAddr,
    pub(super) priority: u8,
    bytes: Vec<u8>,
}

/// Datagrams that leave the host at once: of one size, the last perhaps shorter, for one end and of
/// one priority.
pub(crate) struct Datagrams {
    pub(crate) to: SocketAddr,
    pub(crate) priority: u8,
    /// Bytes of each, but of the last.
    pub(crate) size: usize,
    pub(crate) bytes: Vec<u8>,
}

impl SentDatagram {
    /// The datagram in a native packet.
    pub(super) fn of_packet(packet: &[u8]) -> Self {
        let mut packet = packet.to_vec();
        let read = NativePacket::parse(&mut packet, PROTOCOL).expect("a native packet");
        Self {
            to: read.destination,
            priority: read.traffic_class >> PRIORITY_SHIFT,
            bytes: packet[read.datagram].to_vec(),
        }
    }

    fn follows(&self, first: &Datagrams) -> bool {
        (self.to, self.priority) == (first.to, first.priority) && self.bytes.len() <= first.size
    }
}

impl Datagrams {
    /// Takes the first ones of these.
    pub(super) fn first_of(ready: &mut VecDeque<SentDatagram>) -> Option<Self> {
        let SentDatagram {
            to,
            priority,
            bytes,
        } = ready.pop_front()?;
        let mut taken = Self {
            to,
            priority,
            size: bytes.len(),
            bytes,
        };
        while ready.front().is_some_and(|next| next.follows(&taken))
            && let Some(next) = ready.pop_front()
        {
            taken.bytes.extend_from_slice(&next.bytes);
            if next.bytes.len() < taken.size {
                break;
            }
        }
        Some(taken)
    }
}

/// The place of a priority in the traffic class.
const PRIORITY_SHIFT: u32 = 5;
