// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft`.

mod client;
mod config;
mod init;
mod replica;
mod sim;

use clap::Subcommand;

use crate::bft::client::ClientArguments;
use crate::bft::init::InitArguments;
use crate::bft::replica::ReplicaArguments;
use crate::bft::sim::SimArguments;
use crate::command_error::CommandError;

pub(crate) use crate::bft::replica::ReplicaError;

#[derive(Subcommand)]
pub(crate) enum BftCommand {
    Init(InitArguments),
    Replica(ReplicaArguments),
    Client(ClientArguments),
    Sim(SimArguments),
}

impl BftCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init(arguments) => arguments.run()?,
            Self::Replica(arguments) => arguments.run()?,
            Self::Client(arguments) => arguments.run()?,
            Self::Sim(arguments) => arguments.run()?,
        }
        Ok(())
    }
}
