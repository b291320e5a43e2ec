// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim scenarios`: the scenarios that come along.

use std::io::Write;

use clap::Args;
use smt_sim::lab::{Named, ScenarioFile};

use crate::failure::{Doing, Failure};
use crate::standard_output::standard_output;

/// List the scenarios that come along, for smt sim run
///
/// smt sim run NAME --show prints one as a file with comments, to copy and to change.
#[derive(Args, Debug)]
pub(super) struct Arguments {}

/// Runs the subcommand.
pub(super) fn run(_: &Arguments) -> Result<(), Failure> {
    let mut output = standard_output();
    for Named { name, text } in Named::ALL {
        let about = ScenarioFile::parse(text).doing(name)?.about;
        writeln!(output, "{name:<12} {about}")?;
    }
    Ok(())
}
