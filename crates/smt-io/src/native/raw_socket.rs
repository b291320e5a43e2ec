// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A raw socket of one version of IP: whole datagrams to and from ports of SMT's own.

use super::error::NativeError;
use super::header::{behind_ipv4, identification};
use super::options::NativeOptions;
use super::port::ReservedPort;
use crate::udp::{
    Blocking, BufferBytes, Family, Incoming, Outgoing, Preparation, class_of, prepare, receive,
    send, size_buffers,
};
use smt_carrier::{Arrival, Batch, Ecn, Marks, Path};
use smt_wire::Shard;
use smt_wire::native::{NativeHeader, unmark_segment};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A raw socket, with the filter of its port.
#[derive(Debug)]
pub(super) struct RawSocket {
    socket: Socket,
    /// The address that it was bound to; port 0, since a raw socket has none.
    bound: IpAddr,
    pub(super) buffers: BufferBytes,
}

impl RawSocket {
    /// Opens a socket for packets to `bound`.
    pub(super) fn open(bound: IpAddr, options: &NativeOptions) -> Result<Self, NativeError> {
        let domain = Domain::for_address(SocketAddr::new(bound, 0));
        let protocol = Protocol::from(i32::from(options.protocol));
        let socket =
            Socket::new(domain, Type::RAW, Some(protocol)).map_err(NativeError::opening(bound))?;
        let preparation = Preparation {
            family: Family::of(bound),
            report_local: true,
            segmentation_offload: false,
            receive_offload: false,
        };
        prepare(&socket, preparation).map_err(NativeError::preparing("forbid fragments"))?;
        let wanted =
            BufferBytes { receive: options.receive_buffer_bytes, send: options.send_buffer_bytes };
        let buffers =
            size_buffers(&socket, wanted).map_err(NativeError::preparing("size the buffers"))?;
        Ok(Self { socket, bound, buffers })
    }

    /// Begins to receive what is for this port and shard.
    pub(super) fn listen(&self, port: &ReservedPort, shard: Shard) -> Result<(), NativeError> {
        let filtered = port.filter(&self.socket, self.bound.is_ipv4(), shard);
        filtered.map_err(NativeError::preparing("attach the port's filter"))?;
        let bound = SocketAddr::new(self.bound, 0);
        self.socket
            .bind(&SockAddr::from(bound))
            .map_err(|reason| NativeError::Bind { address: port.address, reason })
    }

    /// Whether packets to this address leave by it.
    pub(super) fn speaks_with(&self, remote: SocketAddr) -> bool {
        self.bound.is_ipv4() == remote.is_ipv4()
    }

    /// Sends a datagram behind its header by one system call.
    pub(super) fn send(&self, batch: &Batch<'_>, packet: &[u8]) -> io::Result<()> {
        let mut to = batch.path.remote;
        // The port of a raw socket's address is a protocol, and has been said.
        to.set_port(0);
        let class = class_of(batch.priority);
        let outgoing = Outgoing {
            to: Some(to),
            ipv4: to.is_ipv4(),
            source: batch.path.local.filter(|_| self.bound.is_unspecified()),
            traffic_class: (class != 0).then_some(class),
            segment_size: None,
            bytes: packet,
        };
        loop {
            match send(&self.socket, &outgoing) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Receives until something is for this port, or there is nothing.
    pub(super) fn receive<'a>(
        &self,
        port: u16,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<Arrival<'a>>> {
        loop {
            let incoming = match receive(&self.socket, buffer, Blocking::No) {
                Ok(incoming) => incoming,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => return Err(error),
                },
            };
            if let Some(place) = self.place(&incoming, port, buffer)
                && self.unmark(place, &mut buffer[..incoming.length])
            {
                return Ok(Some(self.arrival(&incoming, place, buffer)));
            }
        }
    }

    /// The place of a datagram, if one has come for this port: before it had its filter, the socket
    /// has perhaps got the packets of others.
    fn place(&self, incoming: &Incoming, port: u16, buffer: &[u8]) -> Option<Place> {
        if incoming.truncated {
            return None;
        }
        let packet = buffer.get(..incoming.length)?;
        let native = match self.bound {
            IpAddr::V4(_) => behind_ipv4(packet)?,
            IpAddr::V6(_) => packet,
        };
        let (header, datagram) = NativeHeader::parse(native)?;
        (header.destination == port)
            .then_some(Place { source_port: header.source, start: packet.len() - datagram.len() })
    }

    /// Gives the packet of a segment its own offset (SPEC §15.2). A packet without a place in any
    /// segment is dropped.
    fn unmark(&self, place: Place, packet: &mut [u8]) -> bool {
        let identification = match self.bound {
            IpAddr::V4(_) => identification(packet),
            IpAddr::V6(_) => None,
        };
        unmark_segment(&mut packet[place.start..], identification).is_ok()
    }

    fn arrival<'a>(&self, incoming: &Incoming, place: Place, buffer: &'a [u8]) -> Arrival<'a> {
        let mut remote = incoming.from;
        remote.set_port(place.source_port);
        let local = match self.bound.is_unspecified() {
            true => incoming.local,
            false => Some(self.bound),
        };
        let path = match local {
            Some(local) => Path::between(remote, local),
            None => Path::to(remote),
        };
        let class = incoming.traffic_class.unwrap_or_default();
        Arrival::datagram(path, &buffer[place.start..incoming.length])
            .with_marks(Marks { trimmed: false, ecn: Ecn::of_traffic_class(class) })
    }
}

/// Where a datagram begins in a buffer, and the port that it is from.
#[derive(Clone, Copy)]
struct Place {
    source_port: u16,
    start: usize,
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
