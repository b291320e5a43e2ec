// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a process of the kit: all of them end it.

use std::fmt::Display;

use thiserror::Error;

/// A thing that could not be done, and why.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// A failure in these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Adds to an error what was being done.
pub trait Doing<T> {
    /// `what` is a clause such as "binding the socket".
    ///
    /// # Errors
    /// The error, behind `what`.
    fn doing(self, what: &str) -> Result<T, Failure>;
}

impl<T, E: Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
