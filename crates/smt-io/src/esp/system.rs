// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls of sockets under ESP that no other socket here makes.

use super::raw::RawPacket;
use libc::{c_int, c_uint};
use socket2::{SockAddr, Socket};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The most packets of one call. More gain nothing: a super-packet has fewer than 64 segments of
/// Ethernet's size.
const PACKETS_PER_CALL: usize = 64;

/// Sends packets of `bytes` by one call that never blocks, and tells how many have left.
pub(super) fn send_packets(
    socket: &Socket,
    bytes: &[u8],
    packets: &[RawPacket],
) -> io::Result<usize> {
    let count = packets.len().min(PACKETS_PER_CALL);
    let names: [Option<SockAddr>; PACKETS_PER_CALL] =
        std::array::from_fn(|at| packets.get(at).map(|packet| SockAddr::from(packet.to)));
    let mut parts: [libc::iovec; PACKETS_PER_CALL] = std::array::from_fn(|at| {
        let packet = packets.get(at).and_then(|packet| bytes.get(packet.range.clone()));
        let packet = packet.unwrap_or_default();
        libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() }
    });
    // SAFETY: all-zero bytes are valid `mmsghdr`s: null pointers and zero lengths.
    let mut messages: [libc::mmsghdr; PACKETS_PER_CALL] = unsafe { std::mem::zeroed() };
    for (at, message) in messages.iter_mut().enumerate().take(count) {
        let header = &mut message.msg_hdr;
        if let Some(name) = &names[at] {
            header.msg_name = name.as_ptr().cast_mut().cast();
            header.msg_namelen = name.len();
        }
        header.msg_iov = &raw mut parts[at];
        header.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages point to live locals and the caller's slice, with their
    // lengths; sending only reads through them.
    let outcome = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count as c_uint,
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}

/// Waits until a socket takes something again, at most so long. A signal ends the wait.
pub(super) fn wait_writable(descriptor: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let limit = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: one entry, live and exclusively borrowed.
    if unsafe { libc::poll(&raw mut entry, 1, limit) } < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        };
    }
    Ok(())
}
