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
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt_nic::{DmaFault, HostMemory};
use smt_proto::{Event, RpcId};
use smt_testkit::EndpointPair;

/// The device: the core of a client, a session, and what is under way.
struct TransportDevice {
    /// The core, and the server that it talks to.
    pair: EndpointPair,
    under_way: BTreeMap<RpcId, ReplyPlace>,
    fetched: u64,
    completed: u64,
    counters: RingCounters,
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
    fn new(mut pair: EndpointPair) -> Self {
        pair.connect(1);
        Self {
            pair,
            under_way: BTreeMap::new(),
            fetched: 0,
            completed: 0,
            counters: RingCounters::default(),
        }
    }

    /// Fetches what the host has posted, and lets it leave. A request that cannot be read fails.
    fn turn(&mut self, memory: &mut Memory, posted: u64) -> Result<(), DmaFault> {
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
            self.begin(
                memory,
                u64_at(&descriptor, 0),
                u32_at(&descriptor, 8),
                place,
            )?;
        }
        self.pair.client_sends();
        self.pair.server_answers();
        self.pair.client_takes();
        while let Some(event) = self.pair.client.poll_event() {
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
        memory: &mut Memory,
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
        let EndpointPair {
            client,
            sessions,
            now,
            ..
        } = &mut self.pair;
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
        memory: &mut Memory,
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

    fn read(&mut self, memory: &mut Memory, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        self.counters.pcie_bytes += into.len() as u64;
        memory.read(at, into)
    }

    fn write(&mut self, memory: &mut Memory, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.counters.pcie_bytes += bytes.len() as u64;
        memory.write(at, bytes)
    }
}

/// The host's memory: two rings, then a request and a place for a reply of each slot.
struct Memory {
    bytes: Vec<u8>,
    slots: u64,
}

impl Memory {
    fn new(slots: usize, length: usize) -> Self {
        let bytes = slots * (DESCRIPTOR + COMPLETION + 2 * length);
        Self {
            bytes: vec![7; bytes],
            slots: slots as u64,
        }
    }

    fn descriptor_at(&self, number: u64) -> u64 {
        number % self.slots * DESCRIPTOR as u64
    }

    fn completion_at(&self, number: u64) -> u64 {
        self.slots * DESCRIPTOR as u64 + number % self.slots * COMPLETION as u64
    }

    fn place(&self, at: u64, length: usize) -> Result<std::ops::Range<usize>, DmaFault> {
        let begin = usize::try_from(at).map_err(|_| DmaFault { at })?;
        let end = begin
            .checked_add(length)
            .filter(|end| *end <= self.bytes.len());
        end.map(|end| begin..end).ok_or(DmaFault { at })
    }
}

impl HostMemory for Memory {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        let place = self.place(at, into.len())?;
        into.copy_from_slice(&self.bytes[place]);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let place = self.place(at, bytes.len())?;
        self.bytes[place].copy_from_slice(bytes);
        Ok(())
    }
}

/// The host: it posts descriptors and reads completions.
struct MessageHost {
    memory: Memory,
    length: usize,
    posted: u64,
    reaped: u64,
}

impl MessageHost {
    fn new(slots: usize, length: usize) -> Self {
        Self {
            memory: Memory::new(slots, length),
            length,
            posted: 0,
            reaped: 0,
        }
    }

    /// Where the request of a slot is, and where its reply goes.
    fn bodies(&self, number: u64) -> [u64; 2] {
        let (slots, length) = (self.memory.slots, self.length as u64);
        let front = slots * (DESCRIPTOR + COMPLETION) as u64;
        let request = front + number % slots * 2 * length;
        [request, request + length]
    }

    fn post(&mut self) {
        let [request, reply] = self.bodies(self.posted);
        let at = self.memory.descriptor_at(self.posted) as usize;
        let descriptor = &mut self.memory.bytes[at..at + DESCRIPTOR];
        let length = (self.length as u32).to_be_bytes();
        descriptor[..8].copy_from_slice(&request.to_be_bytes());
        descriptor[8..12].copy_from_slice(&length);
        descriptor[16..24].copy_from_slice(&reply.to_be_bytes());
        descriptor[24..28].copy_from_slice(&length);
        descriptor[40..].copy_from_slice(&self.posted.to_be_bytes());
        self.posted += 1;
    }

    /// Reads a completion: its cookie, if the call has succeeded.
    fn reap(&mut self) -> Option<u64> {
        let at = self.memory.completion_at(self.reaped) as usize;
        let completion = &self.memory.bytes[at..at + COMPLETION];
        self.reaped += 1;
        let is_done = u32_at(completion, 8) == 0 && u32_at(completion, 12) as usize == self.length;
        is_done.then(|| u64_at(completion, 0))
    }
}

/// Where the transport is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransportPlace {
    /// In the host, which seals and opens.
    Host,
    /// In the host; a NIC seals and opens, in no time.
    HostBehindCipher,
    /// In the device.
    Device,
}

/// The host's work for a call at the calling end, measured here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostWork {
    /// The host's time, the least mean of some rounds.
    pub time: Duration,
    /// Datagrams of a call, both ways; with the transport in the device they are its own.
    pub datagrams: f64,
    /// The rings' work for a call; none with the transport in the host.
    pub rings: RingCounters,
}

/// Measures calls of this length, 32 at a time. Datagrams have 1,472 bytes at most.
///
/// # Panics
/// If a call fails.
#[must_use]
pub fn measured(length: usize, rounds: u32, place: TransportPlace) -> HostWork {
    let pair = EndpointPair::new(1_472, place != TransportPlace::Host);
    match place {
        TransportPlace::Device => in_device(length, rounds, pair),
        _ => in_host(length, rounds, pair),
    }
}

fn in_host(length: usize, rounds: u32, mut pair: EndpointPair) -> HostWork {
    pair.connect(1);
    let request = Bytes::from(vec![7; length]);
    let before = pair.datagrams;
    let mut round = || {
        let (mut time, mut ended) = (Duration::ZERO, 0);
        let began = Instant::now();
        for _ in 0..AT_ONCE {
            let call = pair
                .client
                .call(pair.now, pair.sessions[0], request.clone(), None);
            call.expect("nothing stands in the way of a call");
        }
        time += began.elapsed();
        while ended < AT_ONCE {
            let began = Instant::now();
            pair.client_sends();
            time += began.elapsed();
            pair.server_answers();
            let began = Instant::now();
            pair.client_takes();
            while let Some(event) = pair.client.poll_event() {
                ended += u64::from(matches!(event, Event::Reply { .. }));
            }
            time += began.elapsed();
        }
        time / AT_ONCE as u32
    };
    let time = (0..rounds).map(|_| round()).min().unwrap_or_default();
    HostWork {
        time,
        datagrams: (pair.datagrams - before) as f64 / (AT_ONCE * u64::from(rounds)) as f64,
        rings: RingCounters::default(),
    }
}

fn in_device(length: usize, rounds: u32, pair: EndpointPair) -> HostWork {
    let mut device = TransportDevice::new(pair);
    let mut host = MessageHost::new(AT_ONCE as usize, length);
    let before = device.pair.datagrams;
    let mut round = || {
        let began = Instant::now();
        for _ in 0..AT_ONCE {
            host.post();
        }
        let mut time = began.elapsed();
        while device.completed < host.posted {
            let turned = device.turn(&mut host.memory, host.posted);
            turned.expect("rings in the host's memory");
        }
        let began = Instant::now();
        let first = host.reaped;
        // Replies come in any order, and each once.
        let mut cookies: u64 = 0;
        for _ in 0..AT_ONCE {
            let cookie = host.reap().expect("a call that has succeeded");
            cookies |= 1 << (cookie - first);
        }
        time += began.elapsed();
        assert_eq!(cookies, (1 << AT_ONCE) - 1, "a completion came twice");
        time / AT_ONCE as u32
    };
    let time = (0..rounds).map(|_| round()).min().unwrap_or_default();
    let calls = AT_ONCE * u64::from(rounds);
    let rings = device.counters;
    HostWork {
        time,
        datagrams: (device.pair.datagrams - before) as f64 / calls as f64,
        rings: RingCounters {
            descriptors: rings.descriptors / calls,
            completions: rings.completions / calls,
            pcie_bytes: rings.pcie_bytes / calls,
        },
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(value)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(value)
}

const DESCRIPTOR: usize = 48;
const COMPLETION: usize = 16;
/// Calls that are under way at once.
const AT_ONCE: u64 = 32;
/// The longest request that the device takes: memory is not made by a descriptor's word alone.
const REQUEST_MAX: u32 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_through_the_rings_is_one_descriptor_and_one_completion() {
        for length in [0, 64, 3_000] {
            let work = measured(length, 2, TransportPlace::Device);
            let rings = RingCounters {
                descriptors: 1,
                completions: 1,
                pcie_bytes: 48 + 16 + 2 * length as u64,
            };
            assert_eq!(work.rings, rings, "{length} B");
        }
    }

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
            device
                .turn(&mut host.memory, host.posted)
                .expect("rings in the host's memory");
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
            device
                .turn(&mut host.memory, host.posted)
                .expect("rings in the host's memory");
        }
        let mut reaped: Vec<_> = (0..3).map(|_| host.reap()).collect();
        reaped.sort();
        assert_eq!(reaped, [None, None, Some(2)]);
    }
}
