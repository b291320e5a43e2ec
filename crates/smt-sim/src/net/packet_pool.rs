// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets that a network holds, by place: what moves from queue to queue is a
//! [`PacketHandle`], not a packet.

use crate::net::packet::{Packet, Protocol};

/// Packets on their way.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    places: Vec<Option<Packet>>,
    free: Vec<u32>,
}

/// A packet on its way: where it is kept, and what a queue has to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketHandle {
    place: u32,
    /// Bytes on the wire.
    pub(crate) length: u32,
    pub(crate) protocol: Protocol,
}

impl PacketPool {
    /// Keeps a packet.
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketHandle {
        let (length, protocol) = (packet.wire_len() as u32, packet.protocol);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        self.places[place as usize] = Some(packet);
        PacketHandle { place, length, protocol }
    }

    /// Gives a packet away. `None`: it was given away before.
    pub(crate) fn take(&mut self, handle: PacketHandle) -> Option<Packet> {
        let packet = self.places[handle.place as usize].take()?;
        self.free.push(handle.place);
        Some(packet)
    }

    /// The packet of a handle, to look at or change; `None` if it was given away. A caller that
    /// changes its length calls [`PacketHandle::of`] afterwards.
    pub(crate) fn get_mut(&mut self, handle: PacketHandle) -> Option<&mut Packet> {
        self.places[handle.place as usize].as_mut()
    }
}

impl PacketHandle {
    /// The same with the length that its packet has now.
    pub(crate) fn of(self, packet: &Packet) -> Self {
        Self { length: packet.wire_len() as u32, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{HostId, wire_len};
    use bytes::Bytes;

    fn packet(length: usize) -> Packet {
        Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: Bytes::from(vec![0; length]),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        }
    }

    #[test]
    fn a_place_is_used_again_when_its_packet_is_gone() {
        let mut packets = PacketPool::default();
        let (first, second) = (packets.insert(packet(100)), packets.insert(packet(200)));
        assert_eq!(u64::from(second.length), wire_len(200));
        assert_eq!(packets.take(first).unwrap().bytes.len(), 100);
        assert!(packets.take(first).is_none());
        packets.insert(packet(300));
        assert_eq!(packets.places.len(), 2);
        assert_eq!(packets.take(second).unwrap().bytes.len(), 200);
    }
}
