// SPDX-License-Identifier: Apache-2.0 OR MIT
//! docs/PERFORMANCE.md: what a user asks first, measured by `run --page` and written by `page`.
//!
//! 1. `comparisons` lists what is compared, and thereby what `run --page` measures.
//! 2. `text` makes the page from the JSON of one or more runs.

mod comparisons;
mod text;

use std::path::{Path, PathBuf};

use clap::Args;

pub(crate) use comparisons::{LOAD_CALLERS, LOAD_SIZES, SCENARIOS, SIZES, is_compared, is_peer};

use crate::failure::{Doing, Failure};
use crate::report;
use crate::results::Results;

/// Write docs/PERFORMANCE.md and its plots from the JSON of `run --page`
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// The JSON of runs, a file for each machine
    #[arg(value_name = "JSON", required = true)]
    files: Vec<PathBuf>,
    /// The directory of the page
    #[arg(long, value_name = "DIRECTORY", default_value = "docs")]
    into: PathBuf,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runs = arguments.files.iter().map(|path| Results::read(path));
    let runs: Vec<Results> = runs.collect::<Result<_, _>>()?;
    for (number, results) in runs.iter().enumerate() {
        if let Some(plot) = report::round_trips(results) {
            write(&arguments.into.join(text::plot_name(number)), &plot)?;
        }
    }
    write(&arguments.into.join("PERFORMANCE.md"), &text::page(&runs))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).doing(&format!("writing {}", path.display()))
}
