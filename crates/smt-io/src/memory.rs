// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams between the threads of one process, lost where a real network would lose them.
//!
//! 1. A carrier cuts a transmit into datagrams and passes each by its fault rule, if it has one.
//! 2. Each goes to the mailbox of its destination; a full mailbox drops and counts, as a socket
//!    does.
//! 3. The destination's carrier takes one, or a run of equal ones of one path, as GRO would.
//!
//! Deterministic as far as the caller is: one thread and a seeded rule always see the same. Not
//! here: delays in time, bandwidth, topology.

mod fault;
mod mailbox;
mod network;
mod options;
#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use network::MemoryNetwork;
pub use options::MemoryOptions;

use crate::limits::SEGMENTS_MAX;
use crate::receive_buffer::ReceiveBuffer;
use crate::statistics::{Counters, Statistics};
use fault::FaultLine;
use mailbox::{Datagram, Mailbox};
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Marks, Path, Readiness, ReceiveError, SendError, Wait,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// One end of a [`MemoryNetwork`].
#[derive(Debug)]
pub struct MemoryCarrier {
    network: MemoryNetwork,
    mailbox: Arc<Mailbox>,
    /// Where peers reach this end; never empty, the first is the one it sends from by itself.
    addresses: Vec<SocketAddr>,
    faults: Option<Mutex<FaultLine>>,
    buffer: ReceiveBuffer,
    counters: Counters,
}

impl MemoryCarrier {
    /// Two ends of a network of their own.
    #[must_use]
    pub fn pair() -> (Self, Self) {
        Self::pair_with(MemoryOptions::new())
    }

    /// Two ends of a network of their own with these options.
    #[must_use]
    pub fn pair_with(options: MemoryOptions) -> (Self, Self) {
        let network = MemoryNetwork::new(options);
        (network.bind(PAIR[0]), network.bind(PAIR[1]))
    }

    /// Passes every datagram that this end sends by `rule`, which may change its bytes and says
    /// what becomes of it.
    #[must_use]
    pub fn with_fault(mut self, rule: impl FnMut(&mut Vec<u8>) -> Fault + Send + 'static) -> Self {
        self.faults = Some(Mutex::new(FaultLine::new(rule)));
        self
    }

    /// Makes this end reachable at `address` too. A peer is answered from the address it called.
    ///
    /// # Panics
    /// If the address is taken.
    #[must_use]
    pub fn also_at(mut self, address: SocketAddr) -> Self {
        let address = Path::to(address).remote;
        self.network.register(address, &self.mailbox);
        self.addresses.push(address);
        self
    }

    /// Counts of this end's work so far. A call to send or receive counts as one system call.
    pub fn statistics(&self) -> Statistics {
        Statistics { datagrams_dropped: self.mailbox.dropped.value(), ..self.counters.snapshot() }
    }

    fn new(network: MemoryNetwork, mailbox: Arc<Mailbox>, address: SocketAddr) -> Self {
        Self {
            network,
            mailbox,
            addresses: vec![address],
            faults: None,
            buffer: ReceiveBuffer::default(),
            counters: Counters::default(),
        }
    }

    /// The address to send from: the one of ours that `local` names, else the first.
    fn source(&self, local: Option<IpAddr>) -> SocketAddr {
        let named = self.addresses.iter().find(|address| Some(address.ip()) == local);
        named.copied().unwrap_or(self.addresses[0])
    }

    /// Puts datagrams into the mailboxes of their destinations.
    fn deliver(&self, datagrams: Vec<Datagram>) {
        let mut datagrams = datagrams.into_iter().peekable();
        while let Some(first) = datagrams.next() {
            let to = first.to;
            let mut run = vec![first];
            while let Some(next) = datagrams.next_if(|datagram| datagram.to == to) {
                run.push(next);
            }
            match self.network.mailbox(to) {
                Some(mailbox) => mailbox.put(run),
                None => self.mailbox.hint_unreachable(to),
            }
        }
    }
}

impl Carrier for MemoryCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let (segment_size, bytes) = (batch.plain_segment_size(), batch.bytes);
        self.counters.sending.calls.add(1);
        let largest = segment_size.min(bytes.len());
        if largest > self.network.options().datagram_bytes_max {
            return Err(SendError::TooLarge);
        }
        let from = self.source(batch.path.local);
        let to = batch.path.remote;
        let datagrams = bytes.chunks(segment_size).map(|segment| Datagram {
            from,
            to,
            marks: Marks::NONE,
            bytes: segment.to_vec(),
        });
        let datagrams = match &self.faults {
            Some(line) => line.lock().unwrap_or_else(PoisonError::into_inner).pass(datagrams),
            None => datagrams.collect(),
        };
        self.counters.sending.note(bytes.len(), segment_size);
        self.deliver(datagrams);
        Ok(())
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        let receiving = &self.counters.receiving;
        receiving.calls.add(1);
        let coalesce = self.network.options().coalesce;
        self.buffer.lend(|buffer| {
            let taken = self.mailbox.take(buffer, wait, coalesce);
            receiving.truncated.add(taken.truncated);
            if let Some(remote) = taken.unreachable {
                receiving.hints.add(1);
                return Err(ReceiveError::Unreachable { remote: Some(remote) });
            }
            let Some(received) = taken.received else {
                return Ok(0);
            };
            receiving.note(received.length, received.segment_size);
            sink(received.arrival(buffer));
            Ok(1)
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.addresses[0]
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::of([self.mailbox.descriptor(), None])
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.network.options().datagram_bytes_max)
            .with_segments_max(SEGMENTS_MAX as u16)
            .with_trims(true)
    }
}

impl Drop for MemoryCarrier {
    fn drop(&mut self) {
        for address in &self.addresses {
            self.network.unregister(address);
        }
    }
}

/// Addresses of a pair: of the range for documentation (RFC 5737), so that no host has them.
const PAIR: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 1),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 2),
];
