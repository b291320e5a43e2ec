// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier that only receives: its device is told of keys that were installed and removed before
//! it takes packets, and nothing leaves for that.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, KeyHandle, KeyStore, Path, ReceiveError, SendError, Wait,
};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_nic_driver::{DriverConfig, NicCarrier, NicKeys};

use super::rig::{DeviceOptions, Message, Rig, SessionKey};

const BYTES: usize = 600;

/// The wire before a device: packets that come, and a count of those that left.
#[derive(Default)]
struct Wire {
    coming: Mutex<VecDeque<Vec<u8>>>,
    left: Mutex<usize>,
}

impl Carrier for Wire {
    fn send(&self, _: &Batch<'_>) -> Result<(), SendError> {
        *self.left.lock().unwrap() += 1;
        Ok(())
    }

    fn receive(&self, sink: &mut dyn FnMut(Arrival<'_>), _: Wait) -> Result<usize, ReceiveError> {
        let packet = self.coming.lock().unwrap().pop_front();
        let Some(packet) = packet else {
            return Ok(0);
        };
        sink(Arrival::datagram(Path::to("192.0.2.1:7".parse().unwrap()), &packet));
        Ok(1)
    }

    fn local_address(&self) -> SocketAddr {
        "192.0.2.2:9".parse().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1_500)
    }
}

/// A receiving host, and a message of one record for it.
struct Host {
    wire: Arc<Wire>,
    carrier: NicCarrier<Arc<Wire>, TlsEngine>,
    keys: Arc<NicKeys>,
    key: SessionKey,
    sealed: Vec<u8>,
    packet: Vec<u8>,
}

impl Host {
    fn new() -> Self {
        let mut rig = Rig::new(DriverConfig::default(), DeviceOptions::default());
        let key = SessionKey::new(&rig, 6);
        let message = Message::new(&key, 6, 1, BYTES);
        rig.post(&message);
        rig.run();
        let (wire, keys) = (Arc::new(Wire::default()), NicKeys::new(10));
        let carrier = NicCarrier::new(
            Arc::clone(&wire),
            wire.local_address(),
            DriverConfig::default(),
            Arc::clone(&keys),
            Nic::new(NicConfig::default(), TlsEngine),
        );
        Self { wire, carrier, keys, key, sealed: message.sealed(), packet: rig.packets.remove(0) }
    }

    fn install(&self) -> KeyHandle {
        let key = self.key.receiving(BYTES);
        self.keys.install_receiving(&key).unwrap()
    }

    /// The packet comes: the key that has opened its record, and whether it is as it was sent.
    fn receive(&self) -> (Option<KeyHandle>, bool) {
        self.wire.coming.lock().unwrap().push_back(self.packet.clone());
        let mut arrived = Vec::new();
        let mut sink = |arrival: Arrival<'_>| {
            let opened = arrival.opened.first().map(|opened| opened.key);
            arrived.push((opened, arrival.bytes[36..] == self.sealed));
        };
        self.carrier.receive(&mut sink, Wait::Never).unwrap();
        let [arrived] = arrived[..] else {
            panic!("{} arrivals of one packet", arrived.len());
        };
        arrived
    }
}

#[test]
fn a_packet_behind_the_removal_of_its_key_goes_up_as_it_came() {
    let host = Host::new();
    let handle = host.install();
    assert_eq!(host.receive(), (Some(handle), false));
    host.keys.remove(handle);
    assert_eq!(host.receive(), (None, true));
    assert_eq!(host.carrier.receive_contexts(), 0);
    assert_eq!(host.carrier.statistics().opened_without_key, 0);
    assert_eq!(*host.wire.left.lock().unwrap(), 0);
}

#[test]
fn a_packet_behind_the_installation_of_its_key_is_opened_by_that_key() {
    let host = Host::new();
    assert_eq!(host.receive(), (None, true));
    let mut before = None;
    for _ in 0..3 {
        // The session rests and comes back: it has the key by another handle.
        before.into_iter().for_each(|handle| host.keys.remove(handle));
        let handle = host.install();
        assert_eq!(host.receive(), (Some(handle), false));
        before = Some(handle);
    }
    assert_eq!(host.carrier.receive_contexts(), 1);
    assert_eq!(host.carrier.statistics().receive_contexts_refused, 0);
    assert_eq!(*host.wire.left.lock().unwrap(), 0, "contexts are no packets");
}

#[test]
fn a_device_that_was_reset_has_its_keys_again_before_it_takes_packets() {
    let host = Host::new();
    let handle = host.install();
    assert_eq!(host.receive(), (Some(handle), false));
    host.carrier.reset_device();
    assert_eq!(host.receive(), (Some(handle), false));
}

#[test]
fn a_device_loses_a_key_that_was_removed_although_nothing_comes() {
    let host = Host::new();
    let handle = host.install();
    host.receive();
    host.keys.remove(handle);
    host.carrier.receive(&mut |_| {}, Wait::Never).unwrap();
    assert_eq!(host.carrier.receive_contexts(), 0);
}
