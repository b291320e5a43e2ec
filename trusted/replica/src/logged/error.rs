// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of nodes with logs, by whose fault they are.

use std::convert::Infallible;

use smt_attestor::AttestorError;
use smt_device_client::DeviceError;
use smt_journal::JournalError;

/// Why a node cannot be had from its log, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoggedError<E = Infallible> {
    /// The log cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] AttestorError),
    /// The inputs of the log have other statements than when it was written.
    #[error(
        "the program: on the inputs of its log it makes other statements than before, up to \
         statement {0}: it was changed, or depends on more than its inputs, or the group's secret \
         is another one"
    )]
    OtherStatements(u64),
    /// The node has no snapshot with which a log could begin.
    #[error("the node has no snapshot, or has failed: its log is not begun anew")]
    NoSnapshot,
    /// The node ends for a reason of its own.
    #[error(transparent)]
    Node(E),
}

impl<E> From<DeviceError> for LoggedError<E> {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.into())
    }
}
