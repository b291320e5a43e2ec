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
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}
