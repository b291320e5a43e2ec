// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why an XDP carrier could not be opened. The text quotes what the system said, so that is no
//! `source` besides.

use crate::native::NativeError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Why an XDP carrier could not be opened. No datagram was sent.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum XdpError {
    /// The address stands for all of this host: a carrier is at one interface.
    #[error(
        "caller: an XDP carrier needs an address of one interface, and {address} is all of them; name one, see `ip addr`"
    )]
    Wildcard {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The raw socket beside it could not be opened.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// No interface of Ethernet has the address.
    #[error(
        "environment: no Ethernet interface of this host has the address {ip}; choose one that `ip addr` shows"
    )]
    NoInterface {
        /// The address asked for.
        ip: IpAddr,
    },
    /// The process may not load programs, or not open sockets of this kind.
    #[error(
        "environment: this process may not use XDP ({step}): {reason}; give the program the rights (setcap cap_net_raw,cap_net_admin,cap_bpf+ep FILE), run it as root, or use native IP without XDP"
    )]
    NotPermitted {
        /// The step that was refused.
        step: &'static str,
        /// The system's error.
        reason: io::Error,
    },
    /// An XDP program is at the interface, or a socket at its queue.
    #[error(
        "environment: another process uses XDP at the interface {interface} ({step}): {reason}; end it, use another interface, or use native IP without XDP (`ip link show {interface}` shows the program)"
    )]
    InUse {
        /// The interface's name.
        interface: String,
        /// The step that was refused.
        step: &'static str,
        /// The system's error.
        reason: io::Error,
    },
    /// The system lacks something.
    #[error(
        "environment: cannot use XDP ({step}): {reason}; it needs Linux from 5.9 on with CONFIG_XDP_SOCKETS; use native IP without XDP"
    )]
    Prepare {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        reason: io::Error,
    },
}

impl XdpError {
    /// Wraps what the system said about `step` at an interface.
    pub(super) fn at(
        interface: &str,
        step: &'static str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let interface = interface.to_owned();
        move |reason| match reason.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { step, reason },
            Some(libc::EBUSY | libc::EEXIST) => Self::InUse { interface, step, reason },
            _ => Self::Prepare { step, reason },
        }
    }
}
