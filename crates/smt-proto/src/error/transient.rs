// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which errors are transient: the same command may succeed later, or with another server, without
//! a change of program or configuration. Whether a call may be repeated at all is another question
//! ([`Execution`](super::Execution)).

use super::{CallError, CallFailure, CloseCode, ConnectError, Refused, SessionEnd, Unavailability};

impl CallError {
    /// Whether the same call may succeed later, or with another server.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.reason.is_transient()
    }
}

impl CallFailure {
    /// Whether the same call may succeed later, or with another server. Only the
    /// application's own code can tell that of its failures: they are not called transient.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::DeadlineExceeded
            | Self::Dropped
            | Self::Forgotten
            | Self::Overloaded
            | Self::ShuttingDown => true,
            Self::BodyChanged
            | Self::Cancelled
            | Self::Failed(_)
            | Self::Malformed
            | Self::MalformedParts(_)
            | Self::Refused(_)
            | Self::TooLarge
            | Self::ReplyTooLarge => false,
            Self::SessionEnded(end) => end.is_transient(),
        }
    }
}

impl SessionEnd {
    /// Whether another session with the server may serve.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::ClosedHere | Self::Copied => false,
            Self::ClosedByPeer(code) => !matches!(code, CloseCode::Violation | CloseCode::Refused),
            Self::Silent(_) | Self::Reset => true,
        }
    }
}

impl ConnectError {
    /// Whether the server may be reached later, or another one now.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(_)
            | Self::NotSent(_)
            | Self::PathTooSmall
            | Self::NotSmt(_)
            | Self::NoServer
            | Self::TooManySessions(_)
            | Self::Unfinished { .. } => true,
            Self::Unavailable(why) => !matches!(why, Unavailability::NothingInCommon),
            Self::IndicesUsedUp
            | Self::Version { .. }
            | Self::Handshake { .. }
            | Self::Unproven { .. }
            | Self::Undriven
            | Self::ShutDown
            | Self::Copied => false,
        }
    }
}

impl Refused {
    /// Whether the same command may be taken later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Blocked
            | Self::NoSession
            | Self::UsedUp
            | Self::PartWindowFull
            | Self::Expired => true,
            Self::NoRpc | Self::TooLarge { .. } | Self::NoParts | Self::Export(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use crate::key_exchange::Fault;

    #[test]
    fn nothing_that_the_calling_program_has_done_ends_by_itself() {
        let of_caller = |example: &examples::Example| example.fault == Fault::Caller;
        let passing = examples::all().filter(of_caller);
        let passing = passing.filter(|example| example.is_transient);
        let codes: std::vec::Vec<_> = passing.map(|example| example.code).collect();
        // The session has ended: the next one may serve.
        assert_eq!(codes, [302]);
    }
}
