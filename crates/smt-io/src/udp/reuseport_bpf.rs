// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program by which Linux chooses among the sockets of one address: classic BPF, which needs no
//! privilege (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5).
//!
//! It sees a datagram's payload, computes what [`Shard::of_datagram`] does, and returns the number
//! of a socket in the order in which they were bound. A load past the datagram's end makes it
//! return 0. A number without a socket makes the kernel choose by itself; a datagram that then
//! arrives at a wrong shard is handed over (`shard_socket.rs`).

use crate::classic_bpf::{
    ADD_X, AND, IF_AT_LEAST, IF_EQUAL, LOAD_BYTE, LOAD_WORD, LOAD_WORD_AT_X, LOAD_X, LOAD_X_STORED,
    RETURN, RETURN_A, STORE, attach, branch, step,
};
use libc::sock_filter;
use smt_wire::{PacketType, Shard};
use socket2::Socket;
use std::io;

/// Makes the sockets that share an address with this one be chosen by shard.
pub(crate) fn attach_selector(socket: &Socket, count: u16) -> io::Result<()> {
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &mut program(count))
}

/// An index is a boot number and a serial, 4 bytes each; X is how far behind
/// [`Shard::DESTINATION_OFFSET`] the one that counts begins.
const fn program(count: u16) -> [sock_filter; 16] {
    const BOOT: u32 = Shard::DESTINATION_OFFSET as u32;
    const SERIAL: u32 = BOOT + 4;
    const TO_SOURCE: u32 = (Shard::SOURCE_OFFSET - Shard::DESTINATION_OFFSET) as u32;
    [
        step(LOAD_BYTE, TYPE_OFFSET),
        step(LOAD_X, 0),
        branch(IF_EQUAL, PacketType::Handshake as u32, 2, 0),
        branch(IF_EQUAL, PacketType::Data as u32, 4, 0),
        branch(IF_AT_LEAST, Shard::FIRST_CONTROL as u32, 3, 10),
        // HANDSHAKE: flight 1 has no destination yet.
        step(LOAD_WORD, SERIAL),
        branch(IF_EQUAL, 0, 0, 1),
        step(LOAD_X, TO_SOURCE),
        // The index that counts.
        step(LOAD_WORD_AT_X, SERIAL),
        step(STORE, 0),
        step(LOAD_WORD_AT_X, BOOT),
        step(LOAD_X_STORED, 0),
        step(ADD_X, 0),
        step(AND, count as u32 - 1),
        step(RETURN_A, 0),
        // No socket of this group.
        step(RETURN, 0),
    ]
}

/// Offset of the type byte, in the packets of every version.
const TYPE_OFFSET: u32 = 1;
