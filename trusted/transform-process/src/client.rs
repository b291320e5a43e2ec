// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a group.

use std::path::PathBuf;

use clap::Args;
use smt_mesh::Mesh;
use smt_replica::first_number;
use smt_transform::{Client, Output};
use smt_trusted_process::{Caller, ClientProtocol, Completion, Terms};

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
    /// Requests that are in progress at a time, up to 32
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = 1..=32)]
    in_progress: i64,
}

impl ClientArguments {
    /// Makes a request, and returns the answer that f + 1 nodes endorse.
    ///
    /// # Errors
    /// [`ProgramError::Config`], [`ProgramError::Call`]
    pub fn call(&self, operation: impl Into<Vec<u8>>) -> Result<Vec<u8>, ProgramError> {
        let mut answer = Vec::new();
        self.call_all([operation.into()], |_, it| answer = it)?;
        Ok(answer)
    }

    /// Makes requests over the same sessions, as many at a time as the user wants, and hands out
    /// each answer as it comes, with the place of its operation, from 0.
    ///
    /// # Errors
    /// [`ProgramError::Config`], [`ProgramError::Call`]
    pub fn call_all(
        &self,
        operations: impl IntoIterator<Item = Vec<u8>>,
        mut answered: impl FnMut(usize, Vec<u8>),
    ) -> Result<(), ProgramError> {
        let config = ClientConfig::read(&self.config)?;
        let group = config.group.group;
        let terms = Terms {
            operation_max: group.options.operation,
            tick: config.group.tick,
            deadline_s: self.deadline_s,
        };
        // The random bytes of the process come with its first session.
        let client = Client::new(&group, config.client, config.key, ([0; 16], 0));
        let mut caller = Caller::open(OfNodes(client), &config.place, terms)?;
        let in_progress = usize::try_from(self.in_progress).unwrap_or(1);
        caller.call_all(operations, in_progress, |place, answer| {
            answered(place, answer);
            Ok(())
        })
    }
}

/// A client of nodes. Nodes keep no sessions: a process is known by random bytes of its own.
struct OfNodes(Client);

impl ClientProtocol for OfNodes {
    const MEMBERS: &'static str = "nodes";

    fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> Option<u64> {
        self.0.begin_process((nonce, first_number(session)));
        None
    }

    fn submit(&mut self, _: [u8; 16], operation: Vec<u8>) -> Option<u64> {
        self.0.submit(operation)
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
