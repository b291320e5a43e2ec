// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets under ESP (RFC 4303): ESP in UDP (RFC 3948), and ESP by itself as IP protocol 50.
//!
//! 1. [`EspUdpSocket`] sends datagrams of one size by one call, which the kernel cuts, and takes
//!    coalesced ones.
//! 2. [`EspRawSocket`] sends whole IP packets, many to a call.
//! 3. Several sockets of one address share what comes by the SPI, the first word of ESP, by a
//!    program of classic BPF ([`Sharing`]).
//! 4. Both may be bound to a device: the routes that lead into a tunnel do not catch what the
//!    tunnel sends.
//!
//! Not here: the packets' meaning, and what is to be done with one that the system refuses.

mod error;
mod raw;
mod spi_bpf;
mod system;
mod udp;

pub use error::EspSocketError;
pub use raw::{EspRawSocket, RawPacket};
pub use udp::{EspDatagrams, EspUdpSocket};

use crate::limits::{RECEIVE_BUFFER_BYTES_DEFAULT, SEND_BUFFER_BYTES_DEFAULT};
use crate::udp::{Blocking, BufferBytes, receive};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// One of the sockets that share an address, by the SPI modulo their number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sharing {
    /// The socket's own number, from 0 on; sockets of UDP are opened in this order.
    pub index: u16,
    /// Sockets that share the address, at least one.
    pub count: u16,
}

impl Sharing {
    /// A socket alone.
    pub const ALONE: Self = Self { index: 0, count: 1 };
}

/// The options of a socket under ESP.
#[derive(Clone, Debug)]
pub struct EspSocketOptions {
    /// This host's address; the port counts for UDP alone.
    pub local: SocketAddr,
    /// The device that packets leave and come by, whatever the routes say.
    pub device: Option<String>,
    /// UDP: the kernel cuts batches of datagrams.
    pub segmentation: bool,
    /// UDP: the kernel coalesces datagrams.
    pub coalescing: bool,
    /// The socket's part of what comes.
    pub sharing: Sharing,
}

/// The result of receiving.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EspArrival {
    /// The sender; its port counts for UDP alone.
    pub from: SocketAddr,
    /// The address of this host that was called.
    pub local: IpAddr,
    /// TOS or traffic class.
    pub traffic_class: u8,
    /// Bytes in the caller's buffer.
    pub length: usize,
    /// Bytes of each datagram among them but the last.
    pub segment_size: usize,
}

/// The largest IP packet that the host knows to pass to an address, by a device if one is given.
///
/// # Errors
/// No route leads there.
pub fn route_mtu(to: SocketAddr, device: Option<&str>) -> io::Result<usize> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    socket.connect(&SockAddr::from(to))?;
    crate::udp::path_mtu(&socket, to.is_ipv4())
}

fn bind_to_device(socket: &Socket, device: Option<&str>) -> Result<(), EspSocketError> {
    let Some(device) = device else {
        return Ok(());
    };
    let bound = socket.bind_device(Some(device.as_bytes()));
    bound.map_err(|reason| EspSocketError::Device { device: device.to_owned(), reason })
}

const BUFFERS: BufferBytes =
    BufferBytes { receive: RECEIVE_BUFFER_BYTES_DEFAULT, send: SEND_BUFFER_BYTES_DEFAULT };

/// Sends by `attempt`, once more after a wait if the socket is full: a wait of bounded time, since
/// the caller has other work.
fn send_patiently(socket: &Socket, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut waited = false;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waited => {
                system::wait_writable(socket.as_fd(), FULL_SOCKET_WAIT)?;
                waited = true;
            }
            outcome => return outcome,
        }
    }
}

/// Receives without waiting. Nothing if nothing is there.
fn receive_arrival(
    socket: &Socket,
    local: IpAddr,
    buffer: &mut [u8],
) -> io::Result<Option<EspArrival>> {
    loop {
        match receive(socket, buffer, Blocking::No) {
            Ok(incoming) if incoming.truncated => {}
            Ok(incoming) => {
                return Ok(Some(EspArrival {
                    from: incoming.from,
                    local: incoming.local.unwrap_or(local),
                    traffic_class: incoming.traffic_class.unwrap_or(0),
                    length: incoming.length,
                    segment_size: incoming.segment_size.max(1),
                }));
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                // A report about an earlier datagram is no failure of this call.
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => {}
                _ => return Err(error),
            },
        }
    }
}

/// A socket whose queue does not move for so long has a device that is stuck.
const FULL_SOCKET_WAIT: Duration = Duration::from_millis(100);
