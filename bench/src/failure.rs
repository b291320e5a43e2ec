// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a measurement did not come about: a sentence for the person who started it.

use std::fmt;

/// A sentence.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// Says this.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            text.push_str(&format!(": {inner}"));
            source = inner.source();
        }
        Self(text)
    }
}

/// Says what was being done when it failed.
pub(crate) trait Doing<T> {
    /// `what`: "reading the certificate".
    fn doing(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{what}: {}", error.into())))
    }
}
