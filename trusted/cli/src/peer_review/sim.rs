// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review`.

use clap::Subcommand;
use smt_peer_review::sim::{Report, Scenario, run};

use crate::a2m::CommandError;
use crate::search::Search;

#[derive(Subcommand)]
pub(crate) enum PeerReviewCommand {
    /// Runs simulations in which nodes of a tree lie, and prints what happened in how many
    Sim {
        /// The first seed
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// How many seeds
        #[arg(long, default_value_t = 400)]
        count: u64,
    },
}

impl PeerReviewCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let Self::Sim { seed, count } = self;
        let mut report = Report::default();
        for seed in seed..seed.saturating_add(count) {
            report.add(seed, run(&Scenario::of_seed(seed)));
        }
        let violations = report.violations().len();
        Search { report: &report, count, violations, rare: report.rare() }.conclude()
    }
}
