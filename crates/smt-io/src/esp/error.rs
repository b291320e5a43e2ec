// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a socket under ESP is not opened.

use std::io;
use std::net::SocketAddr;

/// Why a socket under ESP is not opened.
#[derive(Debug, thiserror::Error)]
pub enum EspSocketError {
    /// The process may not open raw sockets.
    #[error("environment: no right to open a raw socket: it takes CAP_NET_RAW")]
    Forbidden(#[source] io::Error),
    /// The address is not this host's, or another process has it.
    #[error("environment: cannot use the address {address}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// The device is not there, or the process may not bind to it.
    #[error("caller: cannot bind to the device {device}")]
    Device {
        /// The device that was asked for.
        device: String,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// The system gives no such socket.
    #[error("environment: cannot prepare a socket for ESP ({step})")]
    Prepare {
        /// The step that failed.
        step: &'static str,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
}

impl EspSocketError {
    pub(super) fn preparing(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Prepare { step, reason }
    }

    pub(super) fn binding(address: SocketAddr) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Bind { address, reason }
    }
}
