// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a failed system call on a UDP socket means for a carrier.

use smt_carrier::SendError;
use std::io;

/// The kinds of failure that are handled differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Trouble {
    /// Nothing there to receive, or no room to send.
    Full,
    /// A signal came first.
    Interrupted,
    /// Anything else.
    Other(i32),
    /// Something about how the call was made is not supported: an offload, a control message.
    Refused(i32),
    /// The datagram is larger than the path carries.
    TooLarge,
    /// No way to the peer, or nobody there: often an ICMP report about an earlier datagram.
    Unreachable,
}

impl Trouble {
    /// What to tell the caller of a send.
    pub(super) const fn to_send_error(self, bytes_sent: usize) -> SendError {
        match self {
            Self::Full => SendError::WouldBlock { bytes_sent },
            Self::Interrupted => SendError::Other { code: libc::EINTR },
            Self::Other(code) | Self::Refused(code) => SendError::Other { code },
            Self::TooLarge => SendError::TooLarge,
            Self::Unreachable => SendError::Unreachable,
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        // `EAGAIN` and `EWOULDBLOCK` are one number on some systems and two on others.
        if error.kind() == io::ErrorKind::WouldBlock {
            return Self::Full;
        }
        match error.raw_os_error().unwrap_or(0) {
            libc::ENOBUFS => Self::Full,
            libc::EINTR => Self::Interrupted,
            libc::EMSGSIZE => Self::TooLarge,
            // What kernels and drivers are known to answer to GSO they cannot do, and to control
            // messages they do not know.
            code @ (libc::EINVAL | libc::EIO | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => {
                Self::Refused(code)
            }
            libc::ECONNREFUSED
            | libc::EHOSTDOWN
            | libc::EHOSTUNREACH
            | libc::ENETDOWN
            | libc::ENETUNREACH => Self::Unreachable,
            code => Self::Other(code),
        }
    }
}
