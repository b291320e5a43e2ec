// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program that an interface runs over each packet: those of SMT to one address and port go to
//! the socket of their queue, and all others to the system as ever.
//!
//! Packets with options of IPv4 or extensions of IPv6, fragments, and packets longer than a frame
//! of the socket go to the system, too: there a raw socket takes what is whole.

use super::frame::{ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use smt_wire::native::NativeHeader;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

/// An instruction of eBPF.
#[repr(C)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Instruction {
    code: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The packets that the program gives to sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    pub(super) local: SocketAddr,
    pub(super) protocol: u8,
    /// Bytes of the longest frame.
    pub(super) frame_bytes_max: usize,
    /// The map of the sockets.
    pub(super) map: RawFd,
}

/// The program for a selection.
pub(super) fn program(selection: &Selection) -> Vec<Instruction> {
    let mut program = Program::default();
    let native = match selection.local {
        SocketAddr::V4(_) => ETHERNET_BYTES + 20,
        SocketAddr::V6(_) => ETHERNET_BYTES + 40,
    };
    program.load_packet();
    program.pass_if_shorter(native + NativeHeader::LEN);
    program.pass_if_longer(selection.frame_bytes_max);
    match selection.local.ip() {
        IpAddr::V4(local) => {
            program.pass_unless_half(12, ETHERTYPE_IPV4.to_be_bytes());
            program.pass_unless_byte(ETHERNET_BYTES, 0x45);
            program.pass_if_fragment(ETHERNET_BYTES + 6);
            program.pass_unless_byte(ETHERNET_BYTES + 9, selection.protocol);
            program.pass_unless_words(ETHERNET_BYTES + 16, &local.octets());
        }
        IpAddr::V6(local) => {
            program.pass_unless_half(12, ETHERTYPE_IPV6.to_be_bytes());
            program.pass_unless_byte(ETHERNET_BYTES + 6, selection.protocol);
            program.pass_unless_words(ETHERNET_BYTES + 24, &local.octets());
        }
    }
    program.pass_unless_half(native + 2, selection.local.port().to_be_bytes());
    program.redirect(selection.map)
}

/// A program that is being written. Register 6 has the context, 2 the packet's beginning, 3 its
/// end.
#[derive(Default)]
struct Program {
    instructions: Vec<Instruction>,
    /// Jumps to the end, where the packet is passed on.
    jumps: Vec<usize>,
}

impl Program {
    fn push(&mut self, code: u8, [to, from]: [u8; 2], offset: i16, immediate: i32) {
        self.instructions.push(Instruction { code, registers: from << 4 | to, offset, immediate });
    }

    /// Passes the packet on if a condition holds, which ends with this instruction.
    fn pass_if(&mut self, code: u8, registers: [u8; 2], immediate: i32) {
        self.jumps.push(self.instructions.len());
        self.push(code, registers, 0, immediate);
    }

    fn load_packet(&mut self) {
        self.push(MOVE, [6, 1], 0, 0);
        self.push(LOAD_WORD, [2, 1], CONTEXT_DATA, 0);
        self.push(LOAD_WORD, [3, 1], CONTEXT_DATA_END, 0);
    }

    fn pass_if_shorter(&mut self, bytes: usize) {
        self.push(MOVE, [4, 2], 0, 0);
        self.push(ADD, [4, 0], 0, bytes as i32);
        self.pass_if(IF_GREATER, [4, 3], 0);
    }

    fn pass_if_longer(&mut self, bytes: usize) {
        self.push(MOVE, [4, 2], 0, 0);
        self.push(ADD, [4, 0], 0, bytes as i32 + 1);
        self.pass_if(IF_LESS_OR_EQUAL, [4, 3], 0);
    }

    fn pass_unless_byte(&mut self, at: usize, value: u8) {
        self.push(LOAD_BYTE, [5, 2], at as i16, 0);
        self.pass_if(UNLESS_EQUAL, [5, 0], value.into());
    }

    /// Loads are in the order of the host.
    fn pass_unless_half(&mut self, at: usize, value: [u8; 2]) {
        self.push(LOAD_HALF, [5, 2], at as i16, 0);
        self.pass_if(UNLESS_EQUAL, [5, 0], u16::from_ne_bytes(value).into());
    }

    fn pass_unless_words(&mut self, at: usize, value: &[u8]) {
        for (number, word) in value.chunks_exact(4).enumerate() {
            let word = [word[0], word[1], word[2], word[3]];
            self.push(LOAD_WORD, [5, 2], (at + 4 * number) as i16, 0);
            self.pass_if(UNLESS_EQUAL, [5, 0], i32::from_ne_bytes(word));
        }
    }

    /// More fragments, or an offset.
    fn pass_if_fragment(&mut self, at: usize) {
        self.push(LOAD_HALF, [5, 2], at as i16, 0);
        let mask = u16::from_ne_bytes(0x3FFF_u16.to_be_bytes());
        self.pass_if(IF_ANY_OF, [5, 0], mask.into());
    }

    /// Gives what is left to the socket of the queue. Without one it is passed on.
    fn redirect(mut self, map: RawFd) -> Vec<Instruction> {
        self.push(LOAD_LONG, [1, MAP_BY_DESCRIPTOR], 0, map);
        self.push(0, [0, 0], 0, 0);
        self.push(LOAD_WORD, [2, 6], CONTEXT_QUEUE, 0);
        self.push(MOVE_NUMBER, [3, 0], 0, PASS);
        self.push(CALL, [0, 0], 0, REDIRECT_MAP);
        self.push(EXIT, [0, 0], 0, 0);
        let end = self.instructions.len();
        self.push(MOVE_NUMBER, [0, 0], 0, PASS);
        self.push(EXIT, [0, 0], 0, 0);
        for jump in self.jumps {
            self.instructions[jump].offset = (end - jump - 1) as i16;
        }
        self.instructions
    }
}

/// Offsets in `xdp_md`.
const CONTEXT_DATA: i16 = 0;
const CONTEXT_DATA_END: i16 = 4;
const CONTEXT_QUEUE: i16 = 16;

/// `XDP_PASS`.
const PASS: i32 = 2;
/// `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// `BPF_PSEUDO_MAP_FD`.
const MAP_BY_DESCRIPTOR: u8 = 1;

// Opcodes (RFC 9669).
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const LOAD_LONG: u8 = 0x18;
const MOVE: u8 = 0xBF;
const MOVE_NUMBER: u8 = 0xB7;
const ADD: u8 = 0x07;
const IF_GREATER: u8 = 0x2D;
const IF_LESS_OR_EQUAL: u8 = 0xBD;
/// A comparison of 32 bits, so that a word is compared as it was loaded.
const UNLESS_EQUAL: u8 = 0x56;
const IF_ANY_OF: u8 = 0x46;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_passes_the_packet_on() {
        for local in ["10.0.0.1:7", "[fd00::1]:7"] {
            let program = program(&Selection {
                local: local.parse().unwrap(),
                protocol: 253,
                frame_bytes_max: 3_840,
                map: 5,
            });
            let end = program.len() - 2;
            assert_eq!((program[end].code, program[end].immediate), (MOVE_NUMBER, PASS));
            let jumps = [IF_GREATER, IF_LESS_OR_EQUAL, UNLESS_EQUAL, IF_ANY_OF];
            for (at, instruction) in program.iter().enumerate() {
                if jumps.contains(&instruction.code) {
                    assert_eq!(at + 1 + instruction.offset as usize, end);
                }
            }
        }
    }
}
