// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that speaks SMT: a production endpoint, a clock of its own, and an application.

use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Capabilities, Marks, Path, Transmit};
use smt_proto::{Endpoint, Event, Time, TransmitBuffer};

use crate::net::chunk::Chunk;
use crate::net::clock::Clock;
use crate::net::nic_port::NicPort;
use crate::net::packet::{HostId, Packet, Protocol};
use crate::net::socket::Socket;
use crate::net::world::{Burst, Host};

/// The user of the endpoint. All times are those of the host's clock.
pub trait Application {
    /// Takes what the endpoint has to tell.
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint);
    /// Does what is due.
    fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint);
    /// When that is.
    fn next_timeout(&self) -> Option<Time>;
}

/// A host.
pub struct SmtHost<A> {
    id: HostId,
    /// The code under test.
    pub endpoint: Endpoint,
    /// The user of the endpoint.
    pub application: A,
    /// The host's clock.
    pub clock: Clock,
    /// The abilities of the host's carrier, if they are others than a UDP socket's. The endpoint
    /// must have been told of them: the carrier panics when it is asked for more.
    pub capabilities: Option<Capabilities>,
    /// The NIC between the endpoint and its cable, if there is one. The endpoint must have been
    /// told of the abilities and keys of a carrier that seals.
    pub nic: Option<NicPort>,
    /// The endpoint that had this address before a standby took it over. It hears nothing more, and
    /// has no application.
    former: Option<Endpoint>,
    /// A host that is down takes nothing and does nothing.
    pub is_up: bool,
    /// The socket between the endpoint and the cable.
    pub socket: Socket,
    /// The delay with which it accepts messages, if they wait for that.
    accepts_after: Option<Duration>,
    /// When it accepts the messages that wait.
    accepts_at: Option<Time>,
    buffer: TransmitBuffer,
    chunk: Chunk,
}

impl<A: Application> SmtHost<A> {
    /// A host that is up.
    pub fn new(id: HostId, endpoint: Endpoint, application: A) -> Self {
        Self {
            id,
            endpoint,
            application,
            clock: Clock::default(),
            capabilities: None,
            nic: None,
            former: None,
            is_up: true,
            socket: Socket::default(),
            accepts_after: None,
            accepts_at: None,
            buffer: TransmitBuffer::default(),
            chunk: Chunk::default(),
        }
    }

    /// Its number, and which socket.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// From now on messages wait in the endpoint, and the application accepts them `delay` after
    /// the first of them has come.
    pub fn accept_after(&mut self, delay: Duration) {
        self.endpoint.queue_messages();
        self.accepts_after = Some(delay);
    }

    /// A standby has the address from now on. The host goes on to send what it has begun.
    pub fn take_over(&mut self, standby: Endpoint) {
        self.former = Some(std::mem::replace(&mut self.endpoint, standby));
    }

    /// The host that had the address before is gone, if there is one.
    pub fn end_former(&mut self) {
        self.former = None;
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            self.application.handle(now, event, &mut self.endpoint);
        }
        let Some(delay) = self.accepts_after else {
            return;
        };
        let has_messages =
            self.endpoint.accept_queue_len() > 0 || self.endpoint.has_released_requests();
        self.accepts_at = match has_messages {
            true => self.accepts_at.or(Some(now + delay)),
            false => None,
        };
    }

    /// Lets the NIC hand over what has arrived, if it is time, by the network's clock.
    fn interrupt_if_due(&mut self, now: Time) {
        let Self { nic, endpoint, .. } = self;
        let Some(nic) = nic else {
            return;
        };
        if nic.next_interrupt().is_none_or(|due| due > now) {
            return;
        }
        let now = self.clock.at(now);
        nic.interrupt(&mut |arrival| endpoint.handle_arrival(now, arrival));
        self.take_events(now);
    }

    fn accept(&mut self, now: Time) {
        self.accepts_at = None;
        while let Some(message) = self.endpoint.accept(now) {
            self.application.handle(now, message.into(), &mut self.endpoint);
        }
        self.take_events(now);
    }
}

impl<A: Application> Host for SmtHost<A> {
    fn receive(&mut self, now: Time, packet: &Packet) {
        if !self.is_up || packet.to != self.id {
            return;
        }
        // The model of a device has no sign that a packet was trimmed: those come beside it.
        let nic = self.nic.as_mut().filter(|nic| nic.receives());
        if let Some(nic) = nic.filter(|_| !packet.is_trimmed) {
            nic.receive(now, packet);
            return self.interrupt_if_due(now);
        }
        // A socket of SMT is not reached at the port of PSP, nor by the rest of such a packet.
        if packet.protocol != Protocol::Smt {
            return;
        }
        let now = self.clock.at(now);
        let path = Path::between(packet.from.address(), self.id.address().ip());
        let marks = Marks { trimmed: packet.is_trimmed, ..Marks::NONE };
        let arrival = Arrival::datagram(path, &packet.bytes).with_marks(marks);
        self.endpoint.handle_arrival(now, arrival);
        self.take_events(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if !self.is_up {
            return;
        }
        self.socket.handle_timeout(now);
        self.interrupt_if_due(now);
        let now = self.clock.at(now);
        if self.endpoint.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.endpoint.handle_timeout(now);
            self.take_events(now);
        }
        if let Some(former) = &mut self.former
            && former.poll_timeout().is_some_and(|(due, _)| due <= now)
        {
            former.handle_timeout(now);
            while former.poll_event().is_some() {}
        }
        if self.application.next_timeout().is_some_and(|due| due <= now) {
            self.application.handle_timeout(now, &mut self.endpoint);
            self.take_events(now);
        }
        if self.accepts_at.is_some_and(|due| due <= now) {
            self.accept(now);
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        if !self.is_up {
            return None;
        }
        let endpoints = [Some(&self.endpoint), self.former.as_ref()];
        let due = |endpoint: &Endpoint| endpoint.poll_timeout().map(|(due, _)| due);
        let own =
            endpoints.into_iter().flatten().filter_map(due).chain(self.application.next_timeout());
        let own = own.chain(self.accepts_at);
        let own = own.min().map(|due| self.clock.when(due));
        let interrupt = self.nic.as_ref().and_then(NicPort::next_interrupt);
        let by_network = [self.socket.next_timeout(), interrupt];
        own.into_iter().chain(by_network.into_iter().flatten()).min()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        if !self.is_up {
            return None;
        }
        let (id, local) = (self.id, self.clock.at(now));
        let (endpoint, chunk) = (&mut self.endpoint, &mut self.chunk);
        let former = &mut self.former;
        let buffer = &mut self.buffer;
        let capabilities = self.capabilities;
        let nic = &mut self.nic;
        self.socket.transmit(now, || {
            loop {
                if let Some(rest) = nic.as_mut().and_then(|nic| next_of_nic(id, nic)) {
                    return Some(rest);
                }
                let own = endpoint.poll_transmit(local, buffer);
                let transmit = match (own, former.as_mut()) {
                    (None, Some(former)) => former.poll_transmit(local, buffer),
                    (own, _) => own,
                };
                let Some(transmit) = transmit else {
                    // No batch comes for which those in the NIC would wait.
                    let nic = nic.as_mut()?;
                    nic.leave();
                    return next_of_nic(id, nic);
                };
                if let Some(capabilities) = capabilities {
                    check(&transmit, buffer, capabilities);
                }
                match nic {
                    Some(nic) => nic.post(&buffer.batch(&transmit, 0)),
                    None => return burst(id, transmit, chunk.copy(buffer)),
                }
            }
        })
    }
}

/// Sees that a batch is one that a carrier of these abilities takes.
fn check(transmit: &Transmit, bytes: &TransmitBuffer, capabilities: Capabilities) {
    let datagram_max = capabilities.datagram_max.max(DATAGRAM_FLOOR);
    let segments = bytes.len().div_ceil(transmit.segment_size);
    let copied = bytes.header().map_or(0, |header| header.len());
    assert!(
        transmit.segment_size + copied <= datagram_max,
        "a datagram is larger than the carrier takes"
    );
    assert!(
        segments <= usize::from(capabilities.segments_max),
        "a batch has more datagrams than the carrier takes"
    );
    assert!(
        segments == 1 || bytes.len() + segments * copied <= capabilities.batch_max,
        "a batch has more bytes than the carrier takes"
    );
    assert!(transmit.priority == 0 || capabilities.priorities, "the carrier has no priorities");
}

fn burst(id: HostId, transmit: Transmit, bytes: Bytes) -> Option<Burst> {
    let to = HostId::of(transmit.path.remote)?;
    Some(Burst {
        from: id,
        to,
        bytes,
        segment_size: transmit.segment_size,
        priority: transmit.priority,
        entropy: 0,
        protocol: Protocol::Smt,
    })
}

/// The next datagrams that a NIC has sent.
fn next_of_nic(id: HostId, nic: &mut NicPort) -> Option<Burst> {
    let next = nic.next_datagrams()?;
    Some(Burst {
        from: id,
        to: next.to?,
        bytes: next.bytes.into(),
        segment_size: next.size,
        priority: next.priority,
        entropy: 0,
        protocol: next.protocol,
    })
}

/// Bytes of a datagram that every carrier takes.
const DATAGRAM_FLOOR: usize = 1_200;
