// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted transform`. Nodes are programs of their own: they have a protocol of their user.

mod call;
mod sim;

use clap::Subcommand;
use smt_transform_process::InitArguments;

use crate::command_error::CommandError;
use crate::transform::call::CallArguments;
use crate::transform::sim::SimArguments;

#[derive(Subcommand)]
pub(crate) enum TransformCommand {
    Init(InitArguments),
    Call(CallArguments),
    Sim(SimArguments),
}

impl TransformCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init(arguments) => arguments.run()?,
            Self::Call(arguments) => arguments.run()?,
            Self::Sim(arguments) => arguments.run()?,
        }
        Ok(())
    }
}
