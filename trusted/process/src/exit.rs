// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a program that has failed.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

/// Tells an error on standard error, and those behind it in lines of their own.
pub fn failure(
    program: &str,
    error: &impl Display,
    mut cause: Option<&(dyn Error + 'static)>,
) -> ExitCode {
    eprintln!("{program}: {error}");
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
    ExitCode::FAILURE
}
