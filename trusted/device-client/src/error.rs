// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a device, by whose fault they are.

use std::io;

use smt_attestation::{Misuse, Refusal, StreamId};

use crate::MESSAGE_LEN_MAX;
use crate::device::SecretNumber;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The caller asked for what it may not have.
    Caller,
    /// The message is not what its sender's device attested, or not the next one.
    Message,
    /// The device process is missing, has ended, or does not keep to the rings.
    Device,
    /// The operating system failed.
    Environment,
    /// A limit of the device is reached.
    Limit,
}

/// Why a device does nothing for a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LogMisuse {
    /// The device remembers no logs.
    #[error("it remembers no logs: start it with `smt-trusted device run --memory`")]
    NoMemory,
    /// The entry is not the next one, or not the last one, of its log.
    #[error("its log ends elsewhere: another process has appended, so open the memory again")]
    NotNext,
    /// The log is not sealed up to its last entry, or that entry is of an earlier start.
    #[error("the log is not sealed up to an entry of this start: append, commit, then sign")]
    NotSealed,
    /// A sealing has failed.
    #[error("its file or its TPM has failed, as it says on its standard error: restart it")]
    Stopped,
}

/// Why a device did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The kernel refuses the request.
    #[error("the device refuses the request: {0:?}")]
    Misuse(Misuse),
    /// The kernel refuses the message.
    #[error("the device refuses the message: {0:?}")]
    Refused(Refusal),
    /// The device does nothing for the log.
    #[error("the device refuses the log: {0}")]
    Log(LogMisuse),
    /// The stream is not open.
    #[error("stream {} is not open: open it first", .0.0)]
    UnknownStream(StreamId),
    /// The device has no secret of that number.
    #[error("the device has no secret {}: provision it, or name another", .0.0)]
    UnknownSecret(SecretNumber),
    /// The caller's message is longer than [`MESSAGE_LEN_MAX`], or its request than a frame.
    #[error("the message or list has {0} bytes, and a device takes {MESSAGE_LEN_MAX}")]
    TooLong(usize),
    /// The message to check is longer than [`MESSAGE_LEN_MAX`]: no device has attested it.
    #[error("the message has {0} bytes, and no device attests more than {MESSAGE_LEN_MAX}")]
    PeerTooLong(usize),
    /// No process listens at the socket, or the caller may not connect.
    #[error("no device at {path}: is `smt-trusted device run` running, and may this user connect?")]
    Missing {
        /// The socket's path.
        path: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The device process has ended. A new connection finds it in a new epoch.
    #[error("the device process has ended: restart it, then connect again")]
    Ended,
    /// The device wrote what no device of this version writes.
    #[error("the device process breaks the protocol: {0}")]
    Protocol(&'static str),
    /// The device has as many connections as it takes.
    #[error("the device took no connection: it has as many as it takes")]
    Busy,
    /// The operating system failed.
    #[error("the operating system failed on the way to the device")]
    System(#[from] io::Error),
}

impl DeviceError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Misuse(Misuse::Full | Misuse::EpochEnded) | Self::Busy => Fault::Limit,
            Self::Misuse(_)
            | Self::Log(LogMisuse::NoMemory | LogMisuse::NotNext | LogMisuse::NotSealed)
            | Self::UnknownStream(_)
            | Self::UnknownSecret(_)
            | Self::TooLong(_) => Fault::Caller,
            Self::Refused(_) | Self::PeerTooLong(_) => Fault::Message,
            Self::Missing { .. }
            | Self::Ended
            | Self::Protocol(_)
            | Self::Log(LogMisuse::Stopped) => Fault::Device,
            Self::System(_) => Fault::Environment,
        }
    }
}

impl From<Misuse> for DeviceError {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<LogMisuse> for DeviceError {
    fn from(misuse: LogMisuse) -> Self {
        Self::Log(misuse)
    }
}

impl From<Refusal> for DeviceError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rustix::io::Errno> for DeviceError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}
