// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams over an IP protocol of SMT's own (SPEC §15.2), by a raw socket.
//!
//! 1. Opening reserves the port (`native/port.rs`), and lets the socket get packets to it alone.
//! 2. Sending puts the native header before each datagram, one system call each: the system cuts
//!    nothing for a protocol that it does not know.
//! 3. Receiving takes the IP header and the native header off.
//!
//! Not here: segmentation by a device, which the model `smt-nic` has.

mod error;
mod header;
mod port;

pub use error::NativeError;

use crate::receive_buffer::ReceiveBuffer;
use crate::udp::{
    Blocking, BufferBytes, Family, Incoming, Outgoing, Preparation, class_of, prepare, receive,
    send, size_buffers, wait_readable,
};
use header::{NativeHeader, behind_ipv4};
use port::ReservedPort;
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Ecn, Marks, Path, Readiness, ReceiveError, SendError,
    Wait,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

/// The options of a native carrier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NativeOptions {
    /// The IP protocol number: 253 by default, which is for experiments (RFC 3692). Peers must have
    /// the same.
    pub protocol: u8,
    /// Bytes of the receive buffer.
    pub receive_buffer_bytes: usize,
    /// Bytes of the send buffer.
    pub send_buffer_bytes: usize,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self {
            protocol: 253,
            receive_buffer_bytes: crate::limits::RECEIVE_BUFFER_BYTES_DEFAULT,
            send_buffer_bytes: crate::limits::SEND_BUFFER_BYTES_DEFAULT,
        }
    }
}

impl NativeOptions {
    /// The same with another IP protocol number.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> Self {
        self.protocol = protocol;
        self
    }
}

/// A carrier over one raw socket, IPv4 or IPv6. It needs the right `CAP_NET_RAW`.
#[derive(Debug)]
pub struct NativeCarrier {
    socket: Socket,
    port: ReservedPort,
    /// Where peers reach this socket.
    local: SocketAddr,
    buffer: ReceiveBuffer,
    /// Where a datagram gets its header.
    outgoing: Mutex<Vec<u8>>,
}

impl NativeCarrier {
    /// Opens a carrier that listens on `address`; port 0 lets the system choose. `[::]` takes IPv6
    /// alone.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn bind(address: SocketAddr, options: &NativeOptions) -> Result<Self, NativeError> {
        let address = Path::to(address).remote;
        let domain = Domain::for_address(address);
        let protocol = Protocol::from(i32::from(options.protocol));
        let socket =
            Socket::new(domain, Type::RAW, Some(protocol)).map_err(NativeError::opening)?;
        let port = ReservedPort::reserve(address)
            .map_err(|reason| NativeError::Bind { address, reason })?;
        let filtered = port.filter(&socket, address.is_ipv4());
        filtered.map_err(NativeError::preparing("attach the port's filter"))?;
        let preparation = Preparation {
            family: family_of(address),
            report_local: true,
            segmentation_offload: false,
            receive_offload: false,
        };
        prepare(&socket, preparation).map_err(NativeError::preparing("forbid fragments"))?;
        let buffers = BufferBytes {
            receive: options.receive_buffer_bytes,
            send: options.send_buffer_bytes,
        };
        size_buffers(&socket, buffers).map_err(NativeError::preparing("size the buffers"))?;
        let without_port = SocketAddr::new(address.ip(), 0);
        let bound = socket.bind(&SockAddr::from(without_port));
        bound.map_err(|reason| NativeError::Bind { address, reason })?;
        Ok(Self {
            local: SocketAddr::new(address.ip(), port.number),
            socket,
            port,
            buffer: ReceiveBuffer::default(),
            outgoing: Mutex::default(),
        })
    }

    /// Sends one datagram by one system call.
    fn send_datagram(&self, batch: &Batch<'_>, datagram: &[u8]) -> io::Result<()> {
        let header = NativeHeader {
            source: self.port.number,
            destination: batch.path.remote.port(),
        };
        let mut bytes = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clear();
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(datagram);
        let mut to = batch.path.remote;
        // The port of a raw socket's address is a protocol, and has been said.
        to.set_port(0);
        let class = class_of(batch.priority);
        let outgoing = Outgoing {
            to: Some(to),
            ipv4: to.is_ipv4(),
            source: batch.path.local.filter(|_| self.is_wildcard()),
            traffic_class: (class != 0).then_some(class),
            segment_size: None,
            bytes: &bytes,
        };
        loop {
            match send(&self.socket, &outgoing) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn is_wildcard(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// Receives until something is for this carrier, or there is nothing.
    fn receive_own(
        &self,
        buffer: &mut [u8],
        sink: &mut dyn FnMut(Arrival<'_>),
    ) -> Result<usize, ReceiveError> {
        loop {
            let incoming = match receive(&self.socket, buffer, Blocking::No) {
                Ok(incoming) => incoming,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(0),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(received_error(&error)),
                },
            };
            if let Some(arrival) = self.arrival(&incoming, buffer) {
                sink(arrival);
                return Ok(1);
            }
        }
    }

    /// The datagram that has come, if it is for this carrier: before it had its filter, the socket
    /// has perhaps got the packets of others.
    fn arrival<'a>(&self, incoming: &Incoming, buffer: &'a [u8]) -> Option<Arrival<'a>> {
        if incoming.truncated {
            return None;
        }
        let packet = buffer.get(..incoming.length)?;
        let native = match incoming.from {
            SocketAddr::V4(_) => behind_ipv4(packet)?,
            SocketAddr::V6(_) => packet,
        };
        let (header, datagram) = NativeHeader::parse(native)?;
        if header.destination != self.port.number {
            return None;
        }
        let mut remote = incoming.from;
        remote.set_port(header.source);
        let local: Option<IpAddr> = match self.is_wildcard() {
            true => incoming.local,
            false => Some(self.local.ip()),
        };
        let path = match local {
            Some(local) => Path::between(remote, local),
            None => Path::to(remote),
        };
        let class = incoming.traffic_class.unwrap_or_default();
        Some(Arrival::datagram(path, datagram).with_marks(Marks {
            trimmed: false,
            ecn: Ecn::of_traffic_class(class),
        }))
    }
}

impl Carrier for NativeCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let size = batch.plain_segment_size();
        if batch.path.remote.is_ipv4() != self.local.is_ipv4() {
            return Err(SendError::Unreachable);
        }
        let mut bytes_sent = 0;
        for datagram in batch.bytes.chunks(size) {
            let sent = self.send_datagram(batch, datagram);
            sent.map_err(|error| sending_error(&error, bytes_sent))?;
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
            wait_readable([self.socket.as_fd()], limit).map_err(|error| received_error(&error))?;
        }
        self.buffer.lend(|buffer| self.receive_own(buffer, sink))
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::of([Some(self.socket.as_fd()), None])
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

fn family_of(address: SocketAddr) -> Family {
    match address {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    }
}

fn sending_error(error: &io::Error, bytes_sent: usize) -> SendError {
    if error.kind() == io::ErrorKind::WouldBlock {
        return SendError::WouldBlock { bytes_sent };
    }
    match error.raw_os_error().unwrap_or(0) {
        libc::ENOBUFS => SendError::WouldBlock { bytes_sent },
        libc::EMSGSIZE => SendError::TooLarge,
        libc::EHOSTDOWN | libc::EHOSTUNREACH | libc::ENETDOWN | libc::ENETUNREACH => {
            SendError::Unreachable
        }
        code => SendError::Other { code },
    }
}

fn received_error(error: &io::Error) -> ReceiveError {
    ReceiveError::Other {
        code: error.raw_os_error().unwrap_or(0),
    }
}

/// Bytes of an IP packet, by the length fields of IPv4.
const IP_BYTES_MAX: usize = 65_535;
