// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes that a message takes on the wire, by which a load is turned into messages a second.
//!
//! As SMT sends it, whatever the transport, so that a load means the same messages for all of them:
//! DATA packets with a record each (SPEC §3.3, §5), an acknowledgement, and grants.

use smt_wire::{DataHeader, RECORD_OVERHEAD};

use super::smt_messenger::{RECORD_SURROUNDINGS, granted_window};
use crate::net::packet::wire_len;
use crate::net::topology::{GRANT_LEN, Topology};

/// The bytes that messages take on links that carry datagrams of some size.
pub(super) struct WireBytes {
    /// UDP payload of a full packet.
    datagram: usize,
    /// Bytes of a message that need no grant.
    unscheduled: u64,
    /// Bytes that a grant lets go.
    granted: u64,
}

impl WireBytes {
    pub(super) fn new(topology: &Topology) -> Self {
        let datagram = topology.edge.payload_max;
        let unscheduled = topology.round_trip_bytes();
        // A quarter of the window, at least a record and what it adds (SPEC §9.2).
        let granted = (granted_window(unscheduled) / 4).max(datagram as u32 - HEADER);
        Self { datagram, unscheduled: unscheduled.into(), granted: granted.into() }
    }

    /// The bytes that a message of this length takes.
    pub(super) fn of(&self, length: u32) -> u64 {
        let stream = u64::from(length) + INNER_HEADER;
        let (first, surroundings) = (FIRST_RECORD, u64::from(RECORD_SURROUNDINGS));
        let record = self.datagram as u64 - surroundings;
        // Record 0 travels in a packet that passes everywhere; the others are as long as packets
        // permit.
        let more = stream.saturating_sub(first).div_ceil(record);
        let last = match more {
            0 => stream,
            _ => stream - first - (more - 1) * record,
        };
        let full = match more {
            0 => 0,
            _ => wire_len((first + surroundings) as usize) + (more - 1) * wire_len(self.datagram),
        };
        let grants = stream.saturating_sub(self.unscheduled).div_ceil(self.granted);
        full + wire_len((last + surroundings) as usize)
            + wire_len(ACK)
            + grants * wire_len(GRANT_LEN)
    }
}

/// The header of a DATA packet (SPEC §3.3): the packet carries a record and its overhead besides.
const HEADER: u32 = DataHeader::LEN as u32;
/// SPEC §5.2.
const INNER_HEADER: u64 = 40;
/// Inner bytes of record 0 (SPEC §5.3).
const FIRST_RECORD: u64 = 1_142;
/// A control packet with one ACK (SPEC §3.4, §8).
const ACK: usize = 60;

// The bytes around a record: the packet's header, the record's, its type and its tag.
const _: () = assert!(RECORD_SURROUNDINGS as usize == DataHeader::LEN + RECORD_OVERHEAD);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::lab::{Messenger, SmtMessenger};
    use crate::net::link::Link;
    use crate::net::network::Network;
    use crate::net::packet::HostId;
    use crate::net::topology::Topology;
    use crate::net::world::World;
    use crate::random::Random;

    fn two_hosts(datagram: usize) -> Topology {
        let edge = Link {
            rate: 10_000_000_000,
            delay: Duration::from_nanos(1_400),
            payload_max: datagram,
        };
        Topology::rack(2, edge)
    }

    /// The bytes that a lone message of each length really takes.
    fn measured(topology: &Topology, lengths: &[u32]) -> Vec<u64> {
        let zeros = Bytes::from(vec![0; 1 << 20]);
        let config = SmtMessenger::config(topology);
        let host = |id| SmtMessenger::new(HostId(id), config.clone(), zeros.clone());
        let network = Network::new(topology, &mut Random::new(1));
        let mut world = World::new(network, (0..2).map(host).collect());
        world.change(HostId(0), |host, now| host.prepare(now, &[HostId(1)]));
        world.change(HostId(1), |host, now| host.prepare(now, &[HostId(0)]));
        let run = |world: &mut World<SmtMessenger>| {
            let end = world.network.now() + Duration::from_secs(1);
            world.run_until(end);
            world.network.host_bytes()
        };
        let mut before = run(&mut world);
        let mut taken = |length: &u32| {
            world.change(HostId(0), |host, now| host.send(now, HostId(1), *length));
            let after = run(&mut world);
            after - std::mem::replace(&mut before, after)
        };
        lengths.iter().map(&mut taken).collect()
    }

    #[test]
    fn is_about_what_smt_sends_with_datagrams_of_any_size() {
        for datagram in [1_472, 4_000, 8_972] {
            let topology = two_hosts(datagram);
            let lengths = [1, 1_000, 1_103, 10_000, 100_000, 1_000_000];
            for (length, taken) in lengths.iter().zip(measured(&topology, &lengths)) {
                let computed = WireBytes::new(&topology).of(*length);
                // An acknowledgement or a grant more or less, and what grants reach beyond a
                // quarter of the window.
                assert!(
                    computed.abs_diff(taken) <= 134 + taken / 50,
                    "{length} B in datagrams of {datagram}: {computed}, took {taken}"
                );
            }
        }
    }

    #[test]
    fn full_packets_of_1472_bytes_have_1414_of_a_message() {
        let wire = WireBytes::new(&two_hosts(1_472));
        // Record 0 is full with 1,102 bytes; ACK takes 126.
        assert_eq!(wire.of(1_102), 1_266 + 126);
        assert_eq!(wire.of(1_102 + 1_414), 1_266 + 1_538 + 126);
        assert_eq!(wire.of(1_102 + 1_415), 1_266 + 1_538 + 125 + 126);
        let jumbo = WireBytes::new(&two_hosts(8_972));
        assert_eq!(jumbo.of(1_102 + 8_914), 1_266 + 9_038 + 126);
    }
}
