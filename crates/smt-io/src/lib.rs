// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carriers for SMT: UDP sockets with segmentation offload, raw IP, and memory.
//!
//! - [`UdpCarrier`] sends a batch of datagrams by one system call and receives one likewise.
//! - [`NativeCarrier`] (Linux) does so over an IP protocol of SMT's own, without UDP.
//! - [`XdpCarrier`] (Linux) has the same packets, by a socket of `AF_XDP`.
//! - [`MemoryNetwork`] and [`MemoryCarrier`] move datagrams between threads of one process, with
//!   the losses and limits of a real network, for tests.
//! - [`PollDescriptor`] (Linux) is one file descriptor that becomes readable when a socket or a
//!   deadline wants attention, for event loops that are not ours.
//! - A runtime polls a [`CarrierWatch`] for a carrier; it can be turned off while a thread looks at
//!   the carrier anyway. [`ThreadedCarrier`] makes a carrier that can be polled of any other.
//! - [`ZonedAddress`] is an address with the name of an interface, such as `fe80::1%eth0`.
//! - [`Process`] tells whether a process is a copy of the one that opened something.
//! - [`TunQueue`] (Linux) is a queue of a TUN device, with virtio-net headers; [`EspUdpSocket`] and
//!   [`EspRawSocket`] are the sockets under ESP.
//! - [`probe()`](probe()) tries out what this host offers.
//!
//! This is the only crate of the protocol's own that contains `unsafe`: system calls, each wrapped
//! in a small file behind a safe signature.

mod inbox;
mod limits;
mod memory;
mod probe;
mod process;
mod receive_buffer;
mod received;
mod statistics;
#[cfg(test)]
mod testing;
mod threaded;
mod udp;
mod wakeup;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "watch/portable.rs"]
mod watch;
mod zoned_address;

#[cfg(target_os = "linux")]
mod classic_bpf;
#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
mod esp;
#[cfg(target_os = "linux")]
mod native;
#[cfg(target_os = "linux")]
mod poll_descriptor;
#[cfg(target_os = "linux")]
mod timer_fd;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod tun_carrier;
#[cfg(target_os = "linux")]
mod xdp;

pub use memory::{Fault, MemoryCarrier, MemoryNetwork, MemoryOptions};
pub use probe::{Probe, probe};
pub use process::Process;
pub use statistics::Statistics;
pub use threaded::ThreadedCarrier;
pub use udp::{OpenError, UdpCarrier, UdpOptions};
pub use watch::CarrierWatch;
pub use zoned_address::{ZonedAddress, lacks_zone};

#[cfg(target_os = "linux")]
pub use epoll::{Epoll, Token};
#[cfg(target_os = "linux")]
pub use esp::{
    EspArrival, EspDatagrams, EspRawSocket, EspSocketError, EspSocketOptions, EspUdpSocket,
    RawPacket, Sharing, route_mtu,
};
#[cfg(target_os = "linux")]
pub use native::{NativeCarrier, NativeError, NativeOptions, probe_native};
#[cfg(target_os = "linux")]
pub use poll_descriptor::{PollDescriptor, Readiness};
#[cfg(target_os = "linux")]
pub use timer_fd::TimerFd;
#[cfg(target_os = "linux")]
pub use tun::{TUN_HEADER_LEN, TunError, TunOffloads, TunQueue};
#[cfg(target_os = "linux")]
pub use tun_carrier::TunCarrier;
#[cfg(target_os = "linux")]
pub use xdp::{XdpCarrier, XdpError, XdpOptions, probe_xdp};
