// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of the library's interfaces is measured.

use clap::ValueEnum;
use serde::Serialize;

/// How calls are made, or requests answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Api {
    /// A thread for each concurrent call
    Blocking,
    /// A task for each concurrent call, on one thread
    Tokio,
}

impl Api {
    /// The fastest interface for `concurrency` calls at once. A call alone is one send and one
    /// receive in the caller's own thread if that blocks; a hundred threads wake each other up for
    /// each reply, tasks do not.
    pub(super) fn suited_to(concurrency: usize) -> Self {
        if concurrency == 1 { Self::Blocking } else { Self::Tokio }
    }

    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Tokio => "tokio",
        }
    }
}
