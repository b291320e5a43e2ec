// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors: in which phase, with which peer, whose fault, and what to do.
//!
//! The text of an error is complete. An error that the text quotes is not its `source` as well,
//! since a printed chain would then repeat it.

mod classification;

use std::net::SocketAddr;

use smt_handshake::TlsConfigError;
use smt_proto::{CallError, ConnectError, Execution, OneWayOutcome, Refused};

/// An operation with a peer failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{phase} {peer}: {kind}")]
pub struct Error {
    /// The operation that failed.
    pub phase: Phase,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The cause of the failure.
    pub kind: ErrorKind,
}

/// The operation that failed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// A call, from its request to its reply.
    Call,
    /// Establishing a session.
    Connect,
    /// Exporting a secret of a session.
    Export,
    /// Replying to a request.
    Reply,
    /// A one-way message.
    Send,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Call => "call to",
            Self::Connect => "connect to",
            Self::Export => "export from the session with",
            Self::Reply => "reply to",
            Self::Send => "send to",
        })
    }
}

/// The cause of the failure.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ErrorKind {
    /// The call ended without a reply.
    #[error(transparent)]
    Call(#[from] CallError),
    /// No session came about.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The message was not taken.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A one-way message was not delivered.
    #[error("{0}; the message was not delivered")]
    NotDelivered(smt_proto::CallFailure),
    /// It is not known whether a one-way message was delivered.
    #[error("{0}; the message may have been delivered")]
    MayHaveBeenDelivered(smt_proto::CallFailure),
    /// A one-way message takes no reply.
    #[error("caller: a one-way message takes no reply")]
    OneWay,
}

impl Error {
    /// Whether the request may have had an effect. Repeating it is safe after
    /// [`Execution::DidNotRun`]. A request to which a reply failed has been here, so it may have
    /// run.
    #[must_use]
    pub fn execution(&self) -> Execution {
        match &self.kind {
            ErrorKind::Call(error) => error.execution,
            ErrorKind::MayHaveBeenDelivered(_) => Execution::MayHaveRun,
            _ if self.phase == Phase::Reply => Execution::MayHaveRun,
            _ => Execution::DidNotRun,
        }
    }

    pub(crate) fn new(phase: Phase, peer: SocketAddr, kind: impl Into<ErrorKind>) -> Self {
        Self {
            phase,
            peer,
            kind: kind.into(),
        }
    }

    /// Success only if the message was delivered.
    pub(crate) fn of_outcome(peer: SocketAddr, outcome: OneWayOutcome) -> Result<(), Self> {
        let kind = match outcome {
            OneWayOutcome::Delivered => return Ok(()),
            OneWayOutcome::NotDelivered(failure) => ErrorKind::NotDelivered(failure),
            OneWayOutcome::MayHaveBeenDelivered(failure) => {
                ErrorKind::MayHaveBeenDelivered(failure)
            }
        };
        Err(Self::new(Phase::Send, peer, kind))
    }
}

/// An endpoint could not be opened. No message was sent.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The text is no address, or does not resolve.
    #[error("caller: invalid address {address:?}: {reason}")]
    Address {
        /// The address as it was given.
        address: String,
        /// The failure of the resolver.
        reason: std::io::Error,
    },
    /// The socket could not be opened: the port is in use, or the address is not this host's.
    #[error(transparent)]
    Carrier(#[from] smt_io::OpenError),
    /// No session with the server came about.
    #[error(transparent)]
    Connect(#[from] Error),
    /// Certificates or trust cannot be used.
    #[error(transparent)]
    Credentials(#[from] TlsConfigError),
    /// Registered keys cannot be used together.
    #[error(transparent)]
    RegisteredKey(#[from] smt_handshake::RegisteredKeyError),
    /// A choice is out of its range.
    #[error("caller: {0}")]
    Options(&'static str),
    /// Another endpoint has the state file: if two had it, one would end the sessions of the other.
    #[error(
        "caller: the state file {} is in use by {holder}; give each server a file of its own, or end that one", .path.display()
    )]
    StateFileInUse {
        /// The state file.
        path: std::path::PathBuf,
        /// Which process on which host, as it has said.
        holder: String,
    },
    /// The operating system refused something else.
    #[error("environment: {what}: {reason}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The operating system's error.
        reason: std::io::Error,
    },
}
