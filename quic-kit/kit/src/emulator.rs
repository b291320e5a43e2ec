// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The emulator as a process: a UDP proxy between clients and a server, with a [`Path`] in each
//! direction.
//!
//! Each address of a client has a socket of its own towards the server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use clap::Args;
use kit_process::lines::{self, Order};
use kit_process::socket::{Burst, Socket};
use kit_process::{Doing, Failure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::path::{Coming, Path, PathSetting};

/// Options of the emulator.
#[derive(Args, Clone, Debug)]
pub(crate) struct EmulatorOptions {
    /// The server.
    #[arg(long)]
    pub(crate) to: SocketAddr,
    /// Microseconds that a packet takes in each direction.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) delay_us: u64,
    /// The share of packets that are lost, from 0 to 1, in each direction.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) loss: f64,
    /// The share of packets that are held back, from 0 to 1, in each direction.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) reordered: f64,
    /// Later packets behind which a held one leaves.
    #[arg(long, default_value_t = 2)]
    pub(crate) places: u32,
    /// Microseconds that a held packet waits for them at most.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) hold_us: u64,
    /// The seed of the fates of packets.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A client's next packets come from another port after so many, as behind a NAT that forgets.
    #[arg(long)]
    pub(crate) rebind_after: Option<u64>,
}

/// A packet under way.
struct Packet {
    flow: usize,
    ecn: Option<quinn_udp::EcnCodepoint>,
    bytes: Vec<u8>,
}

/// A client's address and the socket that stands for it.
struct Flow {
    client: SocketAddr,
    socket: Socket,
    from_client: u64,
}

struct Emulator {
    options: EmulatorOptions,
    begin: Instant,
    listening: Socket,
    flows: Vec<Flow>,
    to_server: Path<Packet>,
    to_client: Path<Packet>,
    /// Bursts that a socket had no room for.
    unsent: u64,
    refused_flows: u64,
}

/// Forwards until the input ends.
pub(crate) fn run(options: EmulatorOptions) -> Result<(), Failure> {
    let setting = PathSetting {
        delay: Duration::from_micros(options.delay_us),
        loss: options.loss,
        reordered: options.reordered,
        places: options.places,
        hold: Duration::from_micros(options.hold_us),
        seed: options.seed,
    };
    let listening = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), true)?;
    lines::listening(listening.address());
    let since = kit_process::Usage::now();
    let mut emulator = Emulator {
        options,
        begin: Instant::now(),
        listening,
        flows: Vec::new(),
        to_server: Path::new(setting, 0),
        to_client: Path::new(setting, 1),
        unsent: 0,
        refused_flows: 0,
    };
    loop {
        if emulator.wait()? {
            match lines::next_order()? {
                Order::End => return Ok(()),
                Order::Go => {}
                Order::Report => emulator.report(&since),
            }
        }
        emulator.receive()?;
        emulator.forward()?;
    }
}

impl Emulator {
    /// Waits for packets, for the time at which one leaves, or for an order, which it returns.
    fn wait(&self) -> Result<bool, Failure> {
        let next = self.to_server.next().into_iter().chain(self.to_client.next()).min();
        let timeout = next.map(|next| next.saturating_sub(self.begin.elapsed()));
        let timeout = timeout.map(|of| Timespec {
            tv_sec: of.as_secs() as i64,
            tv_nsec: i64::from(of.subsec_nanos()),
        });
        let input = std::io::stdin();
        let mut polled = vec![
            PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listening.as_fd(), PollFlags::IN),
        ];
        let flows = self.flows.iter().map(|flow| flow.socket.as_fd());
        polled.extend(flows.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::new(format!("waiting for packets: {error}"))),
        }
        Ok(polled[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }

    fn receive(&mut self) -> Result<(), Failure> {
        let at = self.begin.elapsed();
        let Self { listening, flows, to_server, options, refused_flows, .. } = self;
        let mut failed = None;
        for _ in 0..TURNS {
            let is_more = listening.receive(|received| {
                let known = flows.iter().position(|flow| flow.client == received.from);
                let flow = match known {
                    Some(flow) => flow,
                    None if flows.len() < FLOWS_MAX => match Flow::new(received.from) {
                        Ok(flow) => {
                            flows.push(flow);
                            flows.len() - 1
                        }
                        Err(failure) => return failed = Some(failure),
                    },
                    None => return *refused_flows += 1,
                };
                if let Err(failure) = flows[flow].count(options.rebind_after) {
                    failed = Some(failure);
                }
                let packet = Packet { flow, ecn: received.ecn, bytes: received.bytes.to_vec() };
                to_server.take(Coming { at, flow }, packet);
            });
            if !is_more.doing("receiving from a client")? {
                break;
            }
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        for (flow, of) in self.flows.iter_mut().enumerate() {
            for _ in 0..TURNS {
                let is_more = of.socket.receive(|received| {
                    let packet = Packet { flow, ecn: received.ecn, bytes: received.bytes.to_vec() };
                    self.to_client.take(Coming { at, flow }, packet);
                });
                // A server that has ended refuses packets.
                if !is_more.unwrap_or_default() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn forward(&mut self) -> Result<(), Failure> {
        let now = self.begin.elapsed();
        let (flows, server) = (&self.flows, self.options.to);
        let mut unsent = 0;
        send_due(&mut self.to_server, now, |flow| (&flows[flow].socket, server), &mut unsent);
        let listening = &self.listening;
        send_due(&mut self.to_client, now, |flow| (listening, flows[flow].client), &mut unsent);
        self.unsent += unsent;
        Ok(())
    }

    fn report(&self, since: &kit_process::Usage) {
        let counts = [&self.to_server.counts, &self.to_client.counts];
        let sum = |of: fn(&crate::path::PathCounts) -> u64| counts.into_iter().map(of).sum::<u64>();
        let mut ports: Vec<u16> = vec![self.listening.address().port()];
        ports.extend(self.flows.iter().map(|flow| flow.socket.address().port()));
        let kernel = kernel_drops(&ports) + self.unsent + self.refused_flows;
        println!(
            "report {} taken={} lost={} held={} overflowed={} kernel={kernel}",
            kit_process::Usage::now().since(since),
            sum(|of| of.taken),
            sum(|of| of.lost),
            sum(|of| of.held),
            sum(|of| of.overflowed),
        );
    }
}

impl Flow {
    fn new(client: SocketAddr) -> Result<Self, Failure> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self { client, socket: Socket::bind(any, true)?, from_client: 0 })
    }

    /// Counts a packet of the client. With the last before a rebinding comes another socket, so
    /// that answers to the old one are lost.
    fn count(&mut self, rebind_after: Option<u64>) -> Result<(), Failure> {
        self.from_client += 1;
        if rebind_after == Some(self.from_client) {
            self.socket = Self::new(self.client)?.socket;
        }
        Ok(())
    }
}

/// Sends what leaves by now: packets of one flow and length that follow each other with one call.
fn send_due<'a>(
    path: &mut Path<Packet>,
    now: Duration,
    socket_of: impl Fn(usize) -> (&'a Socket, SocketAddr),
    unsent: &mut u64,
) {
    let mut burst: Vec<u8> = Vec::with_capacity(BURST_BYTES);
    let mut of: Option<(usize, Option<quinn_udp::EcnCodepoint>, usize)> = None;
    let mut flush = |burst: &mut Vec<u8>, of: &mut Option<(usize, _, usize)>| {
        if let Some((flow, ecn, stride)) = of.take() {
            let (socket, to) = socket_of(flow);
            let bytes = &**burst;
            // A client or server that has ended listens no more.
            let sent = socket.send(&Burst { to, ecn, bytes, stride });
            if !sent.unwrap_or(true) {
                *unsent += bytes.len().div_ceil(stride) as u64;
            }
        }
        burst.clear();
    };
    while let Some(packet) = path.leave(now) {
        let length = packet.bytes.len();
        let fits = of.is_some_and(|(flow, ecn, stride)| {
            (flow, ecn) == (packet.flow, packet.ecn)
                && length <= stride
                && burst.len().is_multiple_of(stride)
                && burst.len() + length <= BURST_BYTES
                && burst.len() / stride < SEGMENTS_MAX
        });
        if !fits {
            flush(&mut burst, &mut of);
            of = Some((packet.flow, packet.ecn, length.max(1)));
        }
        burst.extend_from_slice(&packet.bytes);
    }
    flush(&mut burst, &mut of);
}

/// Packets that the kernel had no room for, of the sockets with these ports.
fn kernel_drops(ports: &[u16]) -> u64 {
    let table = fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let drops = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let port = fields.nth(1)?.split_once(':')?.1;
        let port = u16::from_str_radix(port, 16).ok()?;
        let drops: u64 = fields.last()?.parse().ok()?;
        ports.contains(&port).then_some(drops)
    });
    drops.sum()
}

/// Bytes of a burst at most, below what UDP takes.
const BURST_BYTES: usize = 60_000;
/// Datagrams of a burst at most: the kernel takes 64.
const SEGMENTS_MAX: usize = 60;
/// Client addresses at most.
const FLOWS_MAX: usize = 256;
/// Calls of a socket in one turn.
const TURNS: usize = 16;
