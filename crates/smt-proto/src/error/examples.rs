// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One of each error, for the tests of what is said of all of them.

use core::time::Duration;
use std::prelude::v1::*;

use smt_record::ExportError;

use super::{
    CallFailure, CloseCode, ConnectError, PartViolation, Refused, SessionEnd, Unavailability,
};
use crate::failure::Failure;
use crate::key_exchange::{FailureKind, Fault};

/// An error, and what is said of it.
pub(super) struct Example {
    pub(super) text: String,
    pub(super) fault: Fault,
    pub(super) code: u16,
    pub(super) is_transient: bool,
}

macro_rules! examples {
    ($errors:expr) => {
        $errors.into_iter().map(|error| Example {
            text: error.to_string(),
            fault: error.fault(),
            code: error.code(),
            is_transient: error.is_transient(),
        })
    };
}

/// One of each error.
pub(super) fn all() -> impl Iterator<Item = Example> {
    examples!(of_calls()).chain(examples!(of_connects())).chain(examples!(of_commands()))
}

fn of_calls() -> Vec<CallFailure> {
    let ends = [
        SessionEnd::ClosedHere,
        SessionEnd::ClosedByPeer(CloseCode::Idle),
        SessionEnd::Silent(Duration::from_secs(1)),
        SessionEnd::Reset,
        SessionEnd::Copied,
    ];
    let mut all = vec![
        CallFailure::BodyChanged,
        CallFailure::Cancelled,
        CallFailure::DeadlineExceeded,
        CallFailure::Dropped,
        CallFailure::Forgotten,
        CallFailure::Failed(Box::new(Failure::failed(5, "the disk is full"))),
        CallFailure::Malformed,
        CallFailure::MalformedParts(PartViolation::Repeated),
        CallFailure::Overloaded,
        CallFailure::Refused(Box::new(Failure::refusal(2, ""))),
        CallFailure::ShuttingDown,
        CallFailure::TooLarge,
        CallFailure::ReplyTooLarge,
    ];
    all.extend(ends.map(CallFailure::SessionEnded));
    all
}

fn of_connects() -> Vec<ConnectError> {
    let after = Duration::from_secs(1);
    vec![
        ConnectError::IndicesUsedUp,
        ConnectError::NoAnswer(after),
        ConnectError::NotSent(after),
        ConnectError::PathTooSmall,
        ConnectError::NotSmt(after),
        ConnectError::NoServer,
        ConnectError::Unavailable(Unavailability::Full),
        ConnectError::Version { ours: 1, theirs: vec![2] },
        ConnectError::Handshake {
            fault: Fault::Peer,
            kind: FailureKind::CertificateRefused,
            text: "expired".to_owned(),
        },
        ConnectError::Unfinished { after, flight: 2 },
        ConnectError::Unproven { after, key_name: b"key".to_vec() },
        ConnectError::TooManySessions(1),
        ConnectError::Undriven,
        ConnectError::ShutDown,
        ConnectError::Copied,
    ]
}

fn of_commands() -> Vec<Refused> {
    vec![
        Refused::Blocked,
        Refused::NoSession,
        Refused::NoRpc,
        Refused::TooLarge { length: 2, limit: 1 },
        Refused::Export(ExportError::Label { len: 0 }),
        Refused::UsedUp,
        Refused::NoParts,
        Refused::PartWindowFull,
        Refused::Expired,
    ]
}
