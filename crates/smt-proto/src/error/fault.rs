// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose fault an error is. The text of each error begins with it.

use super::{CallError, CallFailure, ConnectError, Refused, SessionEnd};
use crate::key_exchange::Fault;

impl CallError {
    /// Whose fault the end of the call is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.reason.fault()
    }
}

impl CallFailure {
    /// Whose fault the end of the call is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::BodyChanged | Self::Cancelled => Fault::Caller,
            Self::DeadlineExceeded | Self::TooLarge | Self::ReplyTooLarge => Fault::Limit,
            Self::Dropped
            | Self::Failed(_)
            | Self::Forgotten
            | Self::Malformed
            | Self::MalformedParts(_)
            | Self::Overloaded
            | Self::Refused(_)
            | Self::ShuttingDown => Fault::Peer,
            Self::SessionEnded(end) => end.fault(),
        }
    }
}

impl SessionEnd {
    /// Whose fault the end of the session is, or whose wish.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::ClosedHere | Self::Copied => Fault::Caller,
            Self::ClosedByPeer(_) | Self::Silent(_) | Self::Reset => Fault::Peer,
        }
    }
}

impl ConnectError {
    /// Whose fault it is that there is no session.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::ShutDown | Self::Copied => Fault::Caller,
            Self::NoAnswer(_)
            | Self::NotSent(_)
            | Self::PathTooSmall
            | Self::NotSmt(_)
            | Self::NoServer
            | Self::Unfinished { .. }
            | Self::Undriven => Fault::Environment,
            Self::IndicesUsedUp | Self::TooManySessions(_) => Fault::Limit,
            Self::Unavailable(_) | Self::Version { .. } | Self::Unproven { .. } => Fault::Peer,
            Self::Handshake { fault, .. } => *fault,
        }
    }
}

impl Refused {
    /// Whose fault it is that the command was not taken.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoSession | Self::NoRpc | Self::Export(_) => Fault::Caller,
            Self::Blocked
            | Self::TooLarge { .. }
            | Self::UsedUp
            | Self::PartWindowFull
            | Self::Expired => Fault::Limit,
            Self::NoParts => Fault::Peer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use std::prelude::v1::*;

    #[test]
    fn the_text_of_each_error_begins_with_its_fault() {
        for example in examples::all() {
            let prefix = format!("{}: ", example.fault);
            assert!(example.text.starts_with(&prefix), "{}", example.text);
        }
    }
}
