// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft client`: requests to a replicated service.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smt_bft::{Client, Output};
use smt_mesh::Mesh;
use smt_replica::SigningKey;
use smt_trusted_process::{Caller, ClientProtocol, Completion, Terms};

use crate::bft::config::ClientConfig;
use crate::operation::{ClientError, Operation};

/// Calls a replicated service, and prints the answer that f + 1 replicas give
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
        let mut caller = Caller::open(OfReplicas(client), &config.place, terms)?;
        self.operation.run(config.group.service, &mut caller)
    }
}

/// A client of replicas.
struct OfReplicas(Client);

impl ClientProtocol for OfReplicas {
    const MEMBERS: &'static str = "replicas";

    fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> Option<u64> {
        Some(self.0.begin_session(nonce, session))
    }

    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.0.submit(nonce, operation)
    }

    fn give_up(&mut self, number: u64) {
        self.0.give_up(number);
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        self.0.receive(bytes)
    }

    fn tick(&mut self) {
        self.0.tick();
    }

    fn send(&mut self, mesh: &mut Mesh) {
        for output in self.0.outputs() {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(..) => {}
            }
        }
    }
}
