// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft sim`.

use clap::Args;
use smt_bft::sim::{Report, Scenario, run};

use crate::command_error::CommandError;
use crate::search::Search;

/// Runs simulations in which replicas and clients lie, and prints what happened in how many
#[derive(Args)]
pub(crate) struct SimArguments {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 400)]
    count: u64,
    /// Replicas have logs on disks that lose and tear, and are killed
    #[arg(long)]
    logs: bool,
    /// Liars work together by plans of several steps
    #[arg(long)]
    plans: bool,
}

impl SimArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let mut report = Report::default();
        for seed in self.seed..self.seed.saturating_add(self.count) {
            let mut scenario = match self.plans {
                true => Scenario::with_plan(seed),
                false => Scenario::of_seed(seed),
            };
            scenario.has_logs = self.logs;
            report.add(seed, run(&scenario));
        }
        let violations = report.violations().len();
        Search { report: &report, count: self.count, violations, rare: report.rare() }.conclude()
    }
}
