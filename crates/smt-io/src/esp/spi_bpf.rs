// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of classic BPF by which sockets of one address share what comes: by the SPI, since the
//! ports are encrypted. The programs need no privilege.

use super::Sharing;
use crate::classic_bpf::{
    IF_EQUAL, LOAD_WORD, LOAD_WORD_AT_X, LOAD_X, LOAD_X_HEADER_LENGTH, MODULO, RETURN, RETURN_A,
    attach, branch, step,
};
use socket2::Socket;
use std::io;

/// Makes the sockets of one UDP port be chosen by the SPI, which a datagram begins with. A datagram
/// without an SPI is for the first.
pub(super) fn select_by_spi(socket: &Socket, count: u16) -> io::Result<()> {
    let mut program =
        [step(LOAD_WORD, 0), step(MODULO, u32::from(count.max(1))), step(RETURN_A, 0)];
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &mut program)
}

/// Lets a raw socket have the packets of its own SPIs alone: each raw socket gets a copy of all.
pub(super) fn filter_by_spi(socket: &Socket, sharing: Sharing, is_ipv4: bool) -> io::Result<()> {
    // A raw socket sees the header of IPv4, and of IPv6 what is behind it.
    let load_x = match is_ipv4 {
        true => step(LOAD_X_HEADER_LENGTH, 0),
        false => step(LOAD_X, 0),
    };
    let mut program = [
        load_x,
        step(LOAD_WORD_AT_X, 0),
        step(MODULO, u32::from(sharing.count.max(1))),
        branch(IF_EQUAL, u32::from(sharing.index), 0, 1),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ];
    attach(socket, libc::SO_ATTACH_FILTER, &mut program)
}
