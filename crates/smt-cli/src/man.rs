// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt man`: manual pages, one for each subcommand.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::failure::{Doing, Failure};
use crate::standard_output::standard_output;

/// Write smt's manual pages
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Write a page for each subcommand into this directory; without it the main page is printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let command = crate::arguments::Arguments::command();
    match &arguments.out {
        Some(directory) => std::fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory))
            .doing(format!("writing manual pages to {}", directory.display())),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Ok(standard_output().write_all(&page)?)
        }
    }
}
