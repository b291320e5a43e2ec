// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a UDP carrier is to be opened.

use super::{OpenError, UdpCarrier};
use crate::limits::{RECEIVE_BUFFER_BYTES_DEFAULT, SEND_BUFFER_BYTES_DEFAULT};
use smt_carrier::limits::PRIORITY_LEVELS;
use std::net::{SocketAddr, UdpSocket};

/// Options of a [`UdpCarrier`]; the defaults suit nearly everyone.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    pub(super) receive_buffer_bytes: usize,
    pub(super) send_buffer_bytes: usize,
    pub(super) segmentation_offload: bool,
    pub(super) receive_offload: bool,
    pub(super) plain_priority: u8,
    pub(super) shard_selector: bool,
    pub(super) unreachable_reports: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpOptions {
    /// Both offloads on where the host has them, buffers of 4 MiB, priority 0 the cheap one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            receive_buffer_bytes: RECEIVE_BUFFER_BYTES_DEFAULT,
            send_buffer_bytes: SEND_BUFFER_BYTES_DEFAULT,
            segmentation_offload: true,
            receive_offload: true,
            plain_priority: 0,
            shard_selector: true,
            unreachable_reports: false,
        }
    }

    /// Bytes to ask for the receive buffer; the host may grant fewer
    /// ([`UdpCarrier::receive_buffer_bytes`] tells).
    #[must_use]
    pub const fn receive_buffer_bytes(mut self, bytes: usize) -> Self {
        self.receive_buffer_bytes = bytes;
        self
    }

    /// Bytes to ask for the send buffer; the host may grant fewer
    /// ([`UdpCarrier::send_buffer_bytes`] tells).
    #[must_use]
    pub const fn send_buffer_bytes(mut self, bytes: usize) -> Self {
        self.send_buffer_bytes = bytes;
        self
    }

    /// Whether one system call may send many datagrams (GSO). Off, each datagram costs a call.
    #[must_use]
    pub const fn segmentation_offload(mut self, on: bool) -> Self {
        self.segmentation_offload = on;
        self
    }

    /// Whether one system call may receive many datagrams (GRO). Off, each datagram costs a call.
    #[must_use]
    pub const fn receive_offload(mut self, on: bool) -> Self {
        self.receive_offload = on;
        self
    }

    /// The priority, `0..=7`, that is the socket's own: sending at it attaches nothing to a call,
    /// so name the most frequent one.
    ///
    /// # Panics
    /// If `priority` is above 7.
    #[must_use]
    pub const fn plain_priority(mut self, priority: u8) -> Self {
        assert!(priority < PRIORITY_LEVELS, "a priority is 0..=7");
        self.plain_priority = priority;
        self
    }

    /// Whether the kernel is to sort the datagrams of several shards. Off, or where it cannot, they
    /// share a socket and pass each other what they receive, which costs more.
    #[must_use]
    pub const fn shard_selector(mut self, on: bool) -> Self {
        self.shard_selector = on;
        self
    }

    /// Whether a socket that is bound learns from ICMP reports that a peer is unreachable.
    /// Endpoints that connect to servers learn so at once that no server is there. Off by default:
    /// reports can be forged, and servers have no use for them. Linux alone has it.
    #[must_use]
    pub const fn unreachable_reports(mut self, on: bool) -> Self {
        self.unreachable_reports = on;
        self
    }

    /// Opens a carrier that listens on `address` and talks to anyone. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind(&self, address: SocketAddr) -> Result<UdpCarrier, OpenError> {
        UdpCarrier::bind_with(address, self)
    }

    /// Opens a carrier over a socket that is bound already, as a service manager hands it over
    /// (`LISTEN_FDS`), or a privileged parent.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn adopt(&self, socket: UdpSocket) -> Result<UdpCarrier, OpenError> {
        UdpCarrier::adopt_with(socket, self)
    }

    /// Opens the carriers of `count` shards that share `address`, in the order of their numbers:
    /// each gets the datagrams whose headers name it ([`smt_wire::Shard`]), by a program in the
    /// kernel where that is to be had ([`UdpCarrier::has_shard_selector`] tells). The address is
    /// free again when all of them are gone.
    ///
    /// # Errors
    /// See [`OpenError`].
    ///
    /// # Panics
    /// If `count` is no power of two, or above 256.
    pub fn bind_shards(
        &self,
        address: SocketAddr,
        count: u16,
    ) -> Result<Vec<UdpCarrier>, OpenError> {
        UdpCarrier::bind_shards_with(address, count, self)
    }

    /// Opens a carrier that talks to `remote` alone, from an address and port the system chooses.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect(&self, remote: SocketAddr) -> Result<UdpCarrier, OpenError> {
        UdpCarrier::connect_with(remote, self)
    }
}
