// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain node`: a node as a process.
//!
//! One more thread than other systems have speaks with etcd: the chain does not wait for it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_chain::{Configuration, Identity, Message, Node, Output};
use smt_journal::{FileDisk, JournalError, SnapshotLog};
use smt_mesh::{Member, Mesh, messages};
use smt_replica::{AnyService, AttestorError, Logged, LoggedError, OwnDevice, SigningKey};
use smt_trusted_process::{
    ConfigError, NewLog, Process, ProcessError, State, StateError, System, Taken, log_path,
};

use crate::chain::config::NodeConfig;
use crate::chain::etcd::Etcd;
use crate::chain::reconfigure::Reconfiguration;
use crate::own_device::{DeviceConfig, OwnDeviceError};

/// Runs a node
#[derive(Args)]
pub(crate) struct NodeArguments {
    /// The node's configuration file
    #[arg(long)]
    config: PathBuf,
    /// Appends a line of JSON with the node's numbers to this file, each ten seconds and at the end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// Why a node does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    State(StateError),
    /// The directory is none of a node.
    #[error(
        "your files: {0} is not the directory that `chain init` has made for this node: is `state` \
         right, and the disk mounted? If the directory is lost, the node must stay off, as one of \
         the f nodes that may fail"
    )]
    Missing(String),
    /// The log is of another node, or its configuration was changed.
    #[error(
        "your files: {0} was written under another configuration, or by another version: `node`, \
         `stream`, `service`, the `reply_key` and `epoch` of each node, the clients with their \
         keys, and the options `operation_bytes`, `window`, `retained` and `timeout_ticks` must be \
         as they were"
    )]
    OtherOwner(String),
    /// The log is lost, and the node's counter with it.
    #[error(
        "your files: {0} has no log of this node any more, and a node without its log would say \
         another thing under a counter that it has used: leave it off, as one of the f nodes that \
         may fail, and form a new group when you can"
    )]
    Lost(String),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] OwnDeviceError),
    /// The log was restored or lost, or the device was started again.
    #[error(
        "{0}. A node of a chain has no further epochs: leave it off, as one of the f nodes that may \
         fail, and form a new group when you can. In a new group its `[[nodes]]` entry has the \
         `epoch` of its device"
    )]
    Ended(OwnDeviceError),
    /// The new log has not the name of the old one.
    #[error("the operating system: {} cannot be replaced", .0.display())]
    NewLog(PathBuf, #[source] io::Error),
    /// The process does not begin.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A part of the log is damaged.
    #[error("{0}; leave this node off, as one of the f nodes that may fail")]
    Damaged(JournalError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(LoggedError),
}

impl NodeError {
    /// The error of a log that cannot be opened.
    fn of_log(path: &Path, error: LoggedError) -> Self {
        match error {
            LoggedError::Journal(JournalError::OtherOwner) => {
                Self::OtherOwner(path.display().to_string())
            }
            error => error.into(),
        }
    }
}

impl From<LoggedError> for NodeError {
    fn from(error: LoggedError) -> Self {
        match error {
            LoggedError::Journal(error @ JournalError::Damaged(_)) => Self::Damaged(error),
            LoggedError::Device(error @ AttestorError::Device(_)) => Self::Device(error.into()),
            LoggedError::Device(error) => Self::Ended(error.into()),
            error => Self::Log(error),
        }
    }
}

/// Messages of a client's packet that are looked at. A client has one request at a time, and each
/// may cost the verification of a signature.
const OF_CLIENT_MAX: usize = 64;
/// Requests and configurations of a node's packet that are looked at: each costs the verification
/// of signatures, and a node that has more sends them again.
const OF_NODE_MAX: usize = 1024;

impl NodeArguments {
    pub(crate) fn run(self) -> Result<(), NodeError> {
        let config = NodeConfig::read(&self.config)?;
        let process = Process::begin(self.metrics.as_deref())?;
        let (core, log) = open_core(&config)?;
        let etcd = Etcd::new(config.group.etcd.clone());
        let poll = Duration::from_millis(config.group.etcd.poll_ms.into());
        let accused = core.node().accusation();
        let own = (config.node, SigningKey::from_bytes(&config.signing_key), accused);
        let known = (config.group.group.clone(), core.node().made().cloned());
        let begin = || ChainNode {
            own: config.node,
            nodes: config.group.group.replicas,
            configuration: core.node().metrics().configuration,
            core,
            service: Reconfiguration::start(etcd, poll, known, own),
            accused,
            faulty: BTreeSet::new(),
            new_log: NewLog::new(log, config.log_bytes),
        };
        process.run(&config.place, Duration::from_millis(config.group.tick_ms.into()), begin)
    }
}

type Core = Logged<Node<AnyService>, FileDisk>;

/// The node, and the path of its log.
fn open_core(config: &NodeConfig) -> Result<(Core, PathBuf), NodeError> {
    let state = State::open(&config.state, None).map_err(|error| match error {
        StateError::Missing(name) => NodeError::Missing(name),
        StateError::LogGone(_) => NodeError::Lost(config.state.display().to_string()),
        error => NodeError::State(error),
    })?;
    let reply_key = SigningKey::from_bytes(&config.signing_key);
    let identity = Identity { device: open_device(config)?, reply_key };
    let began = Instant::now();
    let service = config.group.service.first_state();
    let path = log_path(&config.state, state.epoch);
    let core = Node::open(config.group.group.clone(), identity, service, state.log)
        .map_err(|error| NodeError::of_log(&path, error))?;
    State::begun(&config.state, state.epoch).map_err(NodeError::State)?;
    let (inputs, metrics, ms) =
        (core.replayed(), core.node().metrics(), began.elapsed().as_millis());
    let (configuration, committed) = (metrics.configuration, metrics.committed);
    tracing::info!(inputs, ms, configuration, committed, "log read");
    config.device.tell();
    Ok((core, path))
}

fn open_device(config: &NodeConfig) -> Result<OwnDevice, OwnDeviceError> {
    let secret = match &config.device {
        DeviceConfig::Library(secret) => GroupSecret::new(**secret),
        DeviceConfig::Process(process) => return Ok(process.of(process.connect(config.node)?)),
    };
    let epoch = config.group.group.epochs.get(config.node as usize).copied().unwrap_or(0);
    let start = Start { device: DeviceId(config.node), epoch: Epoch(epoch), nonce: [0; 16] };
    Ok(OwnDevice::Library { secret, start, signing_key: None })
}

/// A node, its service of configurations, and what its log was told of it.
struct ChainNode {
    core: Core,
    own: u32,
    nodes: u32,
    service: Reconfiguration,
    /// The configuration that this node accuses, as the service was told.
    accused: Option<u64>,
    configuration: u64,
    /// The nodes that were told to be faulty.
    faulty: BTreeSet<u32>,
    new_log: NewLog,
}

impl System for ChainNode {
    type Error = NodeError;

    /// Members cannot speak for each other where that would matter: what they say is attested or
    /// signed, and questions name the node that gets the answer.
    fn take(&mut self, from: Member, packet: &[u8]) -> Taken {
        let (mut taken, mut signed) = (Taken::default(), 0);
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            taken.count += 1;
            let decoded = Message::decode(message);
            let is_signed = matches!(decoded, Some(Message::Request(_) | Message::Made(_)));
            signed += usize::from(is_signed);
            let may_say = match (from, decoded) {
                (Member::Replica(_), _) if is_signed && signed > OF_NODE_MAX => false,
                (Member::Replica(own), Some(Message::Status(status))) => status.from == own,
                (Member::Replica(_), Some(_)) => true,
                (Member::Client(_), _) if taken.count > OF_CLIENT_MAX => false,
                (Member::Client(own), Some(Message::Request(it))) => it.client == own,
                _ => false,
            };
            if may_say {
                self.core.receive(message);
            } else {
                taken.refused += 1;
            }
        }
        taken
    }

    fn take_others(&mut self) -> Result<(), NodeError> {
        if let Some(newest) = self.service.newest() {
            self.core.receive(&Message::Made(newest).encode());
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.core.tick();
    }

    fn commit(&mut self, mesh: &mut Mesh) -> Result<(), NodeError> {
        for output in self.core.commit()? {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(to, bytes) => mesh.to_client(to, bytes),
                // The service hears of what the node accuses, for as long as it does: `tell`.
                Output::Host(_) => {}
            }
        }
        self.tell();
        self.begin_log_anew()
    }

    fn numbers(&self) -> serde_json::Value {
        let (metrics, service) = (self.core.node().metrics(), self.service.seen());
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        serde_json::json!({
            "node": self.own,
            "configuration": metrics.configuration,
            "order": self.order(),
            "committed": metrics.committed,
            "left_out": metrics.left_out,
            "accusations": metrics.accusations,
            "statements_reissued": metrics.reissued,
            "faulty": self.faulty,
            "log_bytes": self.core.log_length(),
            "etcd_answers": service.is_reachable.load(Ordering::Relaxed),
            "etcd_failures": count(&service.failures),
            "configurations_written": count(&service.made),
        })
    }
}

impl ChainNode {
    /// Begins the log anew when it has grown.
    fn begin_log_anew(&mut self) -> Result<(), NodeError> {
        if !self.new_log.is_due(self.core.log_bytes()) {
            return Ok(());
        }
        let begun = self.new_log.begin(&mut self.core);
        begun.map_err(|error| NodeError::NewLog(self.new_log.path().to_owned(), error))
    }

    /// Tells the service what the node accuses, and the log of a new configuration and of nodes
    /// that are found to lie.
    fn tell(&mut self) {
        // It may have come from others, and etcd have lost it.
        self.service.know(self.core.node().made());
        let accused = self.core.node().accusation();
        if accused != self.accused {
            self.accused = accused;
            self.service.accuse(accused);
        }
        let metrics = self.core.node().metrics();
        if metrics.configuration != self.configuration {
            self.configuration = metrics.configuration;
            let (order, committed) = (self.order(), metrics.committed);
            tracing::info!(configuration = self.configuration, ?order, committed, "entered");
        }
        for node in self.core.node().faulty() {
            if self.faulty.insert(node) {
                tracing::warn!(node, "this node has said what no correct node says");
            }
        }
    }

    /// The nodes of the chain, the head first.
    fn order(&self) -> Vec<u32> {
        Configuration::of_number(self.configuration, self.nodes).order
    }
}
