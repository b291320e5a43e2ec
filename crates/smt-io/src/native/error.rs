// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a native carrier could not be opened. The text quotes what the system said, so that is no
//! `source` besides.

use std::io;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Why a native carrier could not be opened. All are the environment's doing.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum NativeError {
    /// The process may not open raw sockets.
    #[error(
        "environment: this process may not open a raw socket: {reason}; give the program the right (setcap cap_net_raw+ep FILE), run it as root, or use UDP"
    )]
    NotPermitted {
        /// The system's error.
        reason: io::Error,
    },
    /// The address is not this host's, or another carrier or a TCP service has the port.
    #[error(
        "environment: cannot use {address} natively: {reason}; choose another address or port, or end what has it (TCP counts, too)"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The system does not speak this version of IP.
    #[error(
        "environment: this host has no IPv{version}: {reason}; use an address of the other version, or let the host's administrator turn it on"
    )]
    NoSuchVersion {
        /// 4 or 6.
        version: u8,
        /// The system's error.
        reason: io::Error,
    },
    /// The system gives no socket, or one without what the protocol needs.
    #[error(
        "environment: cannot prepare a raw socket ({step}): {reason}; use UDP, or a system whose raw sockets have it"
    )]
    Prepare {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        reason: io::Error,
    },
}

impl NativeError {
    /// Wraps what the system said about `step`.
    pub(super) fn preparing(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Prepare { step, reason }
    }

    /// Wraps what the system said to a new raw socket.
    pub(super) fn opening(bound: IpAddr) -> impl FnOnce(io::Error) -> Self {
        move |reason| match (reason.kind(), reason.raw_os_error()) {
            (io::ErrorKind::PermissionDenied, _) => Self::NotPermitted { reason },
            (_, Some(libc::EAFNOSUPPORT)) => {
                Self::NoSuchVersion { version: if bound.is_ipv4() { 4 } else { 6 }, reason }
            }
            _ => Self::Prepare { step: "open", reason },
        }
    }
}
