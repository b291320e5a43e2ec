// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs of classic BPF, which a socket runs over what it gets; none needs a privilege.

use libc::{c_int, c_void, sock_filter, sock_fprog, socklen_t};
use socket2::Socket;
use std::io;
use std::os::fd::AsRawFd;

/// Gives a socket a program, by the option `name` of the level `SOL_SOCKET`.
pub(crate) fn attach(socket: &Socket, name: c_int, program: &mut [sock_filter]) -> io::Result<()> {
    let description = sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the pointer and length name `description`, which names `program` and its length; both
    // live across the call, and the kernel copies them.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const description).cast::<c_void>(),
            size_of::<sock_fprog>() as socklen_t,
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// One instruction that does not branch.
pub(crate) const fn step(code: u32, k: u32) -> sock_filter {
    branch(code, k, 0, 0)
}

/// Skips `jt` steps if the condition holds, and `jf` if not.
pub(crate) const fn branch(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

// Codes of instructions (Documentation/networking/filter.rst of Linux). A is the accumulator, X the
// index; `BPF_TXA`, `BPF_TAX` and `BPF_A` are not in `libc`.
pub(crate) const LOAD: u32 = libc::BPF_LD | libc::BPF_IMM;
pub(crate) const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
pub(crate) const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
pub(crate) const LOAD_BYTE_AT_X: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_IND;
pub(crate) const LOAD_HALF_AT_X: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
pub(crate) const LOAD_WORD_AT_X: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
pub(crate) const LOAD_LENGTH: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_LEN;
pub(crate) const LOAD_X: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
pub(crate) const LOAD_X_STORED: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_MEM;
pub(crate) const LOAD_X_HEADER_LENGTH: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
pub(crate) const STORE: u32 = libc::BPF_ST;
pub(crate) const ADD: u32 = libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K;
pub(crate) const ADD_X: u32 = libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X;
pub(crate) const SUBTRACT_X: u32 = libc::BPF_ALU | libc::BPF_SUB | libc::BPF_X;
pub(crate) const MODULO: u32 = libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K;
pub(crate) const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
pub(crate) const X_TO_A: u32 = libc::BPF_MISC | 0x80;
pub(crate) const A_TO_X: u32 = libc::BPF_MISC;
pub(crate) const SKIP: u32 = libc::BPF_JMP | libc::BPF_JA;
pub(crate) const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
pub(crate) const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
pub(crate) const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
pub(crate) const RETURN_A: u32 = libc::BPF_RET | 0x10;
