// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review sim`.

use clap::Args;
use smt_peer_review::sim::{Report, Scenario, run};

use crate::command_error::CommandError;
use crate::search::Search;

/// Runs simulations in which nodes of a tree lie, and prints what happened in how many
#[derive(Args)]
pub(crate) struct SimArguments {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 400)]
    count: u64,
}

impl SimArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut report = Report::default();
        for seed in self.seed..self.seed.saturating_add(self.count) {
            report.add(seed, run(&Scenario::of_seed(seed)));
        }
        let violations = report.violations().len();
        Search { report: &report, count: self.count, violations, rare: report.rare() }.conclude()
    }
}
