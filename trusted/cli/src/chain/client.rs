// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain client`: requests to a chain.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smt_chain::{Client, Output};
use smt_mesh::Mesh;
use smt_replica::SigningKey;
use smt_trusted_process::{Caller, ClientProtocol, Completion, Terms};

use crate::chain::config::ClientConfig;
use crate::operation::{ClientError, Operation};

/// Calls a chain, and prints the answer that f + 1 nodes give
#[derive(Args)]
pub(crate) struct ClientArguments {
    /// The client's configuration file
    #[arg(long)]
    config: PathBuf,
    /// Gives a request up after so many seconds
    #[arg(long, default_value_t = 60)]
    deadline_s: u64,
    #[command(subcommand)]
    operation: Operation,
}

impl ClientArguments {
    pub(crate) fn run(self) -> Result<(), ClientError> {
        let config = ClientConfig::read(&self.config)?;
        let terms = Terms {
            operation_max: config.group.group.options.operation,
            tick: Duration::from_millis(config.group.tick_ms.into()),
            deadline_s: self.deadline_s,
        };
        let key = SigningKey::from_bytes(&config.signing_key);
        let client = Client::new(config.group.group, config.client, key, 0);
        let finder = HeadFinder { client, knows_head: false };
        let mut caller = Caller::open(finder, &config.place, terms)?;
        self.operation.run(config.group.service, &mut caller)
    }
}

/// A client that does not ask the service of configurations: its first request goes to all nodes,
/// and the answers tell where the head is.
struct HeadFinder {
    client: Client,
    knows_head: bool,
}

impl ClientProtocol for HeadFinder {
    const MEMBERS: &'static str = "nodes";

    fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> Option<u64> {
        Some(self.client.begin_session(nonce, session))
    }

    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.client.submit(nonce, operation)
    }

    fn give_up(&mut self, number: u64) {
        self.client.give_up(number);
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        let answer = self.client.receive(bytes);
        self.knows_head |= answer.is_some();
        answer
    }

    fn tick(&mut self) {
        self.client.tick();
    }

    fn send(&mut self, mesh: &mut Mesh) {
        for output in self.client.outputs() {
            match output {
                Output::Node(to, bytes) if self.knows_head => mesh.to_replica(to, bytes),
                Output::Node(_, bytes) | Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(..) | Output::Host(_) => {}
            }
        }
    }
}
