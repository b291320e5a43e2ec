// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier seals records and cuts streams, as a network card with a TLS engine does: peers notice
//! nothing, whichever of them has such a carrier.

use std::net::SocketAddr;
use std::sync::Arc;

use smt::KeyLimits;
use smt_carrier::Carrier;
use smt_io::{Fault, MemoryCarrier, MemoryNetwork, MemoryOptions};
use smt_testkit::{SealingCarrier, SealingKeys};

use crate::support::payload::{is_payload, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, echo, serve};

/// Room for keys at each end: nobody runs out of it, or some do.
const ROOMY: usize = 16;

/// A carrier over memory that seals with this many keys, and its keys.
fn sealing(memory: MemoryCarrier, room: usize) -> (Arc<dyn Carrier>, Arc<SealingKeys>) {
    let carrier = SealingCarrier::new(memory, room);
    let keys = Arc::clone(carrier.sealing_keys());
    (Arc::new(carrier), keys)
}

/// Loses, repeats and delays some datagrams.
fn faulty(carrier: MemoryCarrier, seed: u64) -> MemoryCarrier {
    let mut random = Random::new(seed);
    carrier.with_fault(move |_| match random.below(100) {
        0 => Fault::Drop,
        1 => Fault::Duplicate,
        2 => Fault::Delay(1 + random.below(20)),
        _ => Fault::Deliver,
    })
}

/// Calls of some lengths over two carriers that seal, with keys that last for few records. Returns
/// how many records each carrier has sealed.
fn call_all(
    network: [MemoryCarrier; 2],
    rooms: [usize; 2],
    lengths: &[usize],
    limits: KeyLimits,
) -> [u64; 2] {
    let [near, far] = network;
    let address: SocketAddr = Carrier::local_address(&far);
    let (far, far_keys) = sealing(far, rooms[1]);
    let (near, near_keys) = sealing(near, rooms[0]);
    let credentials = Credentials::new();
    let server = credentials.server().key_limits(limits);
    let server = server.bind_over_blocking(far).unwrap();
    serve(&server, 1, echo);
    let client = credentials.client().key_limits(limits);
    let client = client.connect_over_blocking(near, address).unwrap();
    for (number, length) in (0..).zip(lengths) {
        let reply = client.call(payload(number, *length)).wait().unwrap();
        assert!(is_payload(&reply, number, *length), "{length} bytes");
    }
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
    [near_keys.sealed(), far_keys.sealed()]
}

fn datagrams_of(bytes: usize) -> [MemoryCarrier; 2] {
    let network = MemoryNetwork::new(MemoryOptions::new().datagram_bytes_max(bytes));
    ["192.0.2.1:1", "192.0.2.2:1"].map(|address| network.bind(address.parse().unwrap()))
}

/// Lengths around the ends of datagrams, of records and of streams.
fn lengths_around_every_boundary() -> Vec<usize> {
    let near = |length: usize| length.saturating_sub(70)..length + 70;
    let boundaries = [8, 1_100, 1_436, 2_900, 16_384, 32_768, 65_507, 131_072];
    let near = boundaries.into_iter().flat_map(|at| near(at).step_by(7));
    near.map(|length| length.max(8)).collect()
}

#[test]
fn messages_of_every_length_arrive_by_carriers_that_seal() {
    for datagram in [1_472, 8_972] {
        let network = datagrams_of(datagram);
        let lengths = lengths_around_every_boundary();
        let limits = KeyLimits::default();
        let sealed = call_all(network, [ROOMY; 2], &lengths, limits);
        println!("datagrams of {datagram}: carriers sealed {sealed:?} records");
        let records: usize = lengths.iter().map(|length| length.div_ceil(16_384)).sum();
        assert!(sealed.iter().all(|count| *count as usize >= records));
    }
}

#[test]
fn a_carrier_may_seal_for_one_side_alone() {
    for rooms in [[ROOMY, 0], [0, ROOMY]] {
        let limits = KeyLimits::default();
        let sealed = call_all(datagrams_of(1_472), rooms, &[100, 200_000], limits);
        for side in 0..2 {
            assert_eq!(sealed[side] > 0, rooms[side] > 0);
        }
    }
}

#[test]
fn losses_are_repaired_and_keys_renewed_while_carriers_seal() {
    let seed = seed();
    let mut random = Random::new(seed);
    let lengths: Vec<usize> = (0..400).map(|_| 8 + random.size(400_000)).collect();
    let limits = KeyLimits::new(1_024, 700, 1 << 20).unwrap();
    // A store of one key has no room for the next one while the old one is in use.
    for rooms in [[ROOMY; 2], [1, 1]] {
        let [near, far] = datagrams_of(1_472);
        let network = [faulty(near, seed), faulty(far, seed + 1)];
        let sealed = call_all(network, rooms, &lengths, limits);
        println!("room for {rooms:?} keys: carriers sealed {sealed:?} records");
        assert!(sealed.iter().all(|count| *count > 0));
    }
}
