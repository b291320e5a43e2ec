// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP system calls of a Unix other than Linux: one datagram a call, by `socket2`.
//!
//! The same signature as `linux.rs`, with less behind it: no segmentation or receive offload, no
//! traffic class other than the socket's, and a wildcard socket answers from whatever address the
//! routing table picks. It is compiled into the tests on Linux, so that it stays alive.

use super::datagram::{Blocking, BufferBytes, Family, Incoming, Offloads, Outgoing, Preparation};
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use super::socket_option::SocketOption;
use socket2::{SockAddr, Socket};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Forbids fragments; there are no offloads to turn on.
pub(crate) fn prepare(socket: &Socket, preparation: Preparation) -> io::Result<Offloads> {
    forbid_fragments(socket, preparation.family)?;
    Ok(Offloads { segmentation: false, receive: false })
}

/// There is no portable way to learn of reports about any peer.
pub(crate) fn ask_for_reports(_socket: &Socket, _family: Family) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A socket without reports has none.
pub(crate) fn next_report(_socket: &Socket) -> io::Result<Option<SocketAddr>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no portable way to choose among sockets of one address.
pub(crate) fn attach_selector(_socket: &Socket, _count: u16) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Asks for buffers of `wanted` bytes and tells the real ones.
pub(crate) fn size_buffers(socket: &Socket, wanted: BufferBytes) -> io::Result<BufferBytes> {
    // Where the host's limit is lower, some systems refuse instead of granting the limit; the
    // current size then stays, and is reported.
    let _ = socket.set_recv_buffer_size(wanted.receive);
    let _ = socket.set_send_buffer_size(wanted.send);
    Ok(BufferBytes { receive: socket.recv_buffer_size()?, send: socket.send_buffer_size()? })
}

/// Whether this process may size buffers past the host's limit: there is no such call.
pub(crate) fn may_force_buffers(_socket: &Socket) -> bool {
    false
}

/// Sends `outgoing`, one datagram, by one system call that never blocks.
pub(crate) fn send(socket: &Socket, outgoing: &Outgoing<'_>) -> io::Result<()> {
    match outgoing.to {
        Some(to) => {
            socket.send_to_with_flags(outgoing.bytes, &SockAddr::from(to), libc::MSG_DONTWAIT)
        }
        None => socket.send_with_flags(outgoing.bytes, libc::MSG_DONTWAIT),
    }
    .map(|_sent| ())
}

/// Receives into `buffer` by one system call. A datagram that fills `buffer` to the last byte may
/// have been cut, so it counts as truncated; the advised buffer is larger than any datagram.
pub(crate) fn receive(
    socket: &Socket,
    buffer: &mut [u8],
    blocking: Blocking,
) -> io::Result<Incoming> {
    let flags = match blocking {
        Blocking::No => libc::MSG_DONTWAIT,
        Blocking::Yes => 0,
    };
    // SAFETY: initialised bytes may be seen as possibly uninitialised ones, and `recv_from` only
    // ever writes initialised bytes there.
    let space = unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    let (length, from) = socket.recv_from_with_flags(space, flags)?;
    Ok(Incoming {
        from: from.as_socket().unwrap_or(NOBODY),
        local: None,
        traffic_class: None,
        length,
        segment_size: length,
        truncated: length == space.len(),
    })
}

/// Waits until one of the descriptors is readable, and tells whether one is: at most `limit`
/// rounded up to milliseconds. A signal ends the wait.
pub(crate) fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Duration,
) -> io::Result<bool> {
    let mut entries = descriptors.map(|descriptor| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let limit_ms = limit.as_micros().div_ceil(1_000);
    let limit_ms = libc::c_int::try_from(limit_ms).unwrap_or(libc::c_int::MAX);
    // SAFETY: the entries are live and exclusively borrowed.
    let outcome = unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, limit_ms) };
    if outcome < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        };
    }
    Ok(outcome > 0)
}

/// Arrivals never tell their traffic class here.
pub(crate) fn report_traffic_class(_socket: &Socket, _family: Family) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no portable way to ask for a path's size.
pub(crate) fn path_mtu(_socket: &Socket, _ipv4: bool) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no portable count of the kernel's drops.
pub(crate) fn dropped(_socket: &Socket) -> u64 {
    0
}

#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
fn forbid_fragments(socket: &Socket, family: Family) -> io::Result<()> {
    use std::os::fd::AsFd;
    if family == Family::V4 {
        return SocketOption::new(libc::IPPROTO_IP, libc::IP_DONTFRAG).set(socket.as_fd(), 1);
    }
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG).set(socket.as_fd(), 1)
}

/// The other systems offer no such option on a UDP socket, or forbid fragments by themselves.
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
fn forbid_fragments(_socket: &Socket, _family: Family) -> io::Result<()> {
    Ok(())
}

/// Stands for a sender whose address is of no IP family, which a UDP socket never reports.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
