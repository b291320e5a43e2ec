// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker: one thread with a queue of the TUN device, a socket, and the associations of its SPIs.
//!
//! A turn reads a bounded number of packets from each side, so that neither side starves the other;
//! batches leave and super-packets are handed over at its end.

mod commands;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use smt_esp::offload::Offload;
use smt_esp::{Database, InboundPath, OutboundId, OutboundPath, SealError};
use smt_io::{Epoll, TUN_HEADER_LEN, Token, TunQueue};

use crate::association::{AssociationSpec, PathProperties};
use crate::event::EventLog;
use crate::icmp;
use crate::statistics::WorkerCounts;
use crate::underlay::Underlay;

pub(crate) use commands::{Command, CommandError};

/// The parts of a worker.
pub(crate) struct Parts {
    pub(crate) queue: TunQueue,
    pub(crate) underlay: Underlay,
    pub(crate) path: PathProperties,
    pub(crate) outbound: OutboundPath,
    pub(crate) inbound: InboundPath,
    pub(crate) database: Database,
    pub(crate) slots: Vec<Slot>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) wake: UnixStream,
    pub(crate) events: EventLog,
    pub(crate) started: Instant,
}

/// The place of an association for packets out, by its name.
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) id: OutboundId,
    pub(crate) spec: Option<AssociationSpec>,
}

/// One thread's work.
pub(crate) struct Worker {
    parts: Parts,
    inbound_specs: Vec<AssociationSpec>,
    counts: WorkerCounts,
    memory: Vec<u8>,
    epoll: Epoll,
    ended: bool,
}

impl Worker {
    /// # Errors
    /// The process has no file descriptors left.
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(parts.queue.as_fd(), DEVICE)?;
        epoll.add(parts.underlay.as_fd(), SOCKET)?;
        epoll.add(parts.wake.as_fd(), WAKE)?;
        Ok(Self {
            parts,
            inbound_specs: Vec::new(),
            counts: WorkerCounts::default(),
            memory: vec![0; TUN_HEADER_LEN + SUPER_PACKET_BYTES],
            epoll,
            ended: false,
        })
    }

    /// Works until it is told to stop.
    ///
    /// # Errors
    /// The system lets nothing be waited for.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut ready = [WAKE; 3];
        while !self.ended {
            let count = self.epoll.wait(&mut ready, None)?;
            for token in &ready[..count] {
                match *token {
                    DEVICE => self.send_turn(),
                    SOCKET => self.receive_turn(),
                    _ => self.command_turn(),
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.parts.started.elapsed()
    }

    /// Seals and sends what the host has for the tunnel.
    fn send_turn(&mut self) {
        let now = self.now();
        for _ in 0..PACKETS_PER_TURN {
            match self.parts.queue.read(&mut self.memory) {
                Ok(Some(length)) => self.send_packet(length, now),
                Ok(None) => break,
                Err(error) => {
                    self.parts.events.device("cannot be read", &error);
                    // A device that was taken down is set up again, or the tunnel ended.
                    std::thread::sleep(FAILED_DEVICE_PAUSE);
                    break;
                }
            }
        }
        if let Err(error) = self.parts.underlay.flush() {
            self.parts.events.not_sent(&error);
        }
    }

    fn send_packet(&mut self, length: usize, now: Duration) {
        self.counts.device_read += 1;
        let parts = &mut self.parts;
        let Some((header, packet)) = self.memory[..length].split_first_chunk() else {
            return;
        };
        let Ok(offload) = Offload::from_virtio(header) else {
            parts.events.not_sealed(None, SealError::Malformed);
            return;
        };
        self.counts.device_read_super += u64::from(offload.segmentation.is_some());
        let (underlay, events) = (&mut parts.underlay, &mut parts.events);
        let sealed =
            parts.outbound.send(&mut parts.database, (packet, &offload), now, &mut |sealed| {
                if let Err(error) = underlay.push(sealed) {
                    events.not_sent(&error);
                }
            });
        let Err(error) = sealed else {
            return;
        };
        let to = smt_esp::Flow::of_packet(packet).ok().map(|flow| flow.destination);
        parts.events.not_sealed(to, error);
        if let SealError::TooBig { limit } = error
            && let Some(message) = icmp::too_big(packet, limit)
        {
            let written = parts.queue.write(&[0; TUN_HEADER_LEN], &message);
            self.counts.device_write_failed += u64::from(written.is_err());
        }
    }

    /// Opens what the network has brought and hands it to the host.
    fn receive_turn(&mut self) {
        let now = self.now();
        let Parts { queue, underlay, inbound, database, events, .. } = &mut self.parts;
        let counts = &mut self.counts;
        let mut failed = None;
        let mut deliver =
            |packet: &[u8], offload: Offload| match queue.write(&offload.to_virtio(), packet) {
                Ok(()) => {
                    counts.device_written += 1;
                    counts.device_written_super += u64::from(offload.segmentation.is_some());
                }
                Err(error) => {
                    counts.device_write_failed += 1;
                    failed = Some(error);
                }
            };
        for _ in 0..CALLS_PER_TURN {
            let received = underlay.receive(&mut |arrived, buffer| {
                if let Err(error) = inbound.receive(database, buffer, now, &mut deliver) {
                    events.not_opened(arrived, error);
                }
            });
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    events.not_received(&error);
                    break;
                }
            }
        }
        inbound.flush(&mut deliver);
        if let Some(error) = failed {
            events.device("does not take a packet", &error);
        }
    }

    fn counts(&self) -> WorkerCounts {
        let of_socket = self.parts.underlay.counts;
        WorkerCounts {
            send_calls: of_socket.send_calls,
            packets_sent: of_socket.packets_sent,
            send_failed: of_socket.send_failed,
            receive_calls: of_socket.receive_calls,
            packets_received: of_socket.packets_received,
            ..self.counts
        }
    }
}

const DEVICE: Token = Token(0);
const SOCKET: Token = Token(1);
const WAKE: Token = Token(2);

/// The longest packet that a device hands over: IPv6's 65,535 bytes behind its header, and more by
/// no offload that is asked for.
const SUPER_PACKET_BYTES: usize = 65_535 + 40;
/// Packets of the device in a turn: 2 MB, if all are super-packets.
const PACKETS_PER_TURN: usize = 32;
/// Calls to the socket in a turn: as many bytes, if all are coalesced.
const CALLS_PER_TURN: usize = 32;
/// A device that is down tells so at once, again and again.
const FAILED_DEVICE_PAUSE: Duration = Duration::from_millis(50);
