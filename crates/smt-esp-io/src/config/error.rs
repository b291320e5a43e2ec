// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of a configuration file, each with its place.

use std::io;

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("caller: cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// Others may read the keys in the file.
    #[error("caller: {file} has keys and others may read it: chmod 600 {file}")]
    Exposed {
        /// The file.
        file: String,
    },
    /// A field is not as it may be.
    #[error("caller: {file}:{line}: {field}: {reason}")]
    Field {
        /// The file.
        file: String,
        /// The line, from 1 on.
        line: usize,
        /// The field.
        field: String,
        /// The reason, in words.
        reason: String,
    },
}

/// A file that is being checked.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a str,
}

impl Place<'_> {
    /// Something is wrong at a byte of the file.
    pub(super) fn at(&self, byte: usize, field: String, reason: String) -> ConfigError {
        ConfigError::Field {
            file: self.file.to_owned(),
            line: line_of(self.text, byte),
            field,
            reason,
        }
    }

    /// Something is wrong in the first line that sets `key`.
    pub(super) fn of_field(&self, key: &str, field: &str, reason: String) -> ConfigError {
        let sets = |line: &str| line.split('=').next().is_some_and(|before| before.trim() == key);
        let line = self.text.lines().position(sets).unwrap_or(0);
        ConfigError::Field {
            file: self.file.to_owned(),
            line: line + 1,
            field: field.to_owned(),
            reason,
        }
    }
}

impl ConfigError {
    pub(super) fn of_toml(error: &toml::de::Error, text: &str, file: &str) -> Self {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        let words = text.lines().nth(line - 1).unwrap_or_default().trim();
        // The words behind `=` may be a key.
        let field = words.split('=').next().unwrap_or_default().trim();
        Self::Field {
            file: file.to_owned(),
            line,
            field: if field.is_empty() { "the file" } else { field }.to_owned(),
            reason: error.message().lines().collect::<Vec<_>>().join(" "),
        }
    }
}

fn line_of(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.matches('\n').count() + 1
}
