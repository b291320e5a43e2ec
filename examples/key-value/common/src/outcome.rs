// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways in which an operation ends without its result.

use std::fmt;

/// The service refuses an operation, which has no effect.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// A number of gRPC's `google.rpc.Code`, which every library here can carry.
    pub code: u32,
    /// The cause in words.
    pub text: String,
}

impl Refusal {
    /// An argument is not acceptable.
    pub const INVALID_ARGUMENT: u32 = 3;
    /// The caller may not do this.
    pub const PERMISSION_DENIED: u32 = 7;
}

/// An operation as its client sees it fail.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The service refused it.
    Refused(Refusal),
    /// The deadline passed.
    DeadlineExceeded,
    /// It did not run, for this reason.
    DidNotRun(String),
    /// It may have run; the reason.
    MayHaveRun(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(Refusal { code, text }) => write!(f, "refused {code}: {text}"),
            Self::DeadlineExceeded => f.write_str("deadline exceeded"),
            Self::DidNotRun(reason) => write!(f, "did not run: {reason}"),
            Self::MayHaveRun(reason) => write!(f, "may have run: {reason}"),
        }
    }
}
