// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that sends messages over byte streams.
//!
//! Connections are numbered by peer and lane. A connection is never searched for: those that may
//! send wait in a queue, those that wait for acknowledgements in a heap. The heap's entries are not
//! moved when a deadline is: one that comes up too early is put back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::Time;

use super::framing::Frame;
use super::limits::{ACKNOWLEDGEMENT_MAX, HEADER_LEN, REORDERING_INITIAL};
use super::receiver::Receiver;
use super::segment::{Acknowledgement, DataHeader, Segment};
use super::sender::Sender;
use crate::net::chunk::Chunk;
use crate::net::packet::{HostId, Packet, Protocol};
use crate::net::world::{Burst, Host};
use crate::random::mix;

/// Which of the connections between two hosts carries a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pooling {
    /// There is one: a message waits for all before it.
    OnePerPair,
    /// There are so many: a message goes where the fewest bytes are queued or unacknowledged.
    Pool(u16),
}

/// How a host's connections behave.
#[derive(Clone, Copy, Debug)]
pub struct StreamOptions {
    /// Connections to each other host.
    pub pooling: Pooling,
    /// How many later segments must arrive before one counts as lost: 3, more where packets take
    /// different ways. It rises by itself, but each connection pays for that with cuts of its
    /// window.
    pub reordering: u32,
    /// A round trip by the longest path when nothing else is under way: the first timeout is three
    /// times that, at least a millisecond.
    pub round_trip: Duration,
    /// The priority of all packets, 0 to 7.
    pub priority: u8,
}

/// A message has arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// Which one; the sender's number.
    pub message: u64,
    /// Its sender.
    pub from: HostId,
    /// Its bytes, without header and records.
    pub length: u32,
    /// When its last byte arrived, and all before it.
    pub at: Time,
}

/// The counts of a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamCounts {
    /// Data segments sent, the repeated ones included.
    pub segments: u64,
    /// Data segments sent again.
    pub resent: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Acknowledgements that showed a loss.
    pub losses: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Marked data segments that arrived.
    pub marked: u64,
}

/// A host.
#[derive(Debug)]
pub struct StreamHost {
    id: HostId,
    /// Connections to each other host.
    lanes: u16,
    /// The priority of all packets.
    priority: u8,
    /// By peer, then by lane.
    connections: Vec<Connection>,
    /// Acknowledgements to send, and on which connection.
    acknowledgements: VecDeque<(u32, Bytes)>,
    /// Connections that may send, in turn.
    ready: VecDeque<u32>,
    /// When to look at which connection.
    alarms: BinaryHeap<Reverse<(Time, u32)>>,
    delivered: Vec<Delivered>,
    counts: StreamCounts,
    chunk: Chunk,
}

/// One of the connections to a host; both directions.
#[derive(Debug)]
struct Connection {
    sender: Sender,
    receiver: Receiver,
    /// It is in the queue of those that may send.
    is_queued: bool,
    /// The alarm that counts; later ones of this connection are void.
    alarm: Option<Time>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            pooling: Pooling::OnePerPair,
            reordering: REORDERING_INITIAL,
            round_trip: Duration::ZERO,
            priority: 0,
        }
    }
}

impl StreamHost {
    /// A host that is connected with all of so many hosts.
    pub fn new(id: HostId, hosts: u32, options: StreamOptions) -> Self {
        let lanes = match options.pooling {
            Pooling::OnePerPair => 1,
            Pooling::Pool(lanes) => lanes.max(1),
        };
        let round_trip = options.round_trip.as_nanos() as u64;
        let connection = |_| Connection {
            sender: Sender::new(options.reordering, round_trip),
            receiver: Receiver::default(),
            is_queued: false,
            alarm: None,
        };
        Self {
            id,
            lanes,
            priority: options.priority,
            connections: (0..hosts * u32::from(lanes)).map(connection).collect(),
            acknowledgements: VecDeque::new(),
            ready: VecDeque::new(),
            alarms: BinaryHeap::new(),
            delivered: Vec::new(),
            counts: StreamCounts::default(),
            chunk: Chunk::default(),
        }
    }

    /// Sends a message of so many bytes. The number is the caller's.
    ///
    /// # Panics
    /// If there is no such host, or it is this one.
    pub fn send(&mut self, now: Time, to: HostId, message: u64, length: u32) {
        assert_ne!(to, self.id, "a host has no connection with itself");
        let first = to.0 * u32::from(self.lanes);
        let lanes = first..first + u32::from(self.lanes);
        let queued = |index: &u32| self.connections[*index as usize].sender.queued();
        let Some(index) = lanes.min_by_key(queued) else {
            return;
        };
        let sender = &mut self.connections[index as usize].sender;
        sender.push(now, Frame { message, length });
        self.settle(index);
    }

    /// Takes the messages that have arrived since the last call.
    pub fn take_delivered(&mut self) -> Vec<Delivered> {
        std::mem::take(&mut self.delivered)
    }

    /// Returns the host's counts so far.
    pub fn counts(&self) -> StreamCounts {
        self.counts
    }

    /// Bytes to a host that have not been acknowledged, whether sent or not, with headers and
    /// records.
    pub fn queued(&self, to: HostId) -> u64 {
        let lanes = usize::from(self.lanes);
        let connections = self.connections.iter().skip(to.0 as usize * lanes);
        connections.take(lanes).map(|connection| connection.sender.queued()).sum()
    }

    fn receive_data(&mut self, now: Time, index: u32, header: DataHeader, packet: &Packet) {
        let (from, delivered) = (packet.from, &mut self.delivered);
        let receiver = &mut self.connections[index as usize].receiver;
        receiver.receive(header.start, &packet.bytes, |frame| {
            delivered.push(Delivered {
                message: frame.message,
                from,
                length: frame.length,
                at: now,
            });
        });
        let acknowledgement = Acknowledgement {
            lane: header.lane,
            next: receiver.next(),
            is_marked: packet.is_marked,
            blocks: receiver.blocks(),
        };
        acknowledgement.emit(self.chunk.room(ACKNOWLEDGEMENT_MAX));
        self.acknowledgements.push_back((index, self.chunk.take()));
        self.counts.marked += u64::from(packet.is_marked);
    }

    /// Sees to it that a connection gets its turn and its alarm.
    fn settle(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if !connection.is_queued && connection.sender.is_ready() {
            connection.is_queued = true;
            self.ready.push_back(index);
        }
        if let Some(deadline) = connection.sender.deadline()
            && connection.alarm.is_none_or(|alarm| deadline < alarm)
        {
            connection.alarm = Some(deadline);
            self.alarms.push(Reverse((deadline, index)));
        }
    }

    fn burst(&self, index: u32, bytes: Bytes) -> Burst {
        let to = HostId(index / u32::from(self.lanes));
        let lane = u64::from(index % u32::from(self.lanes));
        let pair = u64::from(self.id.0) << 32 | u64::from(to.0);
        Burst {
            from: self.id,
            to,
            segment_size: bytes.len(),
            bytes,
            priority: self.priority,
            entropy: mix(pair ^ mix(lane)),
            protocol: Protocol::Tcp,
        }
    }

    /// The connection that a packet belongs to.
    fn index(&self, from: HostId, lane: u16) -> Option<u32> {
        let index = from.0 * u32::from(self.lanes) + u32::from(lane);
        let is_known = lane < self.lanes && (index as usize) < self.connections.len();
        is_known.then_some(index)
    }
}

impl Host for StreamHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        // TCP knows no trimming: what is left of a packet has a wrong checksum.
        if packet.is_trimmed {
            return;
        }
        match Segment::parse(&packet.bytes) {
            Some(Segment::Acknowledgement(acknowledgement)) => {
                let Some(index) = self.index(packet.from, acknowledgement.lane) else {
                    return;
                };
                let sender = &mut self.connections[index as usize].sender;
                let has_lost = sender.handle_acknowledgement(now, &acknowledgement);
                self.counts.losses += u64::from(has_lost);
                self.settle(index);
            }
            Some(Segment::Data(header)) => {
                if let Some(index) = self.index(packet.from, header.lane) {
                    self.receive_data(now, index, header, packet);
                }
            }
            None => (),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(Reverse((at, index))) = self.alarms.peek().copied()
            && at <= now
        {
            self.alarms.pop();
            let connection = &mut self.connections[index as usize];
            if connection.alarm != Some(at) {
                continue;
            }
            connection.alarm = None;
            if connection.sender.deadline().is_some_and(|due| due <= now) {
                connection.sender.handle_timeout(now);
                self.counts.timeouts += 1;
            }
            self.settle(index);
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.alarms.peek().map(|Reverse((at, _))| *at)
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        if let Some((index, bytes)) = self.acknowledgements.pop_front() {
            self.counts.acknowledgements += 1;
            return Some(self.burst(index, bytes));
        }
        while let Some(index) = self.ready.pop_front() {
            let lane = (index % u32::from(self.lanes)) as u16;
            let connection = &mut self.connections[index as usize];
            connection.is_queued = false;
            let Some(outgoing) = connection.sender.transmit(now) else {
                continue;
            };
            let start = outgoing.start;
            let packet_len = HEADER_LEN + usize::from(outgoing.length);
            let out = self.chunk.room(packet_len);
            DataHeader { lane, start }.emit(out);
            out.resize(packet_len, 0);
            connection.sender.fill(start, &mut out[HEADER_LEN..]);
            self.counts.segments += 1;
            self.counts.resent += u64::from(outgoing.is_resent);
            self.settle(index);
            let bytes = self.chunk.take();
            return Some(self.burst(index, bytes));
        }
        None
    }
}
