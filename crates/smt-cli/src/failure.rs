// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a subcommand fails: one line on standard error.
//!
//! Any error becomes a [`Failure`] by `?`: its text, and the texts of its sources. Errors that
//! quote their source already are not repeated. A reader of standard output that has had enough is
//! no failure.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::standard_error;

/// Why a subcommand failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    is_reader_gone: bool,
    exit_code: u8,
}

impl Failure {
    /// A failure that no error of a library is behind.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_reader_gone: false,
            exit_code: EXIT_FAILURE,
        }
    }

    /// Arguments that go without each other, or do not go together: exit code 2, as for those that
    /// are wrong alone.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            exit_code: EXIT_USAGE,
            ..Self::new(text)
        }
    }

    /// One that ends with an exit code of its own: that of a signal, for example.
    pub(crate) fn with_exit_code(exit_code: u8, text: impl Into<String>) -> Self {
        Self {
            exit_code,
            ..Self::new(text)
        }
    }

    /// Tells it, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.is_reader_gone {
            return ExitCode::SUCCESS;
        }
        standard_error::complain(format_args!("smt: {}", self.text));
        ExitCode::from(self.exit_code)
    }

    /// The line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: &(dyn Error + 'static) = &error;
        let is_broken_pipe = error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        Self {
            text: one_line(error),
            is_reader_gone: is_broken_pipe,
            exit_code: match error.downcast_ref().is_some_and(is_malformed_address) {
                true => EXIT_USAGE,
                false => EXIT_FAILURE,
            },
        }
    }
}

/// Whether an address can be none of any host. One that does not resolve may do so another time.
fn is_malformed_address(error: &smt::OpenError) -> bool {
    matches!(error, smt::OpenError::Address { reason, .. } if reason.kind() == io::ErrorKind::InvalidInput)
}

const EXIT_FAILURE: u8 = 1;
/// As clap ends for wrong arguments.
const EXIT_USAGE: u8 = 2;

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    /// Puts `what` before the error's text.
    fn doing(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Error> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(format!("{what}: {}", one_line(&error))))
    }
}

/// The error's text and those of its sources, without repetitions and line breaks.
fn one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outside")]
    struct Quiet(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("outside: {0}")]
    struct Quoting(#[source] io::Error);

    mod one_line {
        use super::*;

        #[test]
        fn a_source_is_told_once() {
            let inside = || io::Error::other("in\nside");
            assert_eq!(one_line(&Quiet(inside())), "outside: in side");
            assert_eq!(one_line(&Quoting(inside())), "outside: in side");
        }
    }

    mod from {
        use super::*;

        #[test]
        fn only_a_reader_that_is_gone_is_forgiven() {
            let of = |kind: io::ErrorKind| Failure::from(io::Error::from(kind)).is_reader_gone;
            assert!(of(io::ErrorKind::BrokenPipe));
            assert!(!of(io::ErrorKind::NotFound));
        }
    }
}
