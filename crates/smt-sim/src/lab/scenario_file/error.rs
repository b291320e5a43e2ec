// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The errors in a scenario file.

use thiserror::Error;

/// An error in a scenario file: the line, the field, and what is permitted there.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{line}: {text}")]
pub struct ScenarioError {
    /// Counted from 1.
    pub line: usize,
    text: String,
}

impl ScenarioError {
    /// Control characters are told as in a program: `text` quotes a file that somebody else may
    /// have written.
    pub(super) fn new(line: usize, text: String) -> Self {
        let text = text.chars().map(told).collect();
        Self { line, text }
    }
}

fn told(character: char) -> String {
    match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    }
}
