// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors: in which phase, with which peer, whose fault, and what to do.
//!
//! The text of an error is complete. An error that the text quotes is not its `source` as well,
//! since a printed chain would then repeat it.

mod classification;

use std::net::SocketAddr;
use std::sync::Arc;

use smt_handshake::TlsConfigError;
use smt_proto::{CallError, ConnectError, Execution, OneWayOutcome, Refused};

/// An operation with a peer failed. Its `Debug` is its text, since that is what a `main` shows that
/// returns it.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("{phase} {peer}: {kind}{}{}", before_text(*.attempt_before_may_have_run), session_text(*.had_no_session))]
pub struct Error {
    phase: Phase,
    peer: PeerPlace,
    kind: ErrorKind,
    /// The message was repeated, and this is the error of its last attempt.
    pub(crate) attempt_before_may_have_run: bool,
    /// The deadline passed before there was a session.
    pub(crate) had_no_session: bool,
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn before_text(may_have_run: bool) -> &'static str {
    match may_have_run {
        true => "; an attempt before may have run",
        false => "",
    }
}

fn session_text(had_none: bool) -> &'static str {
    match had_none {
        true => {
            "; no session with the server had come about: check address, port and firewall, or allow more time"
        }
        false => "",
    }
}

/// The peer of an operation: at an address, or by its name as long as none is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PeerPlace {
    At(SocketAddr),
    Named(Arc<str>),
}

impl From<SocketAddr> for PeerPlace {
    fn from(address: SocketAddr) -> Self {
        Self::At(address)
    }
}

impl std::fmt::Display for PeerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
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
    /// Sending or reading a part of a call that has begun.
    Part,
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
            Self::Part => "part of the call with",
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
    /// The message was not taken on this side.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The call whose answer or part this was is over: its caller has given up, or the session has
    /// ended. For the sender of a request's parts it is also one that has its reply.
    #[error("peer: the call is over: it was answered or given up, or its session has ended")]
    CallOver,
    /// Another [`RequestParts`](crate::RequestParts) of the request is there, and reads its parts.
    #[error("caller: another reader has the parts of this request; drop that one first")]
    PartsAreRead,
    /// A one-way message was not delivered.
    #[error("{0}; the message was not delivered")]
    NotDelivered(smt_proto::CallFailure),
    /// It is not known whether a one-way message was delivered.
    #[error("{0}; the message may have been delivered")]
    MayHaveBeenDelivered(smt_proto::CallFailure),
    /// The name of the server was not resolved, for this reason.
    #[error(
        "environment: the server's name was not resolved: {0}; check the name and the resolver"
    )]
    Unresolved(String),
}

impl ErrorKind {
    /// Success only if the message was delivered.
    pub(crate) fn of_outcome(outcome: OneWayOutcome) -> Result<(), Self> {
        Err(match outcome {
            OneWayOutcome::Delivered => return Ok(()),
            OneWayOutcome::NotDelivered(failure) => Self::NotDelivered(failure),
            OneWayOutcome::MayHaveBeenDelivered(failure) => Self::MayHaveBeenDelivered(failure),
        })
    }
}

impl Error {
    /// Whether the request may have had an effect. Repeating it is safe after
    /// [`Execution::DidNotRun`]. A request to which a reply failed has been here, so it may have
    /// run; so may one of which parts were to be sent or read.
    #[must_use]
    pub fn execution(&self) -> Execution {
        match &self.kind {
            ErrorKind::Call(error) if !self.attempt_before_may_have_run => error.execution,
            ErrorKind::MayHaveBeenDelivered(_) => Execution::MayHaveRun,
            _ if self.attempt_before_may_have_run => Execution::MayHaveRun,
            _ if matches!(self.phase, Phase::Part | Phase::Reply) => Execution::MayHaveRun,
            _ => Execution::DidNotRun,
        }
    }

    pub(crate) fn new(
        phase: Phase,
        peer: impl Into<PeerPlace>,
        kind: impl Into<ErrorKind>,
    ) -> Self {
        let (peer, kind) = (peer.into(), kind.into());
        Self { phase, peer, kind, attempt_before_may_have_run: false, had_no_session: false }
    }
}

/// An endpoint could not be opened. No message was sent. Its `Debug` is its text, as of [`Error`].
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum OpenError {
    /// The text is no address (the caller's fault), or does not resolve (the environment's).
    #[error("{}", address_text(.address, .reason))]
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
    /// The raw sockets of [`Builder::native`](crate::Builder::native) could not be opened: the
    /// process lacks a right, or the port is in use.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Native(#[from] smt_io::NativeError),
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
    /// The socket of [`Builder::xdp`](crate::Builder::xdp) could not be opened: the process lacks a
    /// right, or another uses XDP at the interface.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Xdp(#[from] smt_io::XdpError),
    /// The operating system refused something else.
    #[error("environment: {what}: {reason}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The operating system's error.
        reason: std::io::Error,
    },
}

impl std::fmt::Debug for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn address_text(address: &str, reason: &std::io::Error) -> String {
    match reason.kind() {
        std::io::ErrorKind::InvalidInput => {
            format!("caller: invalid address {address:?}: {reason}")
        }
        _ => format!("environment: the address {address:?} does not resolve: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_returns_an_error_shows_its_text() {
        let address: SocketAddr = ([127, 0, 0, 1], 9).into();
        let error = Error::new(Phase::Connect, address, ConnectError::NoServer);
        assert_eq!(format!("{error:?}"), error.to_string());
        let error = OpenError::from(error);
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(error.to_string().starts_with("connect to 127.0.0.1:9: environment: "), "{error}");
    }
}
