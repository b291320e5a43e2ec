// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted transform sim`.

use clap::Args;
use smt_transform::sim::{Report, Scenario, run};

use crate::command_error::CommandError;
use crate::search::Search;

/// Runs simulations in which nodes and clients lie, and prints what happened in how many
#[derive(Args)]
pub(crate) struct SimArguments {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 400)]
    count: u64,
    /// Nodes have logs on disks that lose and tear, and are killed
    #[arg(long)]
    logs: bool,
}

impl SimArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut report = match self.logs {
            true => Report::with_logs(),
            false => Report::default(),
        };
        for seed in self.seed..self.seed.saturating_add(self.count) {
            let scenario = match self.logs {
                true => Scenario::with_logs(seed),
                false => Scenario::of_seed(seed),
            };
            report.add(seed, run(&scenario));
        }
        let violations = report.violations().len();
        Search { report: &report, count: self.count, violations, rare: report.rare() }.conclude()
    }
}
