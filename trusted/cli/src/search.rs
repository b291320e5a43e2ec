// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A search by simulations.

use std::fmt::Debug;
use std::io::{self, Write};

use clap::Args;
use smt_replica::sim::{Outcome, Report};

use crate::command_error::CommandError;

/// The seeds of a search
#[derive(Args)]
pub(crate) struct Seeds {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 400)]
    count: u64,
}

impl Seeds {
    /// Runs each seed, and prints the table. Fails on a violation, and on what is rare among 400
    /// seeds or more: few cannot tell.
    pub(crate) fn search<V: Debug>(
        &self,
        mut report: Report<V>,
        run: impl Fn(u64) -> Outcome<V>,
    ) -> Result<(), CommandError> {
        for seed in self.seed..self.seed.saturating_add(self.count) {
            report.add(seed, run(seed));
        }
        writeln!(io::stdout().lock(), "{report}")?;
        let rare = if self.count < 400 { Vec::new() } else { report.rare() };
        let violations = report.violations().len();
        if violations == 0 && rare.is_empty() {
            return Ok(());
        }
        Err(CommandError::Search { violations, rare: rare.join(", ") })
    }
}
