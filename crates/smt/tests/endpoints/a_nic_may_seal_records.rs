// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints behind the model of a NIC and its driver: one end's records are sealed by the device,
//! the other end's by its CPU, and packets are cut by the device. Records that arrive whole are
//! opened by the device, all others by the core.

use std::net::SocketAddr;
use std::sync::Arc;

use smt::KeyLimits;
use smt_io::{Fault, MemoryCarrier, MemoryNetwork, MemoryOptions};
use smt_nic::context_memory::ContextLimits;
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};

use crate::support::payload::{is_payload, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, echo, serve};

/// A carrier with a NIC, over memory that carries IP packets.
type Carrier = NicCarrier<MemoryCarrier, TlsEngine>;

/// The two ends of a network, with these addresses.
fn network(addresses: [&str; 2], seed: u64) -> [MemoryCarrier; 2] {
    let network = MemoryNetwork::new(MemoryOptions::new().datagram_bytes_max(1_500));
    let mut random = Random::new(seed);
    addresses.map(|address| {
        let mut random = Random::new(random.below(usize::MAX) as u64);
        let carrier = network.bind(address.parse().unwrap());
        carrier.with_fault(move |_| match random.below(100) {
            0 => Fault::Drop,
            1 => Fault::Duplicate,
            2 => Fault::Delay(1 + random.below(20)),
            _ => Fault::Deliver,
        })
    })
}

fn nic(packets: MemoryCarrier, config: DriverConfig, contexts_max: usize) -> Arc<Carrier> {
    let device = NicConfig {
        contexts: ContextLimits { contexts_max, cached_max: 8 },
        ..NicConfig::default()
    };
    let local = smt::Carrier::local_address(&packets);
    let nic = Nic::new(device, TlsEngine);
    Arc::new(NicCarrier::new(packets, local, config, NicKeys::new(64), nic))
}

/// Calls over two NICs with keys that last for few records, and resets one device in between.
/// Returns the carriers, and how many records each end's core was handed over opened.
fn call_all(
    addresses: [&str; 2],
    contexts_max: usize,
    is_trusted: bool,
) -> [(Arc<Carrier>, u64); 2] {
    let seed = seed();
    let mut random = Random::new(seed);
    let config = DriverConfig {
        queues: 3,
        is_trusted,
        // The far end has room for none, or for as many as it has for sending.
        receive_contexts: contexts_max,
        ..DriverConfig::default()
    };
    let near_config = DriverConfig { receive_contexts: 1_024, ..config };
    let [near, far] = network(addresses, seed);
    let near = nic(near, near_config, 1_024);
    let far = nic(far, config, contexts_max);
    let address: SocketAddr = smt::Carrier::local_address(&far);
    let limits = KeyLimits::new(1_024, 700, 1 << 20).unwrap();
    let credentials = Credentials::new();
    let server = credentials.server().key_limits(limits);
    let server = server.bind_over_blocking(Arc::<Carrier>::clone(&far)).unwrap();
    serve(&server, 1, echo);
    let client = credentials.client().key_limits(limits);
    let client = client.connect_over_blocking(Arc::<Carrier>::clone(&near), address);
    let client = client.unwrap();
    for number in 0..300 {
        let length = 8 + random.size(300_000);
        let reply = client.call(payload(number, length)).wait().unwrap();
        assert!(is_payload(&reply, number, length), "{length} bytes");
        if number % 50 == 49 {
            near.reset_device();
        }
    }
    let statistics = [client.statistics(), server.statistics()];
    let opened = statistics.map(|of| of.protocol.records_opened_by_carrier);
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
    [(near, opened[0]), (far, opened[1])]
}

#[test]
fn calls_are_answered_through_nics_over_both_ip_versions() {
    for addresses in [["192.0.2.1:7", "192.0.2.2:7"], ["[2001:db8::1]:7", "[2001:db8::2]:7"]] {
        for (carrier, taken) in call_all(addresses, 1_024, true) {
            let statistics = carrier.statistics();
            println!("{statistics:?} {:?}", carrier.counters());
            assert!(statistics.segments_offloaded > 100);
            let counters = carrier.counters();
            assert!(counters.packets > counters.segments);
            assert!(counters.packets_merged > counters.packets_received / 4);
            assert!(taken > 100, "records that the device has opened were taken: {taken}");
            assert!(counters.records_opened >= taken);
            assert!(counters.openings <= 2 * counters.arrivals);
        }
    }
}

#[test]
fn a_nic_without_room_for_contexts_is_noticed_by_nobody() {
    let [(near, taken_near), (far, taken_far)] = call_all(["192.0.2.1:7", "192.0.2.2:7"], 0, true);
    assert!(taken_near > 0 && near.counters().records_opened > 0);
    assert_eq!((taken_far, far.counters().openings), (0, 0));
    assert!(near.counters().records_sealed > 0);
    assert_eq!(far.counters().records_sealed, 0);
    assert!(far.statistics().records_in_software > 0);
}

#[test]
fn a_nic_that_is_not_trusted_cuts_segments_and_gets_no_key() {
    for (carrier, taken) in call_all(["192.0.2.1:7", "192.0.2.2:7"], 1_024, false) {
        assert_eq!((taken, carrier.counters().openings), (0, 0));
        assert_eq!(carrier.counters().receive_contexts_created, 0);
        let (statistics, counters) = (carrier.statistics(), carrier.counters());
        assert_eq!((counters.contexts_created, counters.records_sealed), (0, 0));
        assert_eq!(statistics.records_in_software, 0, "the core has sealed all");
        assert!(counters.packets > 2 * counters.segments);
        assert!(smt::Carrier::keys(&*carrier).is_none());
    }
}
