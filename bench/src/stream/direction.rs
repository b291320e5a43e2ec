// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The direction of a stream.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// As the client sees it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
pub(crate) enum Direction {
    /// The reply has parts
    Download,
    /// The request has parts
    Upload,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}
