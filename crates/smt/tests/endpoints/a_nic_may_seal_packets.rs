// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints behind the model of a NIC that seals whole packets by PSP: the sessions agree on it,
//! and their calls go on while packets are lost, the device is reset and its keys are replaced.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use smt::KeyLimits;
use smt_io::{Fault, MemoryCarrier, MemoryNetwork, MemoryOptions};
use smt_nic::psp::{MasterKey, PspEngine};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};

use crate::support::payload::{is_payload, payload};
use crate::support::random::{Random, seed};
use crate::support::{Credentials, echo, serve};

/// Calls of a test, one after another.
const CALLS: u64 = 200;

/// A carrier with a NIC, over memory that carries IP packets.
type Carrier = NicCarrier<MemoryCarrier, (TlsEngine, PspEngine)>;

/// Packets that were on the wire.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<Vec<u8>>>>);

impl Wire {
    /// The fault of a packet: one in a hundred each is lost, comes twice or late.
    fn fault(&self, packet: &[u8], random: &mut Random) -> Fault {
        self.0.lock().unwrap().push(packet.to_vec());
        match random.below(100) {
            0 => Fault::Drop,
            1 => Fault::Duplicate,
            2 => Fault::Delay(1 + random.below(20)),
            _ => Fault::Deliver,
        }
    }

    /// Whether a packet held these bytes.
    fn has(&self, bytes: &[u8]) -> bool {
        let packets = self.0.lock().unwrap();
        let holds = |packet: &Vec<u8>| packet.windows(bytes.len()).any(|part| part == bytes);
        packets.iter().any(holds)
    }
}

/// A carrier at this address that seals packets if it has a device key, on a network that loses
/// some.
fn nic(
    network: &MemoryNetwork,
    address: &str,
    key: Option<MasterKey>,
    wire: &Wire,
    mut random: Random,
) -> Arc<Carrier> {
    let config = DriverConfig { psp: key.is_some(), ..DriverConfig::default() };
    let (packets, wire) = (network.bind(address.parse().unwrap()), wire.clone());
    let packets = packets.with_fault(move |packet| wire.fault(packet, &mut random));
    let local = smt::Carrier::local_address(&packets);
    let nic = Nic::new(NicConfig::default(), (TlsEngine, PspEngine));
    let carrier = NicCarrier::new(packets, local, config, NicKeys::new(64), nic);
    if let Some(key) = key {
        carrier.rotate_device_key(key);
    }
    Arc::new(carrier)
}

fn key(random: &mut Random) -> MasterKey {
    MasterKey::new([0; 32].map(|_: u8| random.below(256) as u8))
}

/// Calls between these addresses, of which a side seals packets as `psp` says. Returns the two
/// carriers. Nothing of the last body was on the wire in the clear.
fn call_all(addresses: [&str; 2], psp: [bool; 2]) -> [Arc<Carrier>; 2] {
    let network = MemoryNetwork::new(MemoryOptions::new().datagram_bytes_max(1_500));
    let wire = Wire::default();
    let mut random = Random::new(seed());
    let [near, far] = [0, 1].map(|end| {
        let key = psp[end].then(|| key(&mut random));
        let faults = Random::new(random.next());
        nic(&network, addresses[end], key, &wire, faults)
    });
    let address: SocketAddr = smt::Carrier::local_address(&far);
    let limits = KeyLimits::new(4_096, 1_000, 1 << 20).unwrap();
    let credentials = Credentials::new();
    let server = credentials.server().key_limits(limits);
    let server = server.bind_over_blocking(Arc::<Carrier>::clone(&far)).unwrap();
    serve(&server, 1, echo);
    let client = credentials.client().key_limits(limits);
    let client = client.connect_over_blocking(Arc::<Carrier>::clone(&near), address);
    let client = client.unwrap();
    for number in 0..CALLS {
        let length = 64 + random.size(200_000);
        let reply = client.call(payload(number, length)).wait().unwrap();
        assert!(is_payload(&reply, number, length), "{length} bytes");
        match number % 50 {
            20 => near.reset_device(),
            30 if psp[0] => near.rotate_device_key(key(&mut random)),
            40 if psp[1] => far.rotate_device_key(key(&mut random)),
            _ => {}
        }
    }
    let body = payload(CALLS, 64);
    let echoed = client.call(body.clone()).wait().unwrap();
    assert_eq!(echoed[..], body);
    assert!(!wire.has(&body[20..40]), "a part of a body is in the clear");
    assert_eq!(client.statistics().protocol.sessions_begun, 1);
    [near, far]
}

#[test]
fn calls_are_answered_in_sealed_packets_over_both_ip_versions() {
    for addresses in [["192.0.2.1:7", "192.0.2.2:7"], ["[2001:db8::1]:7", "[2001:db8::2]:7"]] {
        for carrier in call_all(addresses, [true; 2]) {
            let counters = carrier.counters();
            println!("{:?} {counters:?}", carrier.statistics());
            // A body takes a packet at least; the first ones may leave before both ends agree.
            assert!(counters.psp_opened > CALLS / 2);
            assert_eq!((counters.psp_not_authentic, counters.openings), (0, 0));
        }
    }
}

#[test]
fn records_are_sealed_if_one_end_alone_has_psp() {
    for psp in [[true, false], [false, true]] {
        for carrier in call_all(["192.0.2.1:7", "192.0.2.2:7"], psp) {
            let counters = carrier.counters();
            assert_eq!(counters.psp_opened, 0);
            assert!(counters.records_sealed > CALLS / 2);
        }
    }
}
