// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim report`: results of scenarios as one page, side by side.
//!
//! 1. Results are read, from files that `smt sim run --results` has written.
//! 2. Each becomes a column of plots (`figures`); all plots of a row have one scale.
//! 3. The page (`page`) contains all of it, drawn and written by `smt-report`.

mod figures;
mod page;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::SCHEMA;
use super::outcome::{KIND, Outcome};
use crate::failure::{Doing, Failure};
use crate::standard_output::standard_output;
use crate::time_span;

/// Make a page with plots from results: slowdown by size, queues and goodput, side by side
///
/// Results are made with: smt sim run SCENARIO --results FILE. The page is one HTML file that needs
/// nothing else.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Results, in the order of the columns
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Write the page here instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut outcomes = Vec::new();
    for path in &arguments.results {
        outcomes.extend(read(path)?);
    }
    if outcomes.len() > COLUMNS_MAX {
        let count = outcomes.len();
        return Err(Failure::new(format!(
            "{count} results are more than the {COLUMNS_MAX} that fit side by side"
        )));
    }
    tell_apart(&mut outcomes);
    let page = page::html(&outcomes);
    match &arguments.out {
        Some(path) => Ok(std::fs::write(path, page).doing(format!("writing {}", path.display()))?),
        None => Ok(standard_output().write_all(page.as_bytes())?),
    }
}

/// Gives those of the same title the seed as well, and the duration if that does not tell them
/// apart.
fn tell_apart(outcomes: &mut [Outcome]) {
    let further: [fn(&Outcome) -> String; 2] = [
        |outcome| format!(" (seed {})", outcome.seed),
        |outcome| format!(" ({})", time_span::display(Duration::from_nanos(outcome.duration_ns))),
    ];
    for further in further {
        let titles: Vec<String> = outcomes.iter().map(Outcome::title).collect();
        for (outcome, title) in outcomes.iter_mut().zip(&titles) {
            if titles.iter().filter(|other| *other == title).count() > 1 {
                outcome.name += &further(outcome);
            }
        }
    }
}

/// The results in a file, one a line.
fn read(path: &Path) -> Result<Vec<Outcome>, Failure> {
    let text = std::fs::read_to_string(path).doing(format!("reading {}", path.display()))?;
    let lines = text.lines().enumerate();
    let outcomes = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(place, line)| {
            let wrong = |why: &str| {
                let (path, line) = (path.display(), place + 1);
                Failure::new(format!(
                    "{path}:{line}: this is no result of smt sim run --results: {why}"
                ))
            };
            let outcome: Outcome =
                serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            if (outcome.schema, outcome.kind.as_str()) != (SCHEMA, KIND) {
                let Outcome { schema, kind, .. } = outcome;
                return Err(wrong(&format!("it is {kind:?} of schema {schema}")));
            }
            Ok(outcome)
        })
        .collect::<Result<Vec<_>, _>>()?;
    if outcomes.is_empty() {
        return Err(Failure::new(format!("{} is empty", path.display())));
    }
    Ok(outcomes)
}

/// More columns could not be read.
const COLUMNS_MAX: usize = 16;
