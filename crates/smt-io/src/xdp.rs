// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams over an IP protocol of SMT's own (SPEC §15.2), by an `AF_XDP` socket: past the
//! kernel's IP, through memory that is shared with it.
//!
//! 1. Opening loads a program at the interface of the address (`xdp/program.rs`): packets to the
//!    address and port go to the socket, all others to the system as ever.
//! 2. A native carrier at the same address (`native.rs`) reserves the port, and takes what the
//!    program passes on. It sends to peers whose neighbour the kernel has yet to find
//!    (`xdp/neighbours.rs`).
//! 3. All others are sent to as whole packets of Ethernet (`xdp/frame.rs`), a batch by one system
//!    call or a few (`xdp/packet_socket.rs`). Receiving makes none while there is something.
//!
//! Copy mode and generic XDP alone: they work with every driver. Packets that arrive at another
//! queue of the interface than the socket's go through the native carrier, too.

mod bpf;
mod error;
mod frame;
mod mapping;
mod neighbours;
mod netlink;
mod packet_socket;
mod probe;
mod program;
mod ring;
mod routes;

pub use error::XdpError;
pub use probe::probe_xdp;

use crate::native::{NativeCarrier, NativeOptions, received_error, sending_error};
use crate::udp::{class_of, wait_readable};
use bpf::{Attachment, SocketMap};
use frame::{ETHERNET_BYTES, HardwareAddress, Headers};
use neighbours::Neighbours;
use netlink::Netlink;
use packet_socket::{PACKET_BYTES_MAX, PacketSocket, RECEIVE_FRAMES};
use program::{Selection, program};
use routes::Interface;
use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, Ecn, Marks, Path, Readiness, ReceiveError, SendError,
    Wait,
};
use smt_wire::native::unmark_segment;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The options of an XDP carrier.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct XdpOptions {
    /// Those of the native carrier beside it, and the protocol number of both.
    pub native: NativeOptions,
    /// The queue of the interface at which the socket is.
    pub queue: u32,
}

impl XdpOptions {
    /// The same with another IP protocol number.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> Self {
        self.native = self.native.protocol(protocol);
        self
    }

    /// The same at another queue of the interface.
    #[must_use]
    pub fn queue(mut self, queue: u32) -> Self {
        self.queue = queue;
        self
    }

    /// Opens a carrier that listens on `address`, see [`XdpCarrier::bind`].
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn bind(&self, address: SocketAddr) -> Result<XdpCarrier, XdpError> {
        XdpCarrier::bind(address, self)
    }
}

/// A carrier over an `AF_XDP` socket at one queue of one interface, for one address. It needs the
/// rights `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`, and is the only one at its interface.
#[derive(Debug)]
pub struct XdpCarrier {
    native: NativeCarrier,
    interface: Interface,
    protocol: u8,
    // The program goes first, then the map that it names, then the socket in it.
    _attachment: Attachment,
    _map: SocketMap,
    socket: PacketSocket,
    neighbours: Mutex<Neighbours>,
}

impl XdpCarrier {
    /// Opens a carrier that listens on `address`, which is one of an interface of Ethernet; port 0
    /// lets the system choose.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn bind(address: SocketAddr, options: &XdpOptions) -> Result<Self, XdpError> {
        let ip = Path::to(address).remote.ip();
        if ip.is_unspecified() {
            return Err(XdpError::Wildcard { address });
        }
        let native = NativeCarrier::bind(address, &options.native)?;
        let interface = interface_of(ip)?;
        let at = |step| XdpError::at(&interface.name, step);
        let queues = options.queue.saturating_add(1);
        let map = SocketMap::create(queues).map_err(at("make a map of sockets"))?;
        let socket = PacketSocket::open(interface.index, options.queue)
            .map_err(at("open a socket of AF_XDP"))?;
        let inserted = map.insert(options.queue, socket.as_fd());
        inserted.map_err(at("put the socket into the map"))?;
        let program = program(&Selection {
            local: native.local_address(),
            protocol: options.native.protocol,
            frame_bytes_max: PACKET_BYTES_MAX,
            map: map.descriptor(),
        });
        let attachment = Attachment::attach(&program, interface.index)
            .map_err(at("attach the program to the interface"))?;
        let neighbours = Neighbours::new(interface.index, ip, Instant::now())
            .map_err(at("ask for neighbours"))?;
        Ok(Self {
            native,
            interface,
            protocol: options.native.protocol,
            _attachment: attachment,
            _map: map,
            socket,
            neighbours: Mutex::new(neighbours),
        })
    }

    /// Bytes of packets of full size that the receiving frames hold.
    pub fn receive_buffer_bytes(&self) -> usize {
        RECEIVE_FRAMES as usize * self.interface.mtu.min(PACKET_BYTES_MAX)
    }

    /// Bytes of the longest datagram that a packet of the interface holds.
    fn datagram_max(&self) -> usize {
        let packet = (PACKET_BYTES_MAX - ETHERNET_BYTES).min(self.interface.mtu);
        packet - Headers::ip_bytes(self.native.local_address().is_ipv4())
    }

    fn neighbour(&self, remote: SocketAddr) -> Option<HardwareAddress> {
        let mut neighbours = self.neighbours.lock().unwrap_or_else(PoisonError::into_inner);
        neighbours.to(remote, Instant::now())
    }

    fn send_to(&self, neighbour: HardwareAddress, batch: &Batch<'_>) -> Result<(), SendError> {
        let headers = Headers {
            hardware_source: self.interface.address,
            hardware_target: neighbour,
            source: self.native.local_address(),
            target: batch.path.remote,
            protocol: self.protocol,
            traffic_class: class_of(batch.priority),
        };
        let size = batch.plain_segment_size();
        if size.min(batch.bytes.len()) > self.datagram_max() {
            return Err(SendError::TooLarge);
        }
        let mut outbox = self.socket.sending();
        let mut bytes_sent = 0;
        let mut outcome = Ok(());
        for datagram in batch.bytes.chunks(size) {
            if outbox.push(|packet| headers.write(datagram, packet)).is_none() {
                outcome = Err(SendError::WouldBlock { bytes_sent });
                break;
            }
            bytes_sent += datagram.len();
        }
        let flushed = outbox.flush();
        flushed.map_err(|error| sending_error(error, bytes_sent))?;
        outcome
    }

    /// Hands one packet over, if one has come that is for this carrier.
    fn receive_packet(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let mut look = |packet: &mut [u8]| {
            let Some((path, class, place)) = self.arrived(packet) else {
                return false;
            };
            let marks = Marks { trimmed: false, ecn: Ecn::of_traffic_class(class) };
            sink(Arrival::datagram(path, &packet[place]).with_marks(marks));
            true
        };
        // The program has let nothing else through, but for headers that only looked right.
        while let Some(was_ours) = self.socket.receive(&mut look) {
            if was_ours {
                return true;
            }
        }
        false
    }

    /// Reads a packet, which gets its own offset if it is of a segment (SPEC §15.2).
    fn arrived(&self, packet: &mut [u8]) -> Option<(Path, u8, std::ops::Range<usize>)> {
        let (headers, place) = Headers::parse(packet)?;
        let local = self.native.local_address();
        let is_ours = headers.protocol == self.protocol
            && headers.target.ip() == local.ip()
            && headers.target.port() == local.port();
        let mut source = headers.source;
        if let SocketAddr::V6(source) = &mut source
            && source.ip().is_unicast_link_local()
        {
            source.set_scope_id(self.interface.index);
        }
        let path = Path::between(source, local.ip());
        is_ours.then_some(())?;
        let identification = Headers::identification(packet);
        unmark_segment(&mut packet[place.clone()], identification).ok()?;
        Some((path, headers.traffic_class, place))
    }
}

impl Carrier for XdpCarrier {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let remote = batch.path.remote;
        if remote.is_ipv4() != self.native.local_address().is_ipv4() {
            return Err(SendError::Unreachable);
        }
        match self.neighbour(remote) {
            Some(neighbour) => self.send_to(neighbour, batch),
            None => self.native.send(batch),
        }
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        if self.receive_packet(sink) {
            return Ok(1);
        }
        if let Wait::AtMost(limit) = wait
            && !limit.is_zero()
        {
            let readiness = self.native.readiness();
            let native = readiness.descriptors().next();
            let descriptors = [self.socket.as_fd(), native.unwrap_or_else(|| self.socket.as_fd())];
            let waited = wait_readable(descriptors, limit);
            waited.map_err(|error| received_error(&error))?;
            if self.receive_packet(sink) {
                return Ok(1);
            }
        }
        self.native.receive(sink, Wait::Never)
    }

    fn local_address(&self) -> SocketAddr {
        self.native.local_address()
    }

    fn readiness(&self) -> Readiness<'_> {
        let readiness = self.native.readiness();
        let native = readiness.descriptors().next();
        Readiness::of([Some(self.socket.as_fd()), native])
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.datagram_max())
            .with_segments_max(crate::limits::SEGMENTS_MAX as u16)
            .with_priorities(true)
    }
}

fn interface_of(ip: IpAddr) -> Result<Interface, XdpError> {
    let found = Netlink::open().and_then(|mut netlink| netlink.interface_of(ip));
    let found = found.map_err(XdpError::at("", "ask for the interface"))?;
    found.ok_or(XdpError::NoInterface { ip })
}
