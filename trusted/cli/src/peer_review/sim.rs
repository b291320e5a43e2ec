// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review sim`.

use clap::Args;
use smt_peer_review::sim::{Scenario, report, run};

use crate::command_error::CommandError;
use crate::search::Seeds;

/// Runs simulations in which nodes of a tree lie, and prints what happened in how many
#[derive(Args)]
pub(crate) struct SimArguments {
    #[command(flatten)]
    seeds: Seeds,
    /// Nodes have journals on disks that lose and tear, and are killed
    #[arg(long)]
    logs: bool,
    /// Liars work together by plans of several steps
    #[arg(long)]
    plans: bool,
}

impl SimArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        let scenario = if self.plans { Scenario::with_plan } else { Scenario::of_seed };
        let report = report(self.logs, self.plans);
        self.seeds.search(report, |seed| run(&scenario(seed).and_logs(self.logs)))
    }
}
