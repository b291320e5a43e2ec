// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The whole transport in a device (SMT paper §7): the production core behind rings that only
//! messages cross.
//!
//! A descriptor has 48 bytes, as those of `smt-nic`, and names a request and the place of its
//! reply; a completion has 16.
//!
//! | off | size | field of a descriptor |
//! |--:|--:|:--|
//! | 0 | 8 | request address |
//! | 8 | 4 | request bytes |
//! | 16 | 8 | reply address |
//! | 24 | 4 | bytes of room there |
//! | 40 | 8 | cookie, which comes back in the completion |
//!
//! Off 0 of a completion has the cookie, off 8 the status (0 done, 1 failed), off 12 the bytes of
//! the reply.

use std::collections::BTreeMap;

use bytes::Bytes;
use smt_nic::{DmaFault, HostMemory};
use smt_proto::{Event, RpcId};
use smt_testkit::EndpointPair;

use crate::message_host::{COMPLETION, DESCRIPTOR, RingMemory, u32_at, u64_at};
use crate::staged_exchange::StagedExchange;

/// The device: the core of a client, a session, and what is under way.
pub(crate) struct TransportDevice {
    /// The core, and the server that it talks to.
    pub(crate) exchange: StagedExchange,
    under_way: BTreeMap<RpcId, ReplyPlace>,
    fetched: u64,
    /// Completions that were written so far.
    pub(crate) completed: u64,
    pub(crate) counters: RingCounters,
}

/// Where a reply goes.
struct ReplyPlace {
    at: u64,
    room: usize,
    cookie: u64,
}

/// The work of the rings. Every field only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RingCounters {
    /// Descriptors that were fetched.
    pub descriptors: u64,
    /// Completions that were written.
    pub completions: u64,
    /// Bytes over PCIe, both ways.
    pub pcie_bytes: u64,
}

impl TransportDevice {
    pub(crate) fn new(pair: EndpointPair) -> Self {
        Self {
            exchange: StagedExchange::new(pair),
            under_way: BTreeMap::new(),
            fetched: 0,
            completed: 0,
            counters: RingCounters::default(),
        }
    }

    /// Fetches what the host has posted, and lets it leave. A request that cannot be read fails.
    pub(crate) fn turn(&mut self, memory: &mut RingMemory, posted: u64) -> Result<(), DmaFault> {
        while self.fetched < posted {
            let mut descriptor = [0; DESCRIPTOR];
            self.read(memory, memory.descriptor_at(self.fetched), &mut descriptor)?;
            self.fetched += 1;
            self.counters.descriptors += 1;
            let place = ReplyPlace {
                at: u64_at(&descriptor, 16),
                room: u32_at(&descriptor, 24) as usize,
                cookie: u64_at(&descriptor, 40),
            };
            self.begin(memory, u64_at(&descriptor, 0), u32_at(&descriptor, 8), place)?;
        }
        self.exchange.client_sends();
        self.exchange.server_answers();
        self.exchange.client_takes();
        while let Some(event) = self.exchange.pair.client.poll_event() {
            let (rpc, body) = match event {
                Event::Reply { rpc, body, .. } => (rpc, Some(body)),
                Event::CallFailed { rpc, .. } => (rpc, None),
                _ => continue,
            };
            if let Some(place) = self.under_way.remove(&rpc) {
                self.complete(memory, &place, body)?;
            }
        }
        Ok(())
    }

    /// A call begins; one whose request is nowhere, or for which the core has no room, ends.
    fn begin(
        &mut self,
        memory: &mut RingMemory,
        at: u64,
        length: u32,
        place: ReplyPlace,
    ) -> Result<(), DmaFault> {
        if length > REQUEST_MAX {
            return self.complete(memory, &place, None);
        }
        let mut request = vec![0; length as usize];
        if self.read(memory, at, &mut request).is_err() {
            return self.complete(memory, &place, None);
        }
        let EndpointPair { client, sessions, now, .. } = &mut self.exchange.pair;
        match client.call(*now, sessions[0], Bytes::from(request), None) {
            Ok(rpc) => {
                self.under_way.insert(rpc, place);
                Ok(())
            }
            Err(_) => self.complete(memory, &place, None),
        }
    }

    /// Writes a reply to its place, and the completion.
    fn complete(
        &mut self,
        memory: &mut RingMemory,
        place: &ReplyPlace,
        body: Option<Bytes>,
    ) -> Result<(), DmaFault> {
        let body = body.filter(|body| body.len() <= place.room);
        let written = body.filter(|body| self.write(memory, place.at, body).is_ok());
        let mut completion = [0; COMPLETION];
        completion[..8].copy_from_slice(&place.cookie.to_be_bytes());
        completion[11] = u8::from(written.is_none());
        let length = written.map_or(0, |body| body.len()) as u32;
        completion[12..].copy_from_slice(&length.to_be_bytes());
        self.write(memory, memory.completion_at(self.completed), &completion)?;
        self.completed += 1;
        self.counters.completions += 1;
        Ok(())
    }

    fn read(&mut self, memory: &mut RingMemory, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        self.counters.pcie_bytes += into.len() as u64;
        memory.read(at, into)
    }

    fn write(&mut self, memory: &mut RingMemory, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.counters.pcie_bytes += bytes.len() as u64;
        memory.write(at, bytes)
    }
}

/// The longest request that the device takes: memory is not made by a descriptor's word alone.
const REQUEST_MAX: u32 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_host::MessageHost;

    #[test]
    fn replies_that_came_through_the_rings_are_the_requests() {
        let mut device = TransportDevice::new(EndpointPair::new(1_472, false));
        let mut host = MessageHost::new(4, 5_000);
        for number in 0..4 {
            let [request, _] = host.bodies(number).map(|at| at as usize);
            host.memory.bytes[request..request + 5_000].fill(number as u8 + 1);
            host.post();
        }
        while device.completed < 4 {
            device.turn(&mut host.memory, host.posted).expect("rings in the host's memory");
        }
        for number in 0..4 {
            let [request, reply] = host.bodies(number).map(|at| at as usize);
            let bytes = &host.memory.bytes;
            assert_eq!(bytes[request..request + 5_000], bytes[reply..reply + 5_000]);
        }
        let reaped: Vec<_> = (0..4).filter_map(|_| host.reap()).collect();
        assert_eq!(reaped.iter().sum::<u64>(), 6, "{reaped:?}");
    }

    #[test]
    fn a_request_that_is_nowhere_and_a_reply_without_room_fail_alone() {
        let mut device = TransportDevice::new(EndpointPair::new(1_472, true));
        let mut host = MessageHost::new(4, 100);
        for _ in 0..3 {
            host.post();
        }
        host.memory.bytes[..8].fill(0xFF);
        host.memory.bytes[DESCRIPTOR + 24..DESCRIPTOR + 28].fill(0);
        while device.completed < 3 {
            device.turn(&mut host.memory, host.posted).expect("rings in the host's memory");
        }
        let mut reaped: Vec<_> = (0..3).map(|_| host.reap()).collect();
        reaped.sort();
        assert_eq!(reaped, [None, None, Some(2)]);
    }
}
