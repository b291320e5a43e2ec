// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A crash-tolerant counter, unchanged, on nodes of which some may lie.

use std::process::ExitCode;

use clap::Parser;
use smt_transform::counter::Counter;
use smt_transform_process::{ClientArguments, InitArguments, NodeArguments, exit_code};

/// A counter on 2f + 1 nodes, of which f may lie
#[derive(Parser)]
enum Command {
    Init(InitArguments),
    Node(NodeArguments),
    /// Adds to the counter, and prints the sum
    Add {
        #[command(flatten)]
        client: ClientArguments,
        /// The numbers to add
        numbers: Vec<u64>,
    },
}

fn main() -> ExitCode {
    exit_code(match Command::parse() {
        Command::Init(arguments) => arguments.run(),
        Command::Node(arguments) => arguments.run(Counter::new),
        Command::Add { client, numbers } => {
            let operations = numbers.into_iter().map(|it| it.to_be_bytes().to_vec());
            client.call_all(operations, |_, answer| {
                println!("{}", answer.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
            })
        }
    })
}
