// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A port of the native carrier: numbers of SMT's own, since a raw socket has none.
//!
//! 1. The port is reserved for as long as the carrier lives, by a TCP socket that is bound to it
//!    and never listens. The system so gives each port once, and chooses a free one for port 0.
//! 2. A program of classic BPF lets the raw socket get packets to this port alone; without it each
//!    raw socket would get the packets of all.

use crate::classic_bpf::{attach, branch, step};
use libc::sock_filter;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// A port that no other native carrier of this host has at the same address.
#[derive(Debug)]
pub(super) struct ReservedPort {
    /// Bound, and nothing else.
    _socket: Socket,
    pub(super) number: u16,
}

impl ReservedPort {
    /// Reserves the port of `address`, or a free one for port 0.
    pub(super) fn reserve(address: SocketAddr) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SockAddr::from(address))?;
        let bound = socket.local_addr()?.as_socket();
        let number = bound.unwrap_or(address).port();
        Ok(Self {
            _socket: socket,
            number,
        })
    }

    /// Lets a raw socket get packets to this port alone.
    pub(super) fn filter(&self, socket: &Socket, is_ipv4: bool) -> io::Result<()> {
        let mut program = match is_ipv4 {
            true => ipv4_program(self.number),
            false => ipv6_program(self.number),
        };
        attach(socket, libc::SO_ATTACH_FILTER, &mut program)
    }
}

/// A raw socket sees the whole packet of IPv4.
const fn ipv4_program(port: u16) -> [sock_filter; 5] {
    [
        step(LOAD_X_HEADER_LENGTH, 0),
        step(LOAD_HALF_AT_X, DESTINATION_PORT),
        branch(IF_EQUAL, port as u32, 0, 1),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ]
}

/// A raw socket sees what is behind the header of IPv6. The first step makes the programs one
/// length.
const fn ipv6_program(port: u16) -> [sock_filter; 5] {
    [
        step(LOAD_X, 0),
        step(LOAD_HALF_AT_X, DESTINATION_PORT),
        branch(IF_EQUAL, port as u32, 0, 1),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ]
}

/// Offset of the destination port in the native header.
const DESTINATION_PORT: u32 = 2;

const LOAD_X_HEADER_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
const LOAD_X: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
const LOAD_HALF_AT_X: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let any = "127.0.0.1:0".parse().unwrap();
        let first = ReservedPort::reserve(any).unwrap();
        let same = SocketAddr::new(any.ip(), first.number);
        let refused = ReservedPort::reserve(same).map(|port| port.number);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert_eq!(ReservedPort::reserve(same).unwrap().number, same.port());
    }
}
