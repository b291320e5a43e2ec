// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain`.

mod client;
mod config;
mod entry;
mod etcd;
#[cfg(test)]
mod fake_etcd;
mod init;
mod node;
mod reconfigure;
mod sim;

use clap::Subcommand;

use crate::chain::client::ClientArguments;
use crate::chain::init::InitArguments;
use crate::chain::node::NodeArguments;
use crate::chain::sim::SimArguments;
use crate::command_error::CommandError;

pub(crate) use crate::chain::node::NodeError;

#[derive(Subcommand)]
pub(crate) enum ChainCommand {
    Init(InitArguments),
    Node(NodeArguments),
    Client(ClientArguments),
    Sim(SimArguments),
}

impl ChainCommand {
    pub(crate) fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Init(arguments) => arguments.run()?,
            Self::Node(arguments) => arguments.run()?,
            Self::Client(arguments) => arguments.run()?,
            Self::Sim(arguments) => arguments.run()?,
        }
        Ok(())
    }
}
