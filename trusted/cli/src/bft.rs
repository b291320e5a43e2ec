// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft`.

use std::io::{self, Write};

use clap::Subcommand;
use smt_bft::sim::{Report, Scenario, run};

use crate::a2m::CommandError;

#[derive(Subcommand)]
pub(crate) enum BftCommand {
    /// Runs simulations in which replicas and clients lie, and prints what happened in how many
    Sim {
        /// The first seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// How many seeds
        #[arg(long, default_value_t = 400)]
        count: u64,
    },
}

impl BftCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let Self::Sim { seed, count } = self;
        let mut report = Report::default();
        for seed in seed..seed.saturating_add(count) {
            report.add(seed, run(&Scenario::of_seed(seed)));
        }
        writeln!(io::stdout().lock(), "{report}")?;
        // Few runs cannot tell what is rare.
        let rare = if count < 400 { Vec::new() } else { report.rare() };
        if report.violations().is_empty() && rare.is_empty() {
            return Ok(());
        }
        let violations = report.violations().len();
        Err(CommandError::Search { violations, rare: format!("{rare:?}") })
    }
}
