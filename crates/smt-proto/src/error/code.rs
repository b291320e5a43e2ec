// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers of errors: for metrics, for logs, and for programs in other languages. A number never
//! changes its meaning. 1 to 99 are for whoever uses the core.

use super::{CallError, CallFailure, ConnectError, Refused, SessionEnd};

impl CallError {
    /// The error's number, 101 to 199.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.reason.code()
    }
}

impl CallFailure {
    /// The error's number, 101 to 199.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::BodyChanged => 101,
            Self::Cancelled => 102,
            Self::DeadlineExceeded => 103,
            Self::Dropped => 104,
            Self::Forgotten => 105,
            Self::Refused(_) => 106,
            Self::TooLarge => 107,
            Self::ReplyTooLarge => 108,
            Self::Failed(_) => 109,
            Self::ShuttingDown => 110,
            Self::Overloaded => 111,
            Self::Malformed => 112,
            Self::MalformedParts(_) => 113,
            Self::SessionEnded(end) => end.code(),
        }
    }
}

impl SessionEnd {
    /// The number of this reason, 151 to 199.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::ClosedHere => 151,
            Self::ClosedByPeer(_) => 152,
            Self::Silent(_) => 153,
            Self::Reset => 154,
            Self::Copied => 155,
        }
    }
}

impl ConnectError {
    /// The error's number, 201 to 299.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::IndicesUsedUp => 201,
            Self::NoAnswer(_) => 202,
            Self::NotSmt(_) => 203,
            Self::NoServer => 204,
            Self::Unavailable(_) => 205,
            Self::Version { .. } => 206,
            Self::Handshake { .. } => 207,
            Self::Unfinished { .. } => 208,
            Self::Unproven { .. } => 209,
            Self::TooManySessions(_) => 210,
            Self::Undriven => 211,
            Self::ShutDown => 212,
            Self::Copied => 213,
            Self::NotSent(_) => 214,
            Self::PathTooSmall => 215,
        }
    }
}

impl Refused {
    /// The error's number, 301 to 399.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Blocked => 301,
            Self::NoSession => 302,
            Self::NoRpc => 303,
            Self::TooLarge { .. } => 304,
            Self::Export(_) => 305,
            Self::UsedUp => 306,
            Self::NoParts => 307,
            Self::PartWindowFull => 308,
            Self::Expired => 309,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_errors_have_the_same_number() {
        let codes: BTreeSet<u16> = examples::all().map(|example| example.code).collect();
        assert_eq!(codes.len(), examples::all().count());
    }
}
