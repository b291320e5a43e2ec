// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process may use the XDP carrier: tried out, but for the program at an interface.

use super::bpf::{SocketMap, load};
use super::error::XdpError;
use super::packet_socket::{PACKET_BYTES_MAX, PacketSocket};
use super::program::{Selection, program};
use std::net::{Ipv4Addr, SocketAddr};

/// Makes a map of sockets, has the kernel check the program of a carrier, and opens a socket at
/// loopback. Nothing is attached to an interface, and all is gone when this returns.
///
/// # Errors
/// See [`XdpError`].
pub fn probe_xdp() -> Result<(), XdpError> {
    let at = |step| XdpError::at("lo", step);
    let map = SocketMap::create(1).map_err(at("make a map of sockets"))?;
    let program = program(&Selection {
        local: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        protocol: 253,
        frame_bytes_max: PACKET_BYTES_MAX,
        map: map.descriptor(),
    });
    load(&program).map_err(at("load the program"))?;
    PacketSocket::open(LOOPBACK, 0).map_err(at("open a socket of AF_XDP"))?;
    Ok(())
}

/// The index of loopback, which every network namespace has as its first interface.
const LOOPBACK: u32 = 1;
