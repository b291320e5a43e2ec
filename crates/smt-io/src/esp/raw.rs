// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP as IP protocol 50, by raw sockets: whole IP packets leave as they are, with their own TOS,
//! Don't Fragment bit and identification.

use super::system::send_packets;
use super::{
    BUFFERS, EspArrival, EspSocketError, EspSocketOptions, bind_to_device, receive_arrival,
    send_patiently, spi_bpf,
};
use crate::udp::{Family, Preparation, prepare, size_buffers};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// A raw socket of protocol 50, of one IP version. It needs the right `CAP_NET_RAW`.
#[derive(Debug)]
pub struct EspRawSocket {
    socket: Socket,
    local: SocketAddr,
}

/// A packet among the bytes of a batch.
#[derive(Clone, Debug)]
pub struct RawPacket {
    /// The destination, by which the system finds the way; its port is 0.
    pub to: SocketAddr,
    /// Where the packet is, from its IP header on.
    pub range: Range<usize>,
}

impl EspRawSocket {
    /// Opens a socket.
    ///
    /// # Errors
    /// See [`EspSocketError`].
    pub fn open(options: &EspSocketOptions) -> Result<Self, EspSocketError> {
        let preparing = EspSocketError::preparing;
        let local = SocketAddr::new(options.local.ip(), 0);
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_ESP)));
        let socket = socket.map_err(|reason| match reason.kind() {
            io::ErrorKind::PermissionDenied => EspSocketError::Forbidden(reason),
            _ => preparing("open it")(reason),
        })?;
        if options.sharing.count > 1 {
            let filtered = spi_bpf::filter_by_spi(&socket, options.sharing, local.is_ipv4());
            filtered.map_err(preparing("spread packets by SPI"))?;
        }
        let preparation = Preparation {
            family: Family::of(local.ip()),
            report_local: true,
            segmentation_offload: false,
            receive_offload: false,
        };
        prepare(&socket, preparation).map_err(preparing("forbid fragments"))?;
        let own_headers = match local {
            SocketAddr::V4(_) => socket.set_header_included_v4(true),
            SocketAddr::V6(_) => socket.set_header_included_v6(true),
        };
        own_headers.map_err(preparing("write headers itself"))?;
        size_buffers(&socket, BUFFERS).map_err(preparing("size the buffers"))?;
        bind_to_device(&socket, options.device.as_deref())?;
        let bound = socket.bind(&SockAddr::from(local));
        bound.map_err(EspSocketError::binding(local))?;
        Ok(Self { socket, local })
    }

    /// Sends packets, by one call if `is_batch`, and tells by how many calls.
    ///
    /// # Errors
    /// The answer of the system; packets before the one that failed have left.
    pub fn send(&self, bytes: &[u8], packets: &[RawPacket], is_batch: bool) -> io::Result<usize> {
        let (mut sent, mut calls) = (0, 0);
        while sent < packets.len() {
            let end = if is_batch { packets.len() } else { sent + 1 };
            calls += 1;
            let packets = &packets[sent..end];
            send_patiently(&self.socket, || {
                sent += send_packets(&self.socket, bytes, packets)?;
                Ok(())
            })?;
        }
        Ok(calls)
    }

    /// Receives a whole packet of IPv4, or of IPv6 what is behind its header, without waiting.
    /// Nothing if nothing is there.
    ///
    /// # Errors
    /// The answer of the system.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<EspArrival>> {
        receive_arrival(&self.socket, self.local.ip(), buffer)
    }
}

impl AsFd for EspRawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
