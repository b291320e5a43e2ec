// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review`.

mod config;
mod init;
mod input;
mod node;
mod output;
mod sim;
mod verify;

use clap::Subcommand;

use crate::command_error::CommandError;
use crate::peer_review::init::InitArguments;
use crate::peer_review::node::NodeArguments;
use crate::peer_review::sim::SimArguments;
use crate::peer_review::verify::VerifyArguments;

pub(crate) use crate::peer_review::node::ReviewedError;
pub(crate) use crate::peer_review::verify::VerifyError;

#[derive(Subcommand)]
pub(crate) enum PeerReviewCommand {
    Init(InitArguments),
    Node(NodeArguments),
    Verify(VerifyArguments),
    Sim(SimArguments),
}

impl PeerReviewCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init(arguments) => arguments.run()?,
            Self::Node(arguments) => arguments.run()?,
            Self::Verify(arguments) => arguments.run()?,
            Self::Sim(arguments) => arguments.run()?,
        }
        Ok(())
    }
}
