// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a UDP carrier could not be opened. The text quotes what the system said, so that is no
//! `source` besides.

use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a UDP carrier could not be opened. All are the environment's doing.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address is taken or not this host's, or the port needs a privilege: choose another.
    #[error(
        "environment: cannot bind a UDP socket to {address}: {reason}; choose another address or port, or end what has it"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// This host knows no way to the address: check the address and the routes.
    #[error(
        "environment: cannot connect a UDP socket to {remote}: {reason}; check the address and the routes"
    )]
    Connect {
        /// The peer asked for.
        remote: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The system gives no socket, or one without what the protocol needs (datagrams that are never
    /// fragmented): check its limits, and whether it has IPv6 if the address is of that kind.
    #[error(
        "environment: cannot prepare a UDP socket ({step}): {reason}; check the system's limits, and whether it has this version of IP"
    )]
    Prepare {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        reason: io::Error,
    },
}

impl OpenError {
    /// Wraps what the system said about `step`.
    pub(super) fn preparing(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::Prepare { step, reason }
    }
}
