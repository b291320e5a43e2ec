// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The errors and endings of sessions, calls and messages (SPEC §11). Each error says whose fault
//! it was and what to do.

mod code;
#[cfg(test)]
mod examples;
mod fault;
mod transient;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use smt_record::ExportError;
use thiserror::Error;

use crate::failure::Failure;
use crate::key_exchange::{FailureKind, Fault, HandshakeFailure};

/// Whether a call without a reply has had an effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Execution {
    /// The server's application has not seen the request and will not: repeating it is safe.
    DidNotRun,
    /// The server's application may have acted on the request: repeating it may act twice.
    MayHaveRun,
}

impl core::fmt::Display for Execution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::DidNotRun => "the request did not run",
            Self::MayHaveRun => "the request may have run",
        })
    }
}

/// Why a call ended without a reply.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{reason}; {execution}")]
pub struct CallError {
    /// The cause.
    pub reason: CallFailure,
    /// Whether the call may have had an effect.
    pub execution: Execution,
}

impl CallFailure {
    /// The answer of the server's application that it has refused the request or failed with it;
    /// [`Failure::not_run`] tells which.
    #[must_use]
    pub fn answer(&self) -> Option<&Failure> {
        match self {
            Self::Refused(failure) | Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

/// The cause of a call's end.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CallFailure {
    /// The request's memory changed after a part of it had left, and that part was asked for again.
    /// Sealed again, that part would disclose both contents, so it was not sent. Give memory that
    /// is not written to, or a copy.
    #[error(
        "caller: the body changed while it was being sent; give memory that nobody writes to, or a copy"
    )]
    BodyChanged,
    /// The caller cancelled.
    #[error("caller: the call was cancelled")]
    Cancelled,
    /// The deadline passed. Give more time, or find out what keeps the server busy.
    #[error("limit: the call's deadline passed before its reply came")]
    DeadlineExceeded,
    /// The server's application dropped the request without replying.
    #[error("peer: the server's application ended the request without a reply")]
    Dropped,
    /// The server's application says that the request has failed. It may have run, wholly or in
    /// part: the application's code and text say more.
    #[error("peer: the server's application failed the request: {0}")]
    Failed(Box<Failure>),
    /// The server's state for this call is gone.
    #[error("peer: the server has forgotten this call")]
    Forgotten,
    /// The reply's metadata breaks the rules of the protocol (SPEC §5.8). It is a fault of the
    /// server's implementation.
    #[error("peer: the reply's metadata is malformed; its server breaks the protocol")]
    Malformed,
    /// The parts of the reply break the rules of the protocol (SPEC §5.9). It is a fault of the
    /// server's implementation.
    #[error("peer: the server breaks the rules of calls in parts: {0}")]
    MalformedParts(PartViolation),
    /// The server has no room for the request, which did not run: try again later, or try another
    /// server.
    #[error("peer: the server is overloaded; try again later, or another server")]
    Overloaded,
    /// The server's application refused the request, which did not run. The application's code and
    /// text say why.
    #[error("peer: the server's application refused the request: {0}")]
    Refused(Box<Failure>),
    /// The session ended.
    #[error("{0}")]
    SessionEnded(SessionEnd),
    /// The server shuts down, or what this side has proved its identity by has ended or is accepted
    /// no more (SPEC §10). The request did not run: connect again, or try another server.
    #[error(
        "peer: the server is shutting down, or accepts this side's certificate no more; connect again, or try another server"
    )]
    ShuttingDown,
    /// The server does not accept a request of this size.
    #[error("limit: the server refused the request as too large")]
    TooLarge,
    /// The server has a reply, and this side does not accept one of its size.
    #[error(
        "limit: the reply is larger than this side accepts; raise its message limit, or ask for less at a time"
    )]
    ReplyTooLarge,
}

/// The rule of calls in parts that a peer has broken (SPEC §5.9).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum PartViolation {
    /// [5.9-10]
    #[error("a part stands behind the end of the parts")]
    BehindEnd,
    /// [5.9-12]
    #[error("a part is beyond the limit that its reader has given")]
    BeyondWindow,
    /// [5.9-7]
    #[error("the number of parts that was said is not that of the parts that have come")]
    Count,
    /// [5.9-6]
    #[error("a part says that none follows, which only the reply may say")]
    EndsReply,
    /// [5.9-10]
    #[error("a part has the number of another")]
    Repeated,
}

impl CallError {
    /// The end of a call whose application has failed it.
    pub(crate) fn failed(failure: Failure) -> Self {
        let (not_run, failure) = (failure.not_run, Box::new(failure));
        match not_run {
            true => Self { reason: CallFailure::Refused(failure), execution: Execution::DidNotRun },
            false => {
                Self { reason: CallFailure::Failed(failure), execution: Execution::MayHaveRun }
            }
        }
    }
}

// Outcomes are moved through queues with every call: the text of the rare failure is elsewhere.
const _: () = assert!(size_of::<CallError>() <= 32);

/// Why a session ended.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SessionEnd {
    /// This side closed it.
    #[error("caller: this side closed the session")]
    ClosedHere,
    /// The peer closed it.
    #[error("peer: the peer closed the session ({0})")]
    ClosedByPeer(CloseCode),
    /// The peer did not answer although it was asked. Is it running, and reachable?
    #[error("peer: no answer for {} ms; is the peer running and reachable?", .0.as_millis())]
    Silent(Duration),
    /// The peer has restarted, or forgotten the session. A new session is needed.
    #[error("peer: the peer no longer knows the session (it restarted or closed it)")]
    Reset,
    /// This process is a copy of the one that has the session, and must not go on with its keys.
    #[error(
        "caller: the session is that of the process which this one is a copy of (fork); open another endpoint here"
    )]
    Copied,
}

/// Why a peer closed a session (SPEC §12.3).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CloseCode {
    /// The peer has no more use for the session.
    Done,
    /// Nothing happened for the peer's idle time.
    Idle,
    /// The peer shuts down.
    ShuttingDown,
    /// Ids or keys are used up.
    UsedUp,
    /// The peer says that this side broke a rule of the protocol.
    Violation,
    /// The peer's application does not serve this side, though its credentials are in order.
    Refused,
    /// A certificate of the handshake has ended, or is about to, or is accepted no more.
    Expired,
    /// This side has as many sessions with the peer as one identity may.
    TooMany,
    /// A code that this version does not know.
    Unknown(u16),
}

impl CloseCode {
    /// The reason of this code of a CLOSE.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            0 => Self::Done,
            1 => Self::Idle,
            2 => Self::ShuttingDown,
            3 => Self::UsedUp,
            4 => Self::Violation,
            5 => Self::Refused,
            6 => Self::Expired,
            7 => Self::TooMany,
            other => Self::Unknown(other),
        }
    }

    /// The code of a CLOSE for this reason.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Done => 0,
            Self::Idle => 1,
            Self::ShuttingDown => 2,
            Self::UsedUp => 3,
            Self::Violation => 4,
            Self::Refused => 5,
            Self::Expired => 6,
            Self::TooMany => 7,
            Self::Unknown(code) => code,
        }
    }
}

impl core::fmt::Display for CloseCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Idle => f.write_str("idle"),
            Self::ShuttingDown => f.write_str("shutting down"),
            Self::UsedUp => f.write_str("ids or keys used up"),
            Self::Violation => f.write_str("it says that we broke a rule"),
            Self::Expired => {
                f.write_str("a certificate of its handshake ends, or is accepted no more")
            }
            Self::TooMany => f.write_str("it has as many sessions of this identity as it takes"),
            Self::Refused => f.write_str("its application does not serve this side"),
            Self::Unknown(code) => write!(f, "code {code}"),
        }
    }
}

/// Why a server takes no client (SPEC §12.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unavailability {
    /// The server finishes the work that it has, and ends.
    ShuttingDown,
    /// The server has as many sessions as it may ([`crate::TransportConfig::sessions_max`]).
    Full,
    /// The server has no version, key exchange or registered key that this client has.
    NothingInCommon,
    /// A code that this version does not know.
    Unknown(u16),
}

impl Unavailability {
    /// The reason of this code.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::ShuttingDown,
            2 => Self::Full,
            3 => Self::NothingInCommon,
            _ => Self::Unknown(code),
        }
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::ShuttingDown => 1,
            Self::Full => 2,
            Self::NothingInCommon => 3,
            Self::Unknown(code) => code,
        }
    }
}

/// Tells what the server said, and what to do.
impl core::fmt::Display for Unavailability {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::ShuttingDown => f.write_str("the server is shutting down")?,
            Self::Full => f.write_str("the server has as many sessions as it takes")?,
            Self::NothingInCommon => {
                return f.write_str(
                    "the server has no version, kind of key exchange (TLS or registered keys) or registered key of this \
                     client; configure both alike, or, if the session was handed over, have another one handed over, since \
                     the server may have begun anew or had it before",
                );
            }
            Self::Unknown(code) => write!(f, "the server takes no client now (code {code})")?,
        }
        f.write_str("; connect to another, or again later")
    }
}

/// How a one-way message ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OneWayOutcome {
    /// The peer has the message and accepted it for delivery.
    Delivered,
    /// The message was not delivered and will not be.
    NotDelivered(CallFailure),
    /// The message may have been delivered.
    MayHaveBeenDelivered(CallFailure),
}

/// Why a connect failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// This endpoint has had as many sessions and attempts as there are numbers. Make a new one.
    #[error("limit: this endpoint has used up its session indices; make a new one")]
    IndicesUsedUp,
    /// The deadline passed and nothing ever answered.
    #[error("environment: no answer from the server within {} ms; check address, port and firewall", .0.as_millis())]
    NoAnswer(Duration),
    /// The deadline passed, and the packets from the server's address were of another protocol, or
    /// this side's own. They are a hint: anybody can send such packets in the server's name.
    #[error(
        "environment: something answers there that is no SMT server (nothing of SMT within {} ms); check address and port", .0.as_millis()
    )]
    NotSmt(Duration),
    /// The deadline passed without an answer, and this host has refused to send packets to the
    /// server: it has no route, or its own firewall forbids them.
    #[error(
        "environment: this host refused to send to the server, which did not answer within {} ms; check routes and this host's firewall", .0.as_millis()
    )]
    NotSent(Duration),
    /// The system refuses datagrams of 1,200 bytes to the server as too large, which is the least
    /// that a path has to carry (SPEC §9.8).
    #[error(
        "environment: the path to the server carries no datagrams of 1200 bytes, which SMT needs: raise the MTU of its links or tunnels to 1228 (IPv4) or 1248 (IPv6) or more"
    )]
    PathTooSmall,
    /// The host says that no one listens at that address and port.
    #[error(
        "environment: no server there: the host reports the port as unreachable; start it, or check address and port"
    )]
    NoServer,
    /// The server takes no client now.
    #[error("peer: {0}")]
    Unavailable(Unavailability),
    /// The server answered but speaks other versions.
    #[error("peer: the server does not speak SMT version {ours}; it speaks {theirs:?}")]
    Version {
        /// Our version.
        ours: u8,
        /// The versions that the server says it speaks.
        theirs: Vec<u8>,
    },
    /// The handshake failed: certificates, suites, parameters.
    #[error("{fault}: {text}")]
    Handshake {
        /// Whose fault.
        fault: Fault,
        /// The part that failed.
        kind: FailureKind,
        /// The cause, and what to do.
        text: String,
    },
    /// The deadline passed in the middle of a handshake.
    #[error("environment: the handshake was not complete within {} ms (got as far as flight {flight})", .after.as_millis())]
    Unfinished {
        /// The deadline.
        after: Duration,
        /// The last flight that came from the server.
        flight: u8,
    },
    /// The server answered by this registered key, and no packet that it sent under the session's
    /// keys opened.
    #[error(
        "peer: the server did not prove within {} ms that it holds registered key {}; see that both sides have \
         registered the same secret under this name, and the same two identities, each with its own and the other's",
        .after.as_millis(), ShownKeyName(.key_name)
    )]
    Unproven {
        /// The deadline.
        after: Duration,
        /// Name of the key.
        key_name: Vec<u8>,
    },
    /// This endpoint has as many sessions as it may.
    #[error("limit: this endpoint already has {0} sessions, its configured maximum")]
    TooManySessions(usize),
    /// The runtime or thread that drove this endpoint is gone, so no answer would be received.
    #[error(
        "environment: the runtime that this endpoint was opened on has ended; open another on one that lives on"
    )]
    Undriven,
    /// This side has shut the endpoint down.
    #[error("caller: this endpoint was shut down; open another one")]
    ShutDown,
    /// This process is a copy of the one that opened the endpoint.
    #[error(
        "caller: this process is a copy (fork) of the one that opened the endpoint; open another one here"
    )]
    Copied,
}

/// The name of a registered key as people read it: that of a session which was handed over is 16
/// bytes of any kind.
struct ShownKeyName<'a>(&'a [u8]);

impl core::fmt::Display for ShownKeyName<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match core::str::from_utf8(self.0) {
            Ok(text) if !text.contains(char::is_control) => write!(f, "{text:?}"),
            _ => self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl From<HandshakeFailure> for ConnectError {
    fn from(failure: HandshakeFailure) -> Self {
        Self::Handshake { fault: failure.fault, kind: failure.kind, text: failure.text }
    }
}

/// Why a command was not taken. Nothing was sent and nothing has changed.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refused {
    /// As many messages wait as the peer accepts. Calls of tasks and threads wait until that is
    /// over. The owner of a polled endpoint tries again after its event `Unblocked`.
    #[error("limit: the peer's id window is full; wait until earlier calls have been seen")]
    Blocked,
    /// No session of this name is live.
    #[error("caller: the session has ended or is closing")]
    NoSession,
    /// No RPC of this name waits for this: it was answered, or its caller has given up.
    #[error("caller: the request was already answered, or its caller has given up")]
    NoRpc,
    /// The message is larger than the peer accepts.
    #[error(
        "limit: the message has {length} bytes, and the peer accepts at most {limit}; split it, or raise the peer's message limit"
    )]
    TooLarge {
        /// Bytes given.
        length: usize,
        /// Bytes that may be sent.
        limit: u32,
    },
    /// The peer takes no parts: it was told not to, is of an older version, or has made this call
    /// for a whole reply.
    #[error("peer: the peer takes no parts in this call; send the message whole")]
    NoParts,
    /// The reader of the call's parts has not taken enough of them, or has not acknowledged enough
    /// of the parts and replies that it was sent. Senders of tasks and threads wait until that is
    /// over. The owner of a polled endpoint tries again after its event `PartWindowRaised`.
    #[error("limit: the reader of the parts has to take some first; wait until it has")]
    PartWindowFull,
    /// No such secret can be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The session's ids are used up: connect again.
    #[error("limit: the session's message ids are used up; connect again")]
    UsedUp,
    /// A certificate of the session's handshake has ended, or is about to: connect again.
    #[error(
        "limit: a certificate of the session's handshake ends, so nothing more begins in it; connect again"
    )]
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_key_is_shown_as_text_or_in_hexadecimal_digits() {
        let shown = |name: &[u8]| {
            let (after, key_name) = (Duration::from_secs(1), name.to_vec());
            alloc::string::ToString::to_string(&ConnectError::Unproven { after, key_name })
        };
        assert!(shown("søk 7".as_bytes()).contains("registered key \"søk 7\";"));
        assert!(shown(&[0xA7, 0, 0x1B]).contains("registered key a7001b;"));
        assert!(shown(b"a\x1B[2J").contains("registered key 611b5b324a;"));
    }
}
