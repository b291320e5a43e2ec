// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byte streams as a transport of a datacenter.

use smt_proto::Time;

use super::messenger::{Arrival, Messenger};
use crate::baseline::{StreamHost, StreamOptions};
use crate::net::packet::{HostId, Packet};
use crate::net::world::{Burst, Host};

/// A host that sends messages over byte streams.
pub struct StreamMessenger {
    host: StreamHost,
    next: u64,
}

impl StreamMessenger {
    /// A host that is connected with all of so many hosts.
    pub fn new(id: HostId, hosts: u32, options: StreamOptions) -> Self {
        Self { host: StreamHost::new(id, hosts, options), next: 0 }
    }
}

impl Host for StreamMessenger {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.host.receive(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.host.next_timeout()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        self.host.transmit(now)
    }
}

impl Messenger for StreamMessenger {
    fn prepare(&mut self, _now: Time, _peers: &[HostId]) {}

    fn is_ready(&self) -> bool {
        true
    }

    fn send(&mut self, now: Time, to: HostId, length: u32) -> Option<u64> {
        self.next += 1;
        self.host.send(now, to, self.next, length);
        Some(self.next)
    }

    fn take_arrivals(&mut self, taken: &mut Vec<Arrival>) {
        let delivered = self.host.take_delivered().into_iter();
        taken.extend(delivered.map(|delivered| Arrival {
            from: delivered.from,
            name: delivered.message,
            length: delivered.length,
        }));
    }
}
