// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a subcommand fails: one line on standard error.
//!
//! Any error becomes a [`Failure`] by `?`: its text, and the texts of its sources. Errors that
//! quote their source already are not repeated. The line says whose fault it is, unless the text
//! does; what a command has found (a seed that fails) is nobody's. A reader of standard output that
//! has had enough is no failure.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use smt::{Fault, OpenError};
use smt_wire::Harmless;

use crate::{exit_code, standard_error};

/// Why a subcommand failed, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    /// Whose fault it is, if the text does not say so.
    fault: Option<Fault>,
    is_reader_gone: bool,
    /// Whether the same fails again unless a program or its configuration changes.
    #[cfg_attr(
        not(all(target_os = "linux", feature = "esp")),
        expect(dead_code, reason = "`smt adopt` alone asks")
    )]
    is_lasting: bool,
    exit_code: u8,
}

impl Failure {
    /// The caller's: a failure that no error of a library is behind.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            fault: Some(Fault::Caller),
            is_reader_gone: false,
            is_lasting: false,
            exit_code: exit_code::FAILURE,
        }
    }

    /// Arguments that go without each other, or do not go together: exit code 2, as for those that
    /// are wrong alone.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit_code: exit_code::USAGE, ..Self::new(text) }
    }

    /// One of somebody else.
    pub(crate) fn of(fault: Fault, text: impl Into<String>) -> Self {
        Self { fault: Some(fault), ..Self::new(text) }
    }

    /// The command has done its work, and this has come out: nobody's fault.
    pub(crate) fn finding(text: impl Into<String>) -> Self {
        Self { fault: None, ..Self::new(text) }
    }

    /// One that ends with the exit code of a signal.
    pub(crate) fn by_signal(exit_code: u8, text: impl Into<String>) -> Self {
        Self { exit_code, ..Self::finding(text) }
    }

    /// The same failure with another exit code.
    pub(crate) fn and_exit_code(self, exit_code: u8) -> Self {
        Self { exit_code, ..self }
    }

    /// The same failure, which comes again unless a program or its configuration changes.
    #[cfg(all(target_os = "linux", feature = "esp"))]
    pub(crate) fn and_lasting(self, is_lasting: bool) -> Self {
        Self { is_lasting, ..self }
    }

    /// Whether it is known to come again unless a program or its configuration changes.
    #[cfg(all(target_os = "linux", feature = "esp"))]
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// The exit code with which the process ends.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The same failure with more words behind its text.
    pub(crate) fn and_text(mut self, more: impl Display) -> Self {
        self.text.push_str(&more.to_string());
        self
    }

    /// Tells it, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.is_reader_gone {
            return ExitCode::SUCCESS;
        }
        standard_error::complain(format_args!("smt: {}", self.line()));
        ExitCode::from(self.exit_code)
    }

    /// The text, behind whose fault it is.
    pub(crate) fn line(&self) -> Cow<'_, str> {
        match self.fault.filter(|_| !names_fault(&self.text)) {
            Some(fault) => format!("{fault}: {}", self.text).into(),
            None => (&*self.text).into(),
        }
    }

    /// The text alone.
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
            fault: Some(fault_of(error)),
            is_reader_gone: is_broken_pipe,
            is_lasting: is_lasting(error),
            exit_code: exit_code_of(error),
        }
    }
}

fn exit_code_of(error: &(dyn Error + 'static)) -> u8 {
    let of_open = error.downcast_ref().map(exit_code::of_open_error);
    let of_operation = || error.downcast_ref().map(exit_code::of_error);
    of_open.or_else(of_operation).unwrap_or(exit_code::FAILURE)
}

fn is_lasting(error: &(dyn Error + 'static)) -> bool {
    let of_open = error.downcast_ref().map(|error: &OpenError| !error.is_transient());
    let of_operation = || error.downcast_ref().map(|error: &smt::Error| !error.is_transient());
    of_open.or_else(of_operation).unwrap_or(false)
}

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    /// Puts `what` before the error's text.
    fn doing(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Error + 'static> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| {
            let text = format!("{what}: {}", one_line(&error));
            Failure::of(fault_of(&error), text)
        })
    }
}

/// Whether the text of a library says whose fault it is.
fn names_fault(text: &str) -> bool {
    let faults = [Fault::Caller, Fault::Peer, Fault::Environment, Fault::Limit];
    faults.iter().any(|fault| {
        let prefix = format!("{fault}: ");
        text.starts_with(&prefix) || text.contains(&format!(": {prefix}"))
    })
}

/// Whose fault an error is that does not say so: a file that is not there was named by the caller,
/// as was one that has something else in it.
fn fault_of(error: &(dyn Error + 'static)) -> Fault {
    let errno = error.downcast_ref().copied().map(rustix::io::Errno::kind);
    let kind = error.downcast_ref().map(io::Error::kind).or(errno);
    match kind {
        None
        | Some(
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData,
        ) => Fault::Caller,
        Some(_) => Fault::Environment,
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
    // Some of the words may be another host's.
    Harmless(&text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string()
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
            let hostile = Quiet(io::Error::other("\u{1b}[2Jowned\u{7}"));
            assert_eq!(one_line(&hostile), "outside: \u{fffd}[2Jowned\u{fffd}");
        }
    }

    mod line {
        use super::*;

        #[test]
        fn a_fault_is_told_once_and_a_finding_has_none() {
            let of = |fault, text: &str| Failure::of(fault, text).line().into_owned();
            assert_eq!(of(Fault::Peer, "no reply"), "peer: no reply");
            let told = "connect to db7: peer: no reply";
            assert_eq!(of(Fault::Peer, told), told);
            assert_eq!(Failure::finding("a seed fails").line(), "a seed fails");
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

    mod fault_of {
        use super::*;

        #[test]
        fn what_the_caller_has_named_is_the_callers_and_the_rest_the_environments() {
            let of = |kind: io::ErrorKind| fault_of(&io::Error::from(kind));
            assert_eq!(of(io::ErrorKind::NotFound), Fault::Caller);
            assert_eq!(of(io::ErrorKind::StorageFull), Fault::Environment);
            assert_eq!(fault_of(&rustix::io::Errno::NOENT), Fault::Caller);
            assert_eq!(fault_of(&rustix::io::Errno::IO), Fault::Environment);
        }

        #[test]
        fn a_text_that_says_it_is_left_as_it_is() {
            assert!(names_fault("connect to db7: environment: no server there"));
            assert!(names_fault("limit: too large"));
            assert!(!names_fault("reading environment.pem: No such file"));
        }
    }
}
