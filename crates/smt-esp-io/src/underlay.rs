// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network below a tunnel: sealed packets leave in batches, and come as IP packets.
//!
//! A UDP socket takes and gives payloads alone. The headers before them are cut off here, and
//! written anew for packets that come, with addresses, ports and traffic class of the datagram.
//! A raw socket takes whole packets; those of IPv6 come without their header.

mod header;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use smt_esp::{HEADROOM, PacketBuffer, TAILROOM};
use smt_io::{EspArrival, EspDatagrams, EspRawSocket, EspUdpSocket, RawPacket};

use header::{SealedHeader, write_header};

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) from: IpAddr,
    /// The SPI, 0 in a packet that is too short for one.
    pub(crate) spi: u32,
}

/// Counts of an underlay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnderlayCounts {
    pub(crate) send_calls: u64,
    pub(crate) packets_sent: u64,
    pub(crate) send_failed: u64,
    pub(crate) receive_calls: u64,
    pub(crate) packets_received: u64,
}

/// The network below one worker.
pub(crate) struct Underlay {
    socket: Socket,
    batched: bool,
    /// Packets that wait: payloads for UDP, whole packets for a raw socket.
    bytes: Vec<u8>,
    packets: Vec<RawPacket>,
    datagrams: Option<Datagrams>,
    memory: Vec<u8>,
    pub(crate) counts: UnderlayCounts,
}

enum Socket {
    Udp(EspUdpSocket),
    Raw(EspRawSocket),
}

/// Properties of the datagrams that wait.
#[derive(Clone, Copy)]
struct Datagrams {
    to: SocketAddr,
    traffic_class: u8,
    segment_size: usize,
    count: u64,
    /// A shorter datagram is the last of a batch.
    has_ended: bool,
}

impl Underlay {
    pub(crate) fn udp(socket: EspUdpSocket, batched: bool) -> Self {
        Self::new(Socket::Udp(socket), batched)
    }

    pub(crate) fn raw(socket: EspRawSocket, batched: bool) -> Self {
        Self::new(Socket::Raw(socket), batched)
    }

    fn new(socket: Socket, batched: bool) -> Self {
        Self {
            socket,
            batched,
            bytes: Vec::with_capacity(2 * BATCH_BYTES),
            packets: Vec::with_capacity(BATCH_PACKETS),
            datagrams: None,
            memory: vec![0; HEADROOM + RECEIVE_BYTES + TAILROOM],
            counts: UnderlayCounts::default(),
        }
    }

    /// Puts a sealed IP packet to the others. A batch that is full leaves before.
    ///
    /// # Errors
    /// The answer of the system to what has left; the packet itself waits.
    pub(crate) fn push(&mut self, packet: &[u8]) -> io::Result<()> {
        match self.socket {
            Socket::Udp(_) => self.push_datagram(packet),
            Socket::Raw(_) => self.push_packet(packet),
        }
    }

    fn push_datagram(&mut self, packet: &[u8]) -> io::Result<()> {
        let header = SealedHeader::of(packet).ok_or(io::ErrorKind::Unsupported)?;
        let payload = &packet[header.payload_at..];
        let fits = self.datagrams.is_some_and(|waiting| {
            self.batched
                && waiting.to == header.to
                && waiting.traffic_class == header.traffic_class
                && !waiting.has_ended
                && payload.len() <= waiting.segment_size
                && waiting.count < BATCH_PACKETS as u64
                && self.bytes.len() + payload.len() <= BATCH_BYTES
        });
        let sent = if fits { Ok(()) } else { self.flush() };
        self.bytes.extend_from_slice(payload);
        let waiting = self.datagrams.get_or_insert(Datagrams {
            to: header.to,
            traffic_class: header.traffic_class,
            segment_size: payload.len(),
            count: 0,
            has_ended: false,
        });
        waiting.count += 1;
        waiting.has_ended = payload.len() < waiting.segment_size;
        sent
    }

    fn push_packet(&mut self, packet: &[u8]) -> io::Result<()> {
        let is_full = self.packets.len() >= BATCH_PACKETS || self.bytes.len() >= BATCH_BYTES;
        let sent = if is_full { self.flush() } else { Ok(()) };
        let to = header::destination(packet).ok_or(io::ErrorKind::Unsupported)?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.packets.push(RawPacket { to: SocketAddr::new(to, 0), range: start..self.bytes.len() });
        sent
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// The answer of the system; what waited is gone.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let (sent, count) = match &self.socket {
            Socket::Udp(socket) => {
                let Some(waiting) = self.datagrams.take() else {
                    return Ok(());
                };
                let datagrams = EspDatagrams {
                    to: waiting.to,
                    traffic_class: waiting.traffic_class,
                    segment_size: waiting.segment_size,
                    bytes: &self.bytes,
                };
                (socket.send(&datagrams), waiting.count)
            }
            Socket::Raw(_) if self.packets.is_empty() => return Ok(()),
            Socket::Raw(socket) => {
                let sent = socket.send(&self.bytes, &self.packets, self.batched);
                (sent, self.packets.len() as u64)
            }
        };
        self.bytes.clear();
        self.packets.clear();
        match sent {
            Ok(calls) => {
                self.counts.send_calls += calls as u64;
                self.counts.packets_sent += count;
                Ok(())
            }
            Err(error) => {
                self.counts.send_failed += 1;
                Err(error)
            }
        }
    }

    /// Receives by one call and gives each packet to `sink`. Tells whether something was there.
    ///
    /// # Errors
    /// The answer of the system.
    pub(crate) fn receive(
        &mut self,
        sink: &mut impl FnMut(Arrived, &mut PacketBuffer<'_>),
    ) -> io::Result<bool> {
        let room = &mut self.memory[HEADROOM..HEADROOM + RECEIVE_BYTES];
        let arrival = match &self.socket {
            Socket::Udp(socket) => socket.receive(room),
            Socket::Raw(socket) => socket.receive(room),
        };
        let Some(arrival) = arrival? else {
            return Ok(false);
        };
        self.counts.receive_calls += 1;
        match &self.socket {
            Socket::Udp(socket) => {
                self.counts.packets_received +=
                    give_datagrams(&mut self.memory, &arrival, socket.local().port(), sink)
            }
            Socket::Raw(_) => {
                self.counts.packets_received += 1;
                give_packet(&mut self.memory, &arrival, sink);
            }
        }
        Ok(true)
    }
}

impl AsFd for Underlay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Udp(socket) => socket.as_fd(),
            Socket::Raw(socket) => socket.as_fd(),
        }
    }
}

/// Each datagram gets its headers over the end of the one before it, which is done with.
fn give_datagrams(
    memory: &mut [u8],
    arrival: &EspArrival,
    local_port: u16,
    sink: &mut impl FnMut(Arrived, &mut PacketBuffer<'_>),
) -> u64 {
    let (mut at, end, mut count) = (HEADROOM, HEADROOM + arrival.length, 0);
    while at < end {
        let next = end.min(at + arrival.segment_size);
        let arrived = Arrived { from: arrival.from.ip(), spi: word(&memory[at..next]) };
        let start = write_header(memory, at..next, arrival, Some(local_port));
        if let Some(mut buffer) = PacketBuffer::new(memory, start..next) {
            sink(arrived, &mut buffer);
        }
        at = next;
        count += 1;
    }
    count
}

fn give_packet(
    memory: &mut [u8],
    arrival: &EspArrival,
    sink: &mut impl FnMut(Arrived, &mut PacketBuffer<'_>),
) {
    let end = HEADROOM + arrival.length;
    let (start, esp_at) = match arrival.from {
        SocketAddr::V4(_) => (HEADROOM, HEADROOM + 4 * usize::from(memory[HEADROOM] & 0xF)),
        SocketAddr::V6(_) => (write_header(memory, HEADROOM..end, arrival, None), HEADROOM),
    };
    let arrived =
        Arrived { from: arrival.from.ip(), spi: word(memory.get(esp_at..end).unwrap_or_default()) };
    if let Some(mut buffer) = PacketBuffer::new(memory, start..end) {
        sink(arrived, &mut buffer);
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Packets of one batch: every kernel with `UDP_SEGMENT` cuts 64.
const BATCH_PACKETS: usize = 64;
/// Bytes of one batch of datagrams: what an IPv6 packet of 65,535 bytes has behind its headers.
const BATCH_BYTES: usize = 65_487;
/// The most that one receiving call gives.
const RECEIVE_BYTES: usize = 65_536;
