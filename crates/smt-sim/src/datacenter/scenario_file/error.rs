// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is wrong with a scenario file.

use thiserror::Error;

/// What is wrong with a scenario file: the line, the field, and what is permitted there.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{line}: {text}")]
pub struct ScenarioError {
    /// Counted from 1.
    pub line: usize,
    text: String,
}

impl ScenarioError {
    pub(super) fn new(line: usize, text: String) -> Self {
        Self { line, text }
    }
}
