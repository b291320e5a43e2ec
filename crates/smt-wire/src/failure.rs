// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mark of a reply by which the application says that the request has failed (SPEC §5.2).
//!
//! The mark is two flags and the u32 that is the deadline of other messages.

/// A reply's mark: the request has failed, and the application bytes say why.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FailureMark {
    /// The application's own number for the cause.
    pub code: u32,
    /// Whether the application says that the request did not run.
    pub not_run: bool,
}
