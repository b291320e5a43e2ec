// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP system calls of Linux: `sendmsg` and `recvmsg` with control messages.
//!
//! 1. A send carries, as control messages, only what differs from the socket's own settings:
//!    segment size (GSO), source address, traffic class.
//! 2. A receive reads, from control messages, the segment size (GRO) and the address that was
//!    called.
//!
//! Not here: the reaction to a refusal of the system (`sending.rs`).
#![allow(
    trivial_numeric_casts,
    reason = "lengths of control messages are `size_t` in one C library and `socklen_t` in another"
)]

use super::control::ControlBuffer;
use super::datagram::{Blocking, BufferBytes, Family, Incoming, Offloads, Outgoing, Preparation};
pub(crate) use super::reuseport_bpf::attach_selector;
use super::socket_option::SocketOption;
use libc::c_int;
use socket2::{SockAddr, SockAddrStorage, Socket};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sets the options of a new socket and tells which offloads it has.
pub(crate) fn prepare(socket: &Socket, preparation: Preparation) -> io::Result<Offloads> {
    let descriptor = socket.as_fd();
    if preparation.family != Family::V6 {
        IP_MTU_DISCOVER.set(descriptor, libc::IP_PMTUDISC_PROBE)?;
    }
    if preparation.family != Family::V4 {
        IPV6_MTU_DISCOVER.set(descriptor, libc::IPV6_PMTUDISC_PROBE)?;
    }
    if preparation.report_local {
        match preparation.family {
            Family::V4 => IP_PKTINFO.set(descriptor, 1)?,
            // Reports IPv4 arrivals too, in mapped addresses.
            Family::Dual | Family::V6 => IPV6_RECVPKTINFO.set(descriptor, 1)?,
        }
    }
    // The marks of congestion are in the traffic class. A system that does not tell it is no worse.
    let _ = report_traffic_class(socket, preparation.family);
    Ok(Offloads {
        // A kernel that does not know the option would ignore the control message and send all
        // segments as one datagram: so ask first.
        segmentation: preparation.segmentation_offload && UDP_SEGMENT.read(descriptor).is_ok(),
        receive: preparation.receive_offload && UDP_GRO.set(descriptor, 1).is_ok(),
    })
}

/// Asks the system to keep reports about datagrams to any peer.
pub(crate) fn ask_for_reports(socket: &Socket, family: Family) -> io::Result<()> {
    let descriptor = socket.as_fd();
    if family != Family::V6 {
        IP_RECVERR.set(descriptor, 1)?;
    }
    if family != Family::V4 {
        IPV6_RECVERR.set(descriptor, 1)?;
    }
    Ok(())
}

/// Takes the next report out of the socket's queue: the destination of the datagram that it is
/// about, if it names one.
pub(crate) fn next_report(socket: &Socket) -> io::Result<Option<SocketAddr>> {
    // The datagram itself is of no use.
    let mut byte = [MaybeUninit::uninit()];
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let (_, remote) = socket.recv_from_with_flags(&mut byte, flags)?;
    Ok(remote.as_socket())
}

/// Asks for buffers of `wanted` bytes, past the host's limit where we may, and tells the real ones.
pub(crate) fn size_buffers(socket: &Socket, wanted: BufferBytes) -> io::Result<BufferBytes> {
    let descriptor = socket.as_fd();
    let receive = c_int::try_from(wanted.receive).unwrap_or(c_int::MAX);
    let send = c_int::try_from(wanted.send).unwrap_or(c_int::MAX);
    if SO_RCVBUFFORCE.set(descriptor, receive).is_err() {
        SO_RCVBUF.set(descriptor, receive)?;
    }
    if SO_SNDBUFFORCE.set(descriptor, send).is_err() {
        SO_SNDBUF.set(descriptor, send)?;
    }
    // The kernel doubles what it grants, to account for its own overhead (socket(7)).
    Ok(BufferBytes {
        receive: unsigned(SO_RCVBUF.read(descriptor)?) / 2,
        send: unsigned(SO_SNDBUF.read(descriptor)?) / 2,
    })
}

/// Whether this process may size buffers past the host's limit.
pub(crate) fn may_force_buffers(socket: &Socket) -> bool {
    let descriptor = socket.as_fd();
    let present = SO_RCVBUF.read(descriptor).unwrap_or(0) / 2;
    SO_RCVBUFFORCE.set(descriptor, present).is_ok()
}

/// Sends `outgoing` by one system call that never blocks.
pub(crate) fn send(socket: &Socket, outgoing: &Outgoing<'_>) -> io::Result<()> {
    let mut control = ControlBuffer::new();
    if let Some(size) = outgoing.segment_size {
        control.push(UDP_SEGMENT, &size.to_ne_bytes());
    }
    if let Some(class) = outgoing.traffic_class {
        let option = if outgoing.ipv4 { IP_TOS } else { IPV6_TCLASS };
        control.push(option, &c_int::from(class).to_ne_bytes());
    }
    match outgoing.source {
        Some(IpAddr::V4(source)) if outgoing.ipv4 => {
            control.push(IP_PKTINFO, &packet_info_v4(source));
        }
        Some(IpAddr::V6(source)) if !outgoing.ipv4 => {
            control.push(IPV6_PKTINFO, &packet_info_v6(source));
        }
        _ => {}
    }

    let name = outgoing.to.map(SockAddr::from);
    let mut bytes = libc::iovec {
        iov_base: outgoing.bytes.as_ptr().cast_mut().cast(),
        iov_len: outgoing.bytes.len(),
    };
    let mut message = empty_message();
    message.msg_iov = &raw mut bytes;
    message.msg_iovlen = 1;
    if let Some(name) = &name {
        message.msg_name = name.as_ptr().cast_mut().cast();
        message.msg_namelen = name.len();
    }
    if !control.written().is_empty() {
        message.msg_control = control.written().as_ptr().cast_mut().cast();
        message.msg_controllen = control.written().len() as _;
    }
    // SAFETY: every pointer in `message` names a live local or the caller's slice, with its length;
    // sending only reads through them.
    let outcome = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, DONT_WAIT) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Receives into `buffer` by one system call.
pub(crate) fn receive(
    socket: &Socket,
    buffer: &mut [u8],
    blocking: Blocking,
) -> io::Result<Incoming> {
    let mut name = SockAddrStorage::zeroed();
    let mut control = ControlBuffer::new();
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = empty_message();
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = name.size_of();
    message.msg_iov = &raw mut bytes;
    message.msg_iovlen = 1;
    // One borrow for both: a second would end the pointer's.
    let space = control.space();
    message.msg_control = space.as_mut_ptr().cast();
    message.msg_controllen = space.len() as _;
    let flags = match blocking {
        Blocking::No => DONT_WAIT,
        Blocking::Yes => 0,
    };
    // SAFETY: every pointer in `message` names a live local or the caller's slice, exclusively
    // borrowed, with its length; the system writes within those.
    let outcome = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let Ok(length) = usize::try_from(outcome) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the system wrote `msg_namelen` bytes of a socket address there.
    let name = unsafe { SockAddr::new(name, message.msg_namelen) };
    let mut arrival = Incoming {
        from: name.as_socket().unwrap_or(NOBODY),
        local: None,
        traffic_class: None,
        length,
        segment_size: length,
        // Without its control messages a batch cannot be cut apart.
        truncated: message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
    };
    for (option, value) in control.read(message.msg_controllen as _) {
        note_control(&mut arrival, option, value);
    }
    Ok(arrival)
}

/// Waits until one of the descriptors is readable, and tells whether one is: at most `limit`; exact
/// to the kernel's timer slack. A signal ends the wait.
pub(crate) fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Duration,
) -> io::Result<bool> {
    let mut entries = descriptors.map(|descriptor| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let limit = libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos() as _,
    };
    // SAFETY: the entries are live and exclusively borrowed; `limit` is live; no signal mask is
    // given.
    let outcome = unsafe {
        libc::ppoll(entries.as_mut_ptr(), N as libc::nfds_t, &raw const limit, std::ptr::null())
    };
    if outcome < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        };
    }
    Ok(outcome > 0)
}

/// Asks that arrivals tell their traffic class.
pub(crate) fn report_traffic_class(socket: &Socket, family: Family) -> io::Result<()> {
    if family != Family::V6 {
        IP_RECVTOS.set(socket.as_fd(), 1)?;
    }
    if family != Family::V4 {
        IPV6_RECVTCLASS.set(socket.as_fd(), 1)?;
    }
    Ok(())
}

/// Bytes of the largest packet, its headers included, on the way of a connected socket.
pub(crate) fn path_mtu(socket: &Socket, ipv4: bool) -> io::Result<usize> {
    let option = if ipv4 { IP_MTU } else { IPV6_MTU };
    option.read(socket.as_fd()).map(unsigned)
}

/// Datagrams that the kernel dropped because the receive buffer was full.
pub(crate) fn dropped(socket: &Socket) -> u64 {
    let counts = SO_MEMINFO.read_array::<MEMINFO_FIELDS>(socket.as_fd());
    counts.map_or(0, |counts| u64::from(counts[libc::SK_MEMINFO_DROPS as usize].cast_unsigned()))
}

fn note_control(arrival: &mut Incoming, option: (c_int, c_int), value: &[u8]) {
    match (option, value) {
        ((libc::SOL_UDP, libc::UDP_GRO), &[a, b, c, d, ..]) => {
            let size = unsigned(c_int::from_ne_bytes([a, b, c, d]));
            if size > 0 {
                arrival.segment_size = size;
            }
        }
        // struct in_pktinfo: interface index, local address, header destination. The local address
        // is the one to answer from; they differ for multicast only.
        ((libc::IPPROTO_IP, libc::IP_PKTINFO), &[_, _, _, _, a, b, c, d, ..]) => {
            arrival.local = Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
        }
        // struct in6_pktinfo: address, interface index.
        ((libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), value) => {
            if let Some(octets) = value.first_chunk::<16>() {
                arrival.local = Some(Ipv6Addr::from(*octets).to_canonical());
            }
        }
        // One byte for IPv4, a native integer for IPv6.
        ((libc::IPPROTO_IP, libc::IP_TOS), &[class, ..]) => arrival.traffic_class = Some(class),
        ((libc::IPPROTO_IPV6, libc::IPV6_TCLASS), &[a, b, c, d, ..]) => {
            arrival.traffic_class = u8::try_from(c_int::from_ne_bytes([a, b, c, d])).ok();
        }
        _ => {}
    }
}

/// `struct in_pktinfo` with only the local address set.
fn packet_info_v4(source: Ipv4Addr) -> [u8; 12] {
    let mut info = [0; 12];
    info[4..8].copy_from_slice(&source.octets());
    info
}

/// `struct in6_pktinfo` with only the address set.
fn packet_info_v6(source: Ipv6Addr) -> [u8; 20] {
    let mut info = [0; 20];
    info[..16].copy_from_slice(&source.octets());
    info
}

fn empty_message() -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid `msghdr`: null pointers and zero lengths.
    unsafe { std::mem::zeroed() }
}

fn unsigned(value: c_int) -> usize {
    usize::try_from(value).unwrap_or(0)
}

const DONT_WAIT: c_int = libc::MSG_DONTWAIT;
/// Stands for a sender whose address is of no IP family, which a UDP socket never reports.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// Fields of `SO_MEMINFO` up to and with the count of drops.
const MEMINFO_FIELDS: usize = libc::SK_MEMINFO_DROPS as usize + 1;

const IP_MTU: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_MTU);
const IP_RECVERR: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVERR);
const IPV6_RECVERR: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
const IP_MTU_DISCOVER: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
const IP_PKTINFO: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_PKTINFO);
const IP_RECVTOS: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_RECVTOS);
const IP_TOS: SocketOption = SocketOption::new(libc::IPPROTO_IP, libc::IP_TOS);
const IPV6_MTU: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_MTU);
const IPV6_MTU_DISCOVER: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
const IPV6_PKTINFO: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);
const IPV6_RECVPKTINFO: SocketOption =
    SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);
const IPV6_RECVTCLASS: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS);
const IPV6_TCLASS: SocketOption = SocketOption::new(libc::IPPROTO_IPV6, libc::IPV6_TCLASS);
const SO_MEMINFO: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_MEMINFO);
const SO_RCVBUF: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUF);
const SO_RCVBUFFORCE: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
const SO_SNDBUF: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_SNDBUF);
const SO_SNDBUFFORCE: SocketOption = SocketOption::new(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE);
const UDP_GRO: SocketOption = SocketOption::new(libc::SOL_UDP, libc::UDP_GRO);
const UDP_SEGMENT: SocketOption = SocketOption::new(libc::SOL_UDP, libc::UDP_SEGMENT);
