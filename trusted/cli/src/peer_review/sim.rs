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
}

impl SimArguments {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        self.seeds.search(report(), |seed| run(&Scenario::of_seed(seed)))
    }
}
