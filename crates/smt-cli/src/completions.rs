// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt completions`: a script by which a shell completes command lines.

use std::io::Write;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::standard_output::standard_output;

/// Print a script that completes smt's command lines
///
/// For bash: smt completions bash > ~/.local/share/bash-completion/completions/smt
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = crate::arguments::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "smt", &mut script);
    Ok(standard_output().write_all(&script)?)
}
