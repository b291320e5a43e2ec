// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A port of the native carrier: numbers of SMT's own, since a raw socket has none.
//!
//! 1. The port is reserved for as long as the carrier lives, by a TCP socket that is bound to it
//!    and never listens. The system so gives each port once, and chooses a free one for port 0.
//! 2. A program of classic BPF lets the raw socket get packets to this port alone; without it each
//!    raw socket would get the packets of all. Shards have the port together, and programs that
//!    part its packets among them.

use super::error::NativeError;
use crate::classic_bpf::{
    A_TO_X, ADD, ADD_X, AND, IF_AT_LEAST, IF_EQUAL, LOAD, LOAD_BYTE_AT_X, LOAD_HALF_AT_X,
    LOAD_LENGTH, LOAD_WORD_AT_X, LOAD_X, LOAD_X_HEADER_LENGTH, LOAD_X_STORED, RETURN, SKIP, STORE,
    SUBTRACT_X, X_TO_A, attach, branch, step,
};
use libc::sock_filter;
use smt_wire::native::NativeHeader;
use smt_wire::{PacketType, Shard};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// A port that no other native carrier of this host has at the same address.
#[derive(Debug)]
pub(super) struct ReservedPort {
    /// Bound, and nothing else.
    _socket: Socket,
    /// With the port that was given.
    pub(super) address: SocketAddr,
}

impl ReservedPort {
    /// Reserves the port of `address`, or a free one for port 0. `[::]` reserves the port for IPv4,
    /// too.
    pub(super) fn reserve(address: SocketAddr) -> Result<Self, NativeError> {
        Self::bind(address).map_err(|reason| NativeError::Bind { address, reason })
    }

    fn bind(address: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.bind(&SockAddr::from(address))?;
        let bound = socket.local_addr()?.as_socket();
        Ok(Self { _socket: socket, address: bound.unwrap_or(address) })
    }

    pub(super) fn number(&self) -> u16 {
        self.address.port()
    }

    /// Lets a raw socket get packets to this port and shard alone.
    pub(super) fn filter(&self, socket: &Socket, is_ipv4: bool, shard: Shard) -> io::Result<()> {
        let mut program = program(self.number(), is_ipv4, shard);
        attach(socket, libc::SO_ATTACH_FILTER, &mut program)
    }
}

/// A raw socket sees the whole packet of IPv4, and what is behind the header of IPv6.
fn program(port: u16, is_ipv4: bool, shard: Shard) -> Vec<sock_filter> {
    let first = match is_ipv4 {
        true => step(LOAD_X_HEADER_LENGTH, 0),
        false => step(LOAD_X, 0),
    };
    let mut program = vec![
        first,
        step(LOAD_HALF_AT_X, DESTINATION_PORT),
        branch(IF_EQUAL, port.into(), 1, 0),
        step(RETURN, 0),
    ];
    if shard.count() > 1 {
        program.extend(shard_steps(shard));
    }
    program.push(step(RETURN, u32::MAX));
    program
}

/// Drops what is for another shard, as [`Shard::of_datagram`] tells. X is where the native
/// header begins.
fn shard_steps(shard: Shard) -> [sock_filter; 22] {
    const DATAGRAM: u32 = NativeHeader::LEN as u32;
    const TYPE: u32 = DATAGRAM + 1;
    const BOOT: u32 = DATAGRAM + Shard::DESTINATION_OFFSET as u32;
    const SERIAL: u32 = BOOT + 4;
    const TO_SOURCE: u32 = (Shard::SOURCE_OFFSET - Shard::DESTINATION_OFFSET) as u32;
    [
        step(LOAD_LENGTH, 0),
        step(SUBTRACT_X, 0),
        branch(IF_AT_LEAST, SERIAL + TO_SOURCE + 4, 0, 4),
        step(LOAD_BYTE_AT_X, TYPE),
        branch(IF_EQUAL, PacketType::Handshake as u32, 4, 0),
        branch(IF_EQUAL, PacketType::Data as u32, 8, 0),
        branch(IF_AT_LEAST, Shard::FIRST_CONTROL.into(), 7, 0),
        // It tells of no shard, or is too short: it is for the first.
        step(LOAD, 0),
        step(SKIP, 10),
        // HANDSHAKE: flight 1 has no destination yet.
        step(LOAD_WORD_AT_X, SERIAL),
        branch(IF_EQUAL, 0, 0, 3),
        step(X_TO_A, 0),
        step(ADD, TO_SOURCE),
        step(A_TO_X, 0),
        // The index that counts.
        step(LOAD_WORD_AT_X, SERIAL),
        step(STORE, 0),
        step(LOAD_WORD_AT_X, BOOT),
        step(LOAD_X_STORED, 0),
        step(ADD_X, 0),
        step(AND, u32::from(shard.count()) - 1),
        branch(IF_EQUAL, shard.number().into(), 1, 0),
        step(RETURN, 0),
    ]
}

/// Offset of the destination port in the native header.
const DESTINATION_PORT: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let any = "127.0.0.1:0".parse().unwrap();
        let first = ReservedPort::reserve(any).unwrap();
        let refused = ReservedPort::reserve(first.address).map(|port| port.address);
        let NativeError::Bind { address, reason } = refused.unwrap_err() else {
            panic!("another error");
        };
        assert_eq!(reason.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(address, first.address);
        drop(first);
        assert_eq!(ReservedPort::reserve(address).unwrap().address, address);
    }
}
