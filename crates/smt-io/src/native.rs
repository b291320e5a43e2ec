// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams over an IP protocol of SMT's own (SPEC §15.2), by raw sockets.
//!
//! 1. Opening reserves the port (`native/port.rs`), and lets the sockets get packets to it alone:
//!    one socket for each version of IP (`native/raw_socket.rs`).
//! 2. Sending puts the native header before each datagram, one system call each: the system cuts
//!    nothing for a protocol that it does not know.
//! 3. Receiving takes the IP header and the native header off.
//!
//! Not here: segmentation by a device, which the model `smt-nic` has.

mod error;
mod header;
mod options;
mod port;
mod probe;
mod raw_socket;

pub use error::NativeError;
pub use options::NativeOptions;
pub use probe::probe_native;

use crate::receive_buffer::ReceiveBuffer;
use crate::udp::{ErrnoClass, wait_readable};
use port::ReservedPort;
use raw_socket::RawSocket;
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Path, Readiness, ReceiveError, SendError, Wait,
};
use smt_wire::Shard;
use smt_wire::native::NativeHeader;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A carrier over raw sockets, for IPv4, IPv6 or both. It needs the right `CAP_NET_RAW`.
#[derive(Debug)]
pub struct NativeCarrier {
    sockets: Sockets,
    /// All shards of an address have it together.
    port: Arc<ReservedPort>,
    /// Where peers reach this carrier.
    local: SocketAddr,
    buffer: ReceiveBuffer,
    /// Where a datagram gets its header.
    outgoing: Mutex<Vec<u8>>,
}

impl NativeCarrier {
    /// Opens a carrier that listens on `address`; port 0 lets the system choose. `[::]` takes IPv4
    /// as well.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn bind(address: SocketAddr, options: &NativeOptions) -> Result<Self, NativeError> {
        let address = Path::to(address).remote;
        let sockets = Sockets::open(address.ip(), options)?;
        let port = ReservedPort::reserve(address)?;
        Self::listening(sockets, Arc::new(port), Shard::default())
    }

    /// Bytes of packets, the kernel's overhead counted, that the receive buffer really holds, of
    /// one version of IP.
    pub fn receive_buffer_bytes(&self) -> usize {
        self.sockets.first.buffers.receive
    }

    pub(crate) fn bind_shards(
        address: SocketAddr,
        count: u16,
        options: &NativeOptions,
    ) -> Result<Vec<Self>, NativeError> {
        let address = Path::to(address).remote;
        let sockets = (0..count).map(|_| Sockets::open(address.ip(), options));
        let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
        let port = Arc::new(ReservedPort::reserve(address)?);
        let carriers = (0..count).zip(sockets).map(|(number, sockets)| {
            Self::listening(sockets, Arc::clone(&port), Shard::new(number, count))
        });
        carriers.collect()
    }

    fn listening(
        sockets: Sockets,
        port: Arc<ReservedPort>,
        shard: Shard,
    ) -> Result<Self, NativeError> {
        for socket in sockets.iter() {
            socket.listen(&port, shard)?;
        }
        Ok(Self {
            local: port.address,
            sockets,
            port,
            buffer: ReceiveBuffer::default(),
            outgoing: Mutex::default(),
        })
    }

    fn send_datagram(
        &self,
        socket: &RawSocket,
        batch: &Batch<'_>,
        datagram: &[u8],
    ) -> io::Result<()> {
        let header =
            NativeHeader { source: self.port.number(), destination: batch.path.remote.port() };
        let mut packet = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        packet.clear();
        packet.extend_from_slice(&header.to_bytes());
        packet.extend_from_slice(datagram);
        socket.send(batch, &packet)
    }
}

impl Carrier for NativeCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let size = batch.plain_segment_size();
        let Some(socket) = self.sockets.to(batch.path.remote) else {
            return Err(SendError::Unreachable);
        };
        let mut bytes_sent = 0;
        for datagram in batch.bytes.chunks(size) {
            let sent = self.send_datagram(socket, batch, datagram);
            sent.map_err(|error| sending_error(error, bytes_sent))?;
            bytes_sent += datagram.len();
        }
        Ok(())
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        if let Wait::AtMost(limit) = wait
            && !limit.is_zero()
        {
            let waited = self.sockets.wait(limit);
            waited.map_err(|error| received_error(&error))?;
        }
        self.buffer.lend(|buffer| {
            for socket in self.sockets.in_turn().into_iter().flatten() {
                let received = socket.receive(self.port.number(), buffer);
                if let Some(arrival) = received.map_err(|error| received_error(&error))? {
                    sink(arrival);
                    return Ok(1);
                }
            }
            Ok(0)
        })
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn readiness(&self) -> Readiness<'_> {
        let second = self.sockets.second.as_ref().map(AsFd::as_fd);
        Readiness::of([Some(self.sockets.first.as_fd()), second])
    }

    fn capabilities(&self) -> Capabilities {
        let headers = match self.local {
            SocketAddr::V4(_) => 20 + NativeHeader::LEN,
            SocketAddr::V6(_) => 40 + NativeHeader::LEN,
        };
        // A batch for each datagram would cost the core more than a loop here.
        Capabilities::new(IP_BYTES_MAX - headers)
            .with_segments_max(crate::limits::SEGMENTS_MAX as u16)
            .with_priorities(true)
    }
}

/// A socket for each version of IP that a carrier speaks.
#[derive(Debug)]
struct Sockets {
    first: RawSocket,
    /// For IPv4, of a carrier for both.
    second: Option<RawSocket>,
    /// Whose turn it is to be looked at first, so that neither is kept waiting by the other.
    is_seconds_turn: AtomicBool,
}

impl Sockets {
    fn open(ip: IpAddr, options: &NativeOptions) -> Result<Self, NativeError> {
        let is_dual = ip.is_ipv6() && ip.is_unspecified();
        let first = RawSocket::open(ip, options)?;
        let second = is_dual.then(|| RawSocket::open(Ipv4Addr::UNSPECIFIED.into(), options));
        Ok(Self { first, second: second.transpose()?, is_seconds_turn: AtomicBool::new(false) })
    }

    fn iter(&self) -> impl Iterator<Item = &RawSocket> {
        std::iter::once(&self.first).chain(&self.second)
    }

    /// The socket for packets to this address.
    fn to(&self, remote: SocketAddr) -> Option<&RawSocket> {
        self.iter().find(|socket| socket.speaks_with(remote))
    }

    /// Both, the one first whose turn it is.
    fn in_turn(&self) -> [Option<&RawSocket>; 2] {
        let Some(second) = &self.second else {
            return [Some(&self.first), None];
        };
        match self.is_seconds_turn.fetch_xor(true, Ordering::Relaxed) {
            true => [Some(second), Some(&self.first)],
            false => [Some(&self.first), Some(second)],
        }
    }

    /// Waits until one of them has something.
    fn wait(&self, limit: Duration) -> io::Result<()> {
        let first = self.first.as_fd();
        let waited = match &self.second {
            Some(second) => wait_readable([first, second.as_fd()], limit),
            None => wait_readable([first], limit),
        };
        waited.map(drop)
    }
}

/// The error for the caller of a send on a socket that gets no reports.
pub(crate) fn sending_error(error: io::Error, bytes_sent: usize) -> SendError {
    ErrnoClass::of(error, false).to_send_error(bytes_sent)
}

/// The error for the caller of a receive.
pub(crate) fn received_error(error: &io::Error) -> ReceiveError {
    ReceiveError::Other { code: error.raw_os_error().unwrap_or(0) }
}

/// Bytes of an IP packet, by the length fields of IPv4.
const IP_BYTES_MAX: usize = 65_535;
