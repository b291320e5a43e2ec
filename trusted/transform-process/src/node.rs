// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node as a process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use smt_journal::FileDisk;
use smt_mesh::{Member, Mesh, messages};
use smt_replica::Logged;
use smt_transform::{Message, Node, Output, Protocol};
use smt_trusted_process::{LogArguments, Process, State, System, Taken, log_path};

use crate::config::NodeConfig;
use crate::error::ProgramError;

/// Runs a node
///
/// It ends on SIGTERM or SIGINT. A node that was killed goes on where its log ends.
#[derive(Args)]
pub struct NodeArguments {
    /// The node's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Appends a line of JSON with the node's numbers to this file, each ten seconds and at the end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    #[command(flatten)]
    log: LogArguments,
}

/// Messages of a client's packet that are looked at. A process has 32 requests in progress, and
/// each may cost the verification of a signature.
const OF_CLIENT_MAX: usize = 64;

impl NodeArguments {
    /// Runs a node until a signal asks for the end. `protocol` makes a new run of the protocol, for
    /// a node of a group of so many: its arguments are the node's number and the number of nodes.
    ///
    /// # Errors
    /// [`ProgramError`]
    pub fn run<P: Protocol>(self, protocol: impl Fn(u32, u32) -> P) -> Result<(), ProgramError> {
        self.log.install().map_err(ProgramError::Log)?;
        let NodeConfig { group, identity, state: directory, place } =
            NodeConfig::read(&self.config)?;
        let process = Process::begin(self.metrics.as_deref())?;
        let of_state = |error| ProgramError::of_state(&directory, error);
        let State { epoch, log } = State::open(&directory, None).map_err(of_state)?;
        if epoch != 1 {
            let directory = directory.display().to_string();
            return Err(ProgramError::Epoch { directory, epoch });
        }
        let (own, nodes, began) = (identity.device, group.group.size(), Instant::now());
        let core = Node::open(group.group, identity, |it| protocol(it, nodes), log);
        let core =
            core.map_err(|error| ProgramError::of_log(&log_path(&directory, epoch), error))?;
        State::begun(&directory, epoch).map_err(of_state)?;
        let (inputs, ms) = (core.replayed(), began.elapsed().as_millis());
        tracing::info!(inputs, ms, steps = core.node().taken(own), "log read");
        tracing::info!("a kernel in this process attests: who reads its memory can forge");
        let node = ProtocolNode { core, own, nodes, faulty: BTreeSet::new() };
        process.run(&place, group.tick, || node)
    }
}

/// A node, and what its log was told of it.
struct ProtocolNode<P: Protocol> {
    core: Logged<Node<P>, FileDisk>,
    own: u32,
    nodes: u32,
    /// The nodes that were told to be faulty.
    faulty: BTreeSet<u32>,
}

impl<P: Protocol> System for ProtocolNode<P> {
    type Error = ProgramError;

    /// Members cannot speak for each other where that would matter: what they say is attested or
    /// signed, and questions name the node that gets the answer.
    fn take(&mut self, from: Member, packet: &[u8]) -> Taken {
        let mut taken = Taken::default();
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            taken.count += 1;
            let may_say = match (from, Message::decode(message)) {
                (Member::Replica(own), Some(Message::Status(status))) => status.from == own,
                (Member::Replica(_), Some(Message::Step(_))) => true,
                (Member::Client(_), _) if taken.count > OF_CLIENT_MAX => false,
                (Member::Client(own), Some(Message::Request(it))) => it.client == own,
                _ => false,
            };
            match may_say {
                true => self.core.receive(message),
                false => taken.refused += 1,
            }
        }
        taken
    }

    fn tick(&mut self) {
        self.core.tick();
    }

    fn commit(&mut self, mesh: &mut Mesh) -> Result<(), ProgramError> {
        for output in self.core.commit()? {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(to, bytes) => mesh.to_client(to, bytes),
            }
        }
        for node in self.core.node().faulty() {
            if self.faulty.insert(node) {
                tracing::warn!(node, "this node has made a step that the protocol does not make");
            }
        }
        Ok(())
    }

    fn numbers(&self) -> serde_json::Value {
        let node = self.core.node();
        let steps: Vec<_> = (0..self.nodes).map(|it| node.taken(it)).collect();
        serde_json::json!({
            "node": self.own,
            "steps": steps,
            "faulty": self.faulty,
            "log_bytes": self.core.log_length(),
        })
    }
}
