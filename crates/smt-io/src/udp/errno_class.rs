// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The meaning of a failed system call on a socket for a carrier.

use smt_carrier::SendError;
use std::io;

/// The kinds of failure that are handled differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ErrnoClass {
    /// Nothing there to receive, or no room to send.
    Full,
    /// A signal came first.
    Interrupted,
    /// Anything else.
    Other(i32),
    /// Something about how the call was made is not supported: an offload, a control message. On a
    /// connected socket an ICMP report may look so too, if it is of an unknown kind
    /// (`icmp_report.rs`).
    Refused(i32),
    /// The datagram is larger than the path carries.
    TooLarge,
    /// No way to the peer, or no socket there: often an ICMP report about an earlier datagram.
    Unreachable,
}

impl ErrnoClass {
    /// Classifies an error of a socket that is connected or not.
    pub(crate) fn of(error: io::Error, is_connected: bool) -> Self {
        // `EAGAIN` and `EWOULDBLOCK` are one number on some systems and two on others.
        if error.kind() == io::ErrorKind::WouldBlock {
            return Self::Full;
        }
        match error.raw_os_error().unwrap_or(0) {
            code if is_connected && REPORTED.contains(&code) => Self::Unreachable,
            libc::ENOBUFS => Self::Full,
            libc::EINTR => Self::Interrupted,
            libc::EMSGSIZE => Self::TooLarge,
            // Kernels and drivers are known to answer by these codes to GSO they cannot do, and to
            // control messages they do not know.
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

    /// The error for the caller of a send.
    pub(crate) const fn to_send_error(self, bytes_sent: usize) -> SendError {
        match self {
            Self::Full => SendError::WouldBlock { bytes_sent },
            Self::Interrupted => SendError::Other { code: libc::EINTR },
            Self::Other(code) | Self::Refused(code) => SendError::Other { code },
            Self::TooLarge => SendError::TooLarge,
            Self::Unreachable => SendError::Unreachable,
        }
    }
}

/// Codes that Linux gives to the other ICMP reports that it tells a connected socket of; on any
/// other socket they mean something else: IPv6's "administratively prohibited", "source address
/// failed policy" and "reject route"; "host isolated"; "protocol unreachable"; "parameter problem".
/// A send that a rule of this host forbids may end by `EACCES` as well: no way to the peer at
/// present either.
const REPORTED: &[i32] = &[
    libc::EACCES,
    #[cfg(target_os = "linux")]
    libc::ENONET,
    libc::ENOPROTOOPT,
    libc::EPROTO,
];

#[cfg(test)]
mod tests {
    use super::{ErrnoClass, REPORTED, io};

    mod of {
        use super::{ErrnoClass, REPORTED, io};

        fn of(code: i32, is_connected: bool) -> ErrnoClass {
            ErrnoClass::of(io::Error::from_raw_os_error(code), is_connected)
        }

        #[test]
        fn reports_to_a_connected_socket_are_of_an_unreachable_peer() {
            for &code in REPORTED {
                assert_eq!(of(code, true), ErrnoClass::Unreachable, "{code}");
            }
        }

        #[test]
        fn the_same_codes_are_refusals_on_a_socket_that_gets_no_reports() {
            assert_eq!(of(libc::EACCES, false), ErrnoClass::Other(libc::EACCES));
            let refused = ErrnoClass::Refused(libc::ENOPROTOOPT);
            assert_eq!(of(libc::ENOPROTOOPT, false), refused);
            assert_eq!(of(libc::EPROTO, false), ErrnoClass::Other(libc::EPROTO));
        }

        #[test]
        fn other_codes_mean_the_same_on_both() {
            for is_connected in [false, true] {
                let of = |code| of(code, is_connected);
                assert_eq!(of(libc::EAGAIN), ErrnoClass::Full);
                assert_eq!(of(libc::ENOBUFS), ErrnoClass::Full);
                assert_eq!(of(libc::EINTR), ErrnoClass::Interrupted);
                assert_eq!(of(libc::EMSGSIZE), ErrnoClass::TooLarge);
                assert_eq!(of(libc::EINVAL), ErrnoClass::Refused(libc::EINVAL));
                assert_eq!(of(libc::EIO), ErrnoClass::Refused(libc::EIO));
                assert_eq!(of(libc::ECONNREFUSED), ErrnoClass::Unreachable);
                assert_eq!(of(libc::EPERM), ErrnoClass::Other(libc::EPERM));
            }
        }
    }
}
