// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a group.

use std::path::PathBuf;

use clap::Args;
use smt_mesh::Mesh;
use smt_transform::{Client, Output};
use smt_trusted_process::{Caller, ClientProtocol, Completion, Terms, last_number};

use crate::config::ClientConfig;
use crate::error::ProgramError;

/// A client of a group
#[derive(Args)]
pub struct ClientArguments {
    /// The client's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Gives a request up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    deadline_s: u64,
}

impl ClientArguments {
    /// Makes a request, and returns the answer that f + 1 nodes endorse.
    ///
    /// # Errors
    /// [`ProgramError::Config`], [`ProgramError::Call`]
    pub fn call(&self, operation: impl Into<Vec<u8>>) -> Result<Vec<u8>, ProgramError> {
        let mut answer = Vec::new();
        self.call_all([operation.into()], |it| answer = it)?;
        Ok(answer)
    }

    /// Makes requests one after the other, over the same sessions, and hands out each answer.
    ///
    /// # Errors
    /// [`ProgramError::Config`], [`ProgramError::Call`]
    pub fn call_all(
        &self,
        operations: impl IntoIterator<Item = Vec<u8>>,
        mut answered: impl FnMut(Vec<u8>),
    ) -> Result<(), ProgramError> {
        let config = ClientConfig::read(&self.config)?;
        let terms = Terms {
            operation_max: config.group.group.options.operation,
            tick: config.group.tick,
            deadline_s: self.deadline_s,
        };
        let client = Client::new(config.group.group, config.client, config.key, last_number());
        let mut caller = Caller::open(OfNodes { client, in_progress: None }, &config.place, terms)?;
        for operation in operations {
            answered(caller.call(operation)?);
        }
        Ok(())
    }
}

/// A client of nodes, with one request at a time. Numbers of requests that grow are all that it
/// needs: a nonce and sessions play no part.
struct OfNodes {
    client: Client,
    in_progress: Option<u64>,
}

impl ClientProtocol for OfNodes {
    const MEMBERS: &'static str = "nodes";

    fn begin_session(&mut self, _: [u8; 16], _: u64) -> Option<u64> {
        None
    }

    fn submit(&mut self, _: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        if self.in_progress.is_none() {
            self.in_progress = Some(self.client.submit(operation));
            return self.in_progress;
        }
        None
    }

    fn give_up(&mut self, _: u64) {
        self.in_progress = None;
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<Completion> {
        let answer = self.client.receive(bytes)?;
        Some(Completion { number: self.in_progress.take()?, result: Ok(answer) })
    }

    fn tick(&mut self) {
        self.client.tick();
    }

    fn send(&mut self, mesh: &Mesh) {
        for output in self.client.outputs() {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(..) => {}
            }
        }
    }
}
