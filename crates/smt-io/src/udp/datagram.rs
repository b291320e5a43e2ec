// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arguments and results of the platform code: the one signature that every platform's `imp` has.
//!
//! An `imp` offers, each on a borrowed socket:
//! 1. `prepare`: sets the options of a new socket, and tells which offloads it has
//! 2. `size_buffers`: asks for buffer sizes, and tells the real ones
//! 3. `send`, `receive`: one system call each
//! 4. `wait_readable`: waits exactly; `attach_selector`: has datagrams sorted by shard
//! 5. `report_traffic_class`, `path_mtu`, `dropped`: questions of the probe and the statistics

use std::net::{IpAddr, SocketAddr};

/// The options that a new socket is to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preparation {
    pub(crate) family: Family,
    /// Report the local address of each arrival: needed where the socket has several.
    pub(crate) report_local: bool,
    pub(crate) segmentation_offload: bool,
    pub(crate) receive_offload: bool,
}

/// Which addresses a socket speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    /// An IPv6 socket that also carries IPv4 in mapped addresses.
    Dual,
    V4,
    V6,
}

impl Family {
    /// The one that speaks with addresses of this version alone.
    pub(crate) const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// Which offloads a socket turned out to have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Offloads {
    pub(crate) segmentation: bool,
    pub(crate) receive: bool,
}

/// Bytes of buffer that a socket really has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BufferBytes {
    pub(crate) receive: usize,
    pub(crate) send: usize,
}

/// One system call's worth of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    /// The destination in the socket's own family; `None` on a connected socket.
    pub(crate) to: Option<SocketAddr>,
    /// Whether IPv4 packets leave, in whatever family the socket is.
    pub(crate) ipv4: bool,
    /// The address to send from, if the routing table is not to choose.
    pub(crate) source: Option<IpAddr>,
    /// The whole TOS or traffic class byte, if it differs from the socket's.
    pub(crate) traffic_class: Option<u8>,
    /// Bytes of each segment, if the system is to cut `bytes`.
    pub(crate) segment_size: Option<u16>,
    pub(crate) bytes: &'a [u8],
}

/// The result of one receive call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Incoming {
    pub(crate) from: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    /// Reported only after `report_traffic_class`.
    pub(crate) traffic_class: Option<u8>,
    pub(crate) length: usize,
    pub(crate) segment_size: usize,
    /// The buffer was too small: its contents are not whole.
    pub(crate) truncated: bool,
}

/// Whether a receive call may wait for the socket's own time limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Blocking {
    No,
    Yes,
}
