// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams over a UDP socket, many to a system call.
//!
//! 1. Opening prepares the socket: datagrams are never fragmented, offloads are asked for.
//! 2. Sending hands a batch to the kernel whole (`sending.rs`); whatever the kernel refuses is
//!    remembered and done without from then on.
//! 3. Receiving takes a coalesced batch (`receiving.rs`), waiting inside the same call.
//!
//! The file descriptor stays in blocking mode: calls that must not wait say so themselves, so an
//! event loop can poll the descriptor ([`AsFd`]) while other threads block on it.

mod datagram;
mod errno_class;
mod error;
mod icmp_report;
mod offload_state;
mod options;
mod receive_timeout;
mod receiving;
mod report_queue;
#[cfg(target_os = "linux")]
mod reuseport_bpf;
mod sending;
mod shard_socket;
mod shards;
mod socket_option;

#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
#[path = "udp/linux.rs"]
mod imp;
#[cfg(not(target_os = "linux"))]
#[path = "udp/portable.rs"]
mod imp;

/// The code for other systems, kept alive by the tests on this one.
#[cfg(all(test, target_os = "linux"))]
mod portable;
#[cfg(test)]
mod tests;

pub(crate) use datagram::{
    Blocking, BufferBytes, Family, Incoming, Offloads, Outgoing, Preparation,
};
#[cfg(target_os = "linux")]
pub(crate) use errno_class::ErrnoClass;
pub use error::OpenError;
pub(crate) use imp::{
    ask_for_reports, attach_selector, dropped, may_force_buffers, next_report, path_mtu, prepare,
    receive, report_traffic_class, send, size_buffers, wait_readable,
};
pub use options::UdpOptions;

use crate::limits::{SEGMENTS_MAX, UDP_BYTES_MAX_IPV4, UDP_BYTES_MAX_IPV6};
use crate::receive_buffer::ReceiveBuffer;
use crate::statistics::{Counters, Statistics};
use offload_state::OffloadState;
use receive_timeout::ReceiveTimeout;
use report_queue::ReportQueue;
use shard_socket::ShardSocket;
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Path, Readiness, ReceiveError, SendError, Wait,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A carrier over one UDP socket, IPv4, IPv6 or both.
#[derive(Debug)]
pub struct UdpCarrier {
    /// Shards may share it (`shards.rs`).
    socket: Arc<Socket>,
    family: Family,
    /// Where peers reach this socket.
    local: SocketAddr,
    /// The one peer, on a connected socket.
    connected: Option<SocketAddr>,
    /// Whether the socket has several local addresses, so that each path must name one.
    wildcard: bool,
    /// The traffic class byte that the socket sends by itself.
    plain_class: u8,
    buffers: BufferBytes,
    receive_offload: bool,
    offload_state: OffloadState,
    /// The reports about any peer, if the socket gets them.
    report_queue: Option<ReportQueue>,
    /// A send call consumed an ICMP report, which the next receive call is to pass on.
    hint_pending: AtomicBool,
    timeout: ReceiveTimeout,
    counters: Counters,
    buffer: ReceiveBuffer,
    /// Among the shards of its address, if it is one.
    shard_socket: Option<ShardSocket>,
}

impl UdpCarrier {
    /// Opens a carrier that listens on `address` and talks to anyone. `[::]` takes IPv4 as well;
    /// port 0 lets the system choose.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind(address: SocketAddr) -> Result<Self, OpenError> {
        Self::bind_with(address, &UdpOptions::new())
    }

    /// Opens a carrier that talks to `remote` alone: the cheapest for a client, and the kind that
    /// learns quickly that no socket listens there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect(remote: SocketAddr) -> Result<Self, OpenError> {
        Self::connect_with(remote, &UdpOptions::new())
    }

    /// Bytes of datagrams, the kernel's overhead counted, that the receive buffer really holds: a
    /// shard's part of it, if several share it.
    pub fn receive_buffer_bytes(&self) -> usize {
        self.buffers.receive / self.shard_socket.as_ref().map_or(1, ShardSocket::sharers)
    }

    /// Bytes of datagrams, the kernel's overhead counted, that the send buffer really holds.
    pub fn send_buffer_bytes(&self) -> usize {
        self.buffers.send
    }

    /// Whether arrivals may be coalesced.
    pub fn has_receive_offload(&self) -> bool {
        self.receive_offload
    }

    /// Whether a batch still leaves by one system call.
    pub fn has_segmentation_offload(&self) -> bool {
        self.offload_state.has_segmentation()
    }

    /// Whether the kernel sorts datagrams by shard. Without, shards share a socket and pass each
    /// other what they receive. True for a carrier that is no shard.
    pub fn has_shard_selector(&self) -> bool {
        let shard_socket = self.shard_socket.as_ref();
        shard_socket.is_none_or(|shard_socket| shard_socket.group.has_selector)
    }

    /// A descriptor that is readable while something waits that another shard has received: to be
    /// polled beside the socket. `None` for a carrier that is no shard.
    pub fn inbox_fd(&self) -> Option<BorrowedFd<'_>> {
        self.shard_socket.as_ref().map(|shard_socket| shard_socket.inbox().as_fd())
    }

    /// Counts of this carrier's work so far. Costs one system call, for the kernel's count of
    /// drops. Datagrams that shards receive for each other are counted at the shard that made the
    /// call, and drops of a shared socket at the first shard.
    pub fn statistics(&self) -> Statistics {
        let shard_socket = self.shard_socket.as_ref();
        let at_socket = if shard_socket.is_none_or(ShardSocket::speaks_for_socket) {
            dropped(&self.socket)
        } else {
            0
        };
        Statistics {
            datagrams_dropped: at_socket
                + shard_socket.map_or(0, |shard_socket| shard_socket.inbox().dropped.value()),
            ..self.counters.snapshot()
        }
    }

    /// Sends threads home that wait in a receive call: no datagram will come to this socket any
    /// more, and a waiting thread is only in the way of closing it. Has no effect on a socket that
    /// several shards receive from.
    pub fn stop_receiving(&self) {
        if self.shard_socket.as_ref().is_none_or(|shard_socket| shard_socket.sharers() == 1) {
            // Linux says ENOTCONN of a socket that is not connected, and wakes who waits in it
            // nevertheless. Elsewhere the wait ends when its time is over.
            let _ = self.socket.shutdown(std::net::Shutdown::Read);
        }
    }

    pub(crate) fn bind_with(address: SocketAddr, options: &UdpOptions) -> Result<Self, OpenError> {
        let (mut carrier, address) = Self::open_for(address, options)?;
        if options.unreachable_reports && ask_for_reports(&carrier.socket, carrier.family).is_ok() {
            carrier.report_queue = Some(ReportQueue::default());
        }
        carrier.bound(address)
    }

    /// Whether the socket is told of what has become of earlier datagrams.
    fn has_reports(&self) -> bool {
        self.connected.is_some() || self.report_queue.is_some()
    }

    /// Binds an address beside another socket that permits it.
    fn bind_beside(address: SocketAddr, options: &UdpOptions) -> Result<Self, OpenError> {
        let (carrier, address) = Self::open_for(address, options)?;
        let shared = carrier.socket.set_reuse_port(true);
        shared.map_err(OpenError::preparing("share an address"))?;
        carrier.bound(address)
    }

    /// A socket for this address, which it does not have yet.
    fn open_for(
        address: SocketAddr,
        options: &UdpOptions,
    ) -> Result<(Self, SocketAddr), OpenError> {
        let address = Path::to(address).remote;
        Ok((Self::open(Reach::of(address), options)?, address))
    }

    fn bound(self, address: SocketAddr) -> Result<Self, OpenError> {
        let bound = self.socket.bind(&SockAddr::from(address));
        bound.map_err(|reason| OpenError::Bind { address, reason })?;
        self.named()
    }

    pub(crate) fn connect_with(
        remote: SocketAddr,
        options: &UdpOptions,
    ) -> Result<Self, OpenError> {
        let remote = Path::to(remote).remote;
        let reach = Reach { wildcard: false, ..Reach::of(remote) };
        let mut carrier = Self::open(reach, options)?;
        let connected = carrier.socket.connect(&SockAddr::from(remote));
        connected.map_err(|reason| OpenError::Connect { remote, reason })?;
        carrier.connected = Some(remote);
        carrier.named()
    }

    /// Takes over a socket that is bound.
    pub(crate) fn adopt_with(socket: UdpSocket, options: &UdpOptions) -> Result<Self, OpenError> {
        let socket = Socket::from(socket);
        let name = socket.local_addr();
        let name = name.map_err(OpenError::preparing("ask for its address"))?;
        let local = name.as_socket().unwrap_or(UNNAMED);
        let mut reach = Reach::of(local);
        if reach.family == Family::Dual && socket.only_v6().unwrap_or(true) {
            reach.family = Family::V6;
        }
        // Calls that must not wait say so themselves.
        let blocking = socket.set_nonblocking(false);
        blocking.map_err(OpenError::preparing("let calls wait"))?;
        Self::prepared(socket, reach, options)?.named()
    }

    /// Opens and prepares a socket that has no address yet, so that nothing arrives unprepared.
    fn open(reach: Reach, options: &UdpOptions) -> Result<Self, OpenError> {
        let family = reach.family;
        let domain = match family {
            Family::V4 => Domain::IPV4,
            Family::Dual | Family::V6 => Domain::IPV6,
        };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
            .map_err(OpenError::preparing("open"))?;
        if family != Family::V4 {
            socket
                .set_only_v6(family == Family::V6)
                .map_err(OpenError::preparing("choose IP versions"))?;
        }
        Self::prepared(socket, reach, options)
    }

    fn prepared(socket: Socket, reach: Reach, options: &UdpOptions) -> Result<Self, OpenError> {
        let Reach { family, wildcard } = reach;
        let preparation = Preparation {
            family,
            report_local: wildcard,
            segmentation_offload: options.segmentation_offload,
            receive_offload: options.receive_offload,
        };
        let offloads =
            prepare(&socket, preparation).map_err(OpenError::preparing("forbid fragments"))?;
        let wanted =
            BufferBytes { receive: options.receive_buffer_bytes, send: options.send_buffer_bytes };
        let buffers =
            size_buffers(&socket, wanted).map_err(OpenError::preparing("size the buffers"))?;
        let wanted_class = class_of(options.plain_priority);
        let class_set = set_plain_class(&socket, family, wanted_class).is_ok();
        Ok(Self {
            socket: Arc::new(socket),
            family,
            local: UNNAMED,
            connected: None,
            wildcard,
            plain_class: if class_set { wanted_class } else { 0 },
            buffers,
            receive_offload: offloads.receive,
            offload_state: OffloadState::new(offloads.segmentation),
            report_queue: None,
            hint_pending: AtomicBool::new(false),
            timeout: ReceiveTimeout::default(),
            counters: Counters::default(),
            buffer: ReceiveBuffer::default(),
            shard_socket: None,
        })
    }

    /// Learns the address that the system gave the socket.
    fn named(mut self) -> Result<Self, OpenError> {
        let name = self.socket.local_addr();
        let name = name.map_err(OpenError::preparing("ask for its address"))?;
        self.local = name.as_socket().unwrap_or(UNNAMED);
        Ok(self)
    }
}

/// The addresses of this host at which a socket is reached.
#[derive(Clone, Copy)]
struct Reach {
    family: Family,
    /// Whether there are several, so that each path must name one.
    wildcard: bool,
}

impl Reach {
    /// The reach of a socket bound to this address.
    fn of(address: SocketAddr) -> Self {
        let wildcard = address.ip().is_unspecified();
        let family = match address {
            SocketAddr::V6(_) if wildcard => Family::Dual,
            _ => Family::of(address.ip()),
        };
        Self { family, wildcard }
    }
}

impl Carrier for UdpCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        self.send_all(batch)
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        self.buffer.lend(|buffer| {
            let received = match &self.shard_socket {
                Some(shard_socket) => self.receive_own(shard_socket, buffer, wait),
                None => self.receive_batch(buffer, wait),
            };
            let Some(received) = received? else {
                return Ok(0);
            };
            sink(received.arrival(buffer));
            Ok(1)
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::of([Some(self.as_fd()), self.inbox_fd()])
    }

    fn capabilities(&self) -> Capabilities {
        let datagram_max = match self.family {
            Family::V4 | Family::Dual => UDP_BYTES_MAX_IPV4,
            Family::V6 => UDP_BYTES_MAX_IPV6,
        };
        // Without the system's offload the carrier cuts a batch itself: that is cheaper than a
        // batch for each datagram.
        Capabilities::new(datagram_max)
            .with_segments_max(SEGMENTS_MAX as u16)
            .with_batch_max(UDP_BYTES_MAX_IPV4)
            .with_priorities(true)
    }
}

impl AsFd for UdpCarrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UdpCarrier {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The traffic class byte of a priority: the top three bits of DSCP, as Homa uses them.
pub(crate) fn class_of(priority: u8) -> u8 {
    priority << 5
}

/// Makes `class` the one that the socket sends by itself.
fn set_plain_class(socket: &Socket, family: Family, class: u8) -> io::Result<()> {
    if class == 0 {
        return Ok(());
    }
    if family != Family::V6 {
        socket.set_tos_v4(u32::from(class))?;
    }
    if family != Family::V4 {
        socket.set_tclass_v6(u32::from(class))?;
    }
    Ok(())
}

/// Stands in until the system has given the socket an address.
const UNNAMED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
