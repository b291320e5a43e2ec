// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The settings of both sides.

use std::net::SocketAddr;

use kit_process::{Doing, Failure, IDLE, SOCKET_BYTES, StackOptions, Switch, WINDOW_BYTES};
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;

/// The socket.
pub(crate) fn io(options: &StackOptions, address: SocketAddr) -> Result<Io, Failure> {
    if options.pacing != Switch::Default {
        return Err(Failure::new("s2n-quic's pacing cannot be turned on or off"));
    }
    // s2n-quic counts the headers of IP and UDP.
    let mtu = options.datagram + HEADER_BYTES;
    let is_on = options.segmentation != Switch::Off;
    Io::builder()
        .with_receive_address(address)
        .doing("choosing the address")?
        .with_recv_buffer_size(SOCKET_BYTES)
        .doing("sizing the socket")?
        .with_send_buffer_size(SOCKET_BYTES)
        .doing("sizing the socket")?
        .with_base_mtu(mtu)
        .doing("choosing the datagrams' length")?
        .with_initial_mtu(mtu)
        .doing("choosing the datagrams' length")?
        .with_max_mtu(mtu)
        .doing("choosing the datagrams' length")?
        .with_gso(is_on)
        .doing("setting segmentation")?
        .with_gro(is_on)
        .doing("setting segmentation")?
        .build()
        .doing("opening the socket")
}

/// Windows and times.
pub(crate) fn limits() -> Result<Limits, Failure> {
    let window = u64::from(WINDOW_BYTES);
    Limits::new()
        .with_data_window(window)
        .and_then(|limits| limits.with_bidirectional_local_data_window(window))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(window))
        .and_then(|limits| limits.with_max_send_buffer_size(WINDOW_BYTES))
        .and_then(|limits| limits.with_max_idle_timeout(IDLE))
        .doing("setting limits")
}

/// IPv4 and UDP.
const HEADER_BYTES: u16 = 28;
