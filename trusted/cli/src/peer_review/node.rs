// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review node`: a node of a tree as a process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use smt_device_client::Device;
use smt_journal::{FileDisk, JournalError, SnapshotLog};
use smt_mesh::{Member, Mesh, messages};
use smt_peer_review::{AttestorError, Event, Identity, Node, NodeError, Output, Suspicion, Tree};
use smt_replica::{Logged, LoggedError};
use smt_trusted_process::{
    ConfigError, NewLog, Process, ProcessError, State, StateError, System, Taken, log_path, replace,
};
use zeroize::Zeroizing;

use crate::own_device::{DeviceConfig, OwnDeviceError};
use crate::peer_review::config::NodeConfig;
use crate::peer_review::input::Input;
use crate::peer_review::output::OutputFile;

/// Runs a node
///
/// Node 0 is the source: it sends its input to its children, which forward it to theirs. All nodes
/// write what they get to their output. A node that is started again goes on where it was.
#[derive(Args)]
pub(crate) struct NodeArguments {
    /// The node's configuration file
    #[arg(long)]
    config: PathBuf,
    /// The stream, which the source sends: a file, or - for standard input. A source that is
    /// started again goes on in the file where it was, and cannot in standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Bytes of the input that are sent as one part, at most
    #[arg(long, value_name = "BYTES", default_value_t = 16_384)]
    part_bytes: usize,
    /// Writes the stream to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Appends a line of JSON with the node's numbers to this file, each ten seconds and at the end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// Why a node of a reviewed tree does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewedError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An argument has a value that it cannot have.
    #[error("your request: {0}")]
    Request(String),
    /// The directory is none of a node.
    #[error(
        "your files: {0} is not the directory that `peer-review init` has made for this node: is \
         `state` right, and the disk mounted? If the directory is lost, the group must be formed \
         anew: the node would be suspected for good"
    )]
    Missing(String),
    /// The journal is lost.
    #[error(
        "your files: {0} has no journal of this node any more, and without it the node would sign \
         other entries than before: leave it off, and form the group anew when you can"
    )]
    Lost(String),
    /// The group's devices have one epoch.
    #[error("your files: the directory is of epoch {0}, and nodes have epoch 1 alone")]
    Epoch(u64),
    /// The directory cannot be used.
    #[error(transparent)]
    State(StateError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] OwnDeviceError),
    /// The journal was restored or lost, or the device was started again.
    #[error(
        "{0}. A node has no further epochs: leave it off, and form the group anew when you can. In \
         a new group its `[[nodes]]` entry has `key` and `epoch` of its device"
    )]
    Ended(OwnDeviceError),
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The process does not begin.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The journal is of another node, or its configuration was changed.
    #[error(
        "your files: {0} was written under another configuration, or by another version: `node`, \
         `stream`, `faults`, `degree`, the `key` of each node, and all options but `tick_ms` must \
         be as they were"
    )]
    OtherOwner(String),
    /// The journal cannot be used, or the node cannot go on.
    #[error(transparent)]
    Journal(LoggedError<NodeError>),
    /// The node takes no further input.
    #[error("{0}")]
    Failed(String),
    /// A file cannot be read or written.
    #[error("your files: {} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
}

impl From<LoggedError<NodeError>> for ReviewedError {
    fn from(error: LoggedError<NodeError>) -> Self {
        match error {
            LoggedError::Device(error @ AttestorError::Device(_)) => Self::Device(error.into()),
            LoggedError::Device(error) => Self::Ended(error.into()),
            error => Self::Journal(error),
        }
    }
}

type Core = Logged<Node<Tree>, FileDisk>;

/// Parts that wait for a receipt of a child, before the source sends more.
const WINDOW: usize = 64;
/// Bytes of a message beside a part of the stream.
const HEADER: usize = 32;

impl NodeArguments {
    pub(crate) fn run(self) -> Result<(), ReviewedError> {
        let config = NodeConfig::read(&self.config)?;
        self.check(&config)?;
        let process = Process::begin(self.metrics.as_deref())?;
        let output = self.output.as_ref().map(|path| {
            let output = OutputFile::open(path);
            output.map(|it| (path.clone(), it)).map_err(|it| ReviewedError::File(path.clone(), it))
        });
        let mut output = output.transpose()?;
        let core = open_core(&config, output.as_mut())?;
        let input = self.input.as_ref().map(|path| {
            let input = Input::open(path, core.node().application().length(), self.part_bytes);
            input.map(|it| (path.clone(), it)).map_err(|it| ReviewedError::File(path.clone(), it))
        });
        let input = input.transpose()?;
        let directory = config.state.clone();
        let node = ReviewedNode {
            own: config.node,
            nodes: config.group.group.nodes(),
            state: directory.clone(),
            core,
            input,
            output,
            suspected: BTreeMap::new(),
            exposed: BTreeSet::new(),
            part_bytes: self.part_bytes,
            new_log: NewLog::new(log_path(&directory, 1), config.journal_bytes),
        };
        process.run(&config.place, Duration::from_millis(config.group.tick_ms.into()), || node)
    }

    fn check(&self, config: &NodeConfig) -> Result<(), ReviewedError> {
        if self.input.is_some() && config.node != 0 {
            let why = format!("--input is for node 0, the source, not node {}", config.node);
            return Err(ReviewedError::Request(why));
        }
        let most = config.group.group.options.body - HEADER;
        if !(1..=most).contains(&self.part_bytes) {
            let why = format!("--part-bytes {} is not 1 to {most}", self.part_bytes);
            return Err(ReviewedError::Request(why));
        }
        Ok(())
    }
}

fn open_core(
    config: &NodeConfig,
    mut output: Option<&mut (PathBuf, OutputFile)>,
) -> Result<Core, ReviewedError> {
    let state = State::open(&config.state, None).map_err(|error| match error {
        StateError::Missing(name) => ReviewedError::Missing(name),
        StateError::LogGone(_) => ReviewedError::Lost(config.state.display().to_string()),
        error => ReviewedError::State(error),
    })?;
    if state.epoch != 1 {
        return Err(ReviewedError::Epoch(state.epoch));
    }
    let identity = identity(config)?;
    let (began, path) = (Instant::now(), log_path(&config.state, state.epoch));
    let mut failed = None;
    let deliver = |bytes: Vec<u8>| {
        if let (Some((path, output)), None) = (&mut output, &failed) {
            let written = output.write(&bytes);
            failed = written.err().map(|error| ReviewedError::File(path.clone(), error));
        }
    };
    let group = config.group.group.clone();
    let core = Node::open(group, identity, &config.group.tree, state.log, deliver);
    let core = core.map_err(|error| match error {
        LoggedError::Journal(JournalError::OtherOwner) => {
            ReviewedError::OtherOwner(path.display().to_string())
        }
        error => error.into(),
    })?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    if let Some((path, output)) = output {
        refuse_other(&core, path, output)?;
    }
    State::begun(&config.state, state.epoch).map_err(ReviewedError::State)?;
    let (inputs, ms, entries) = (core.replayed(), began.elapsed().as_millis(), core.node().last());
    tracing::info!(inputs, ms, entries, bytes = core.node().application().length(), "journal read");
    config.device.tell();
    Ok(core)
}

/// The device of a node, and what its nonces come from if its journal begins.
fn identity(config: &NodeConfig) -> Result<Identity, ReviewedError> {
    let group = &config.group.group;
    let process = match &config.device {
        DeviceConfig::Library(seed) => return Ok(Identity::of_seed(group, config.node, seed)),
        DeviceConfig::Process(process) => process,
    };
    let device = process.connect(config.node)?;
    if group.keys.get(config.node as usize) != Some(&device.public_key()) {
        return Err(OwnDeviceError::OtherKey.into());
    }
    let mut nonces = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *nonces).map_err(ReviewedError::Random)?;
    Ok(Identity { device: process.of(device), nonces })
}

/// The output has as much of the stream as the node, or it is another file.
fn refuse_other(core: &Core, path: &Path, output: &OutputFile) -> Result<(), ReviewedError> {
    let has = output.length();
    let length = core.node().application().length();
    if has == length {
        return Ok(());
    }
    Err(ReviewedError::Request(format!(
        "--output {} has {has} bytes, and the node has {length} of the stream: it is another file, \
         or one that was changed",
        path.display()
    )))
}

/// A node, its files, and what its log was told of others.
struct ReviewedNode {
    own: u32,
    nodes: u32,
    state: PathBuf,
    core: Core,
    input: Option<(PathBuf, Input)>,
    output: Option<(PathBuf, OutputFile)>,
    suspected: BTreeMap<u32, Vec<Suspicion>>,
    exposed: BTreeSet<u32>,
    /// Bytes of a part at most.
    part_bytes: usize,
    new_log: NewLog,
}

impl System for ReviewedNode {
    type Error = ReviewedError;

    fn take(&mut self, from: Member, packet: &[u8]) -> Taken {
        let mut taken = Taken::default();
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            taken.count += 1;
            let Member::Replica(from) = from else {
                taken.refused += 1;
                continue;
            };
            Event::message(from, message).into_iter().for_each(|it| self.core.receive_message(it));
        }
        taken
    }

    fn take_others(&mut self) -> Result<(), ReviewedError> {
        let mut waiting = self.core.node().backlog();
        while let Some((path, input)) = self.input.as_ref().filter(|_| waiting < WINDOW) {
            if !self.core.has_room(self.part_bytes + HEADER) {
                break;
            }
            match input.next().map_err(|error| ReviewedError::File(path.clone(), error))? {
                None => break,
                Some(part) if part.is_empty() => {
                    tracing::info!("the input has ended");
                    self.input = None;
                }
                Some(part) => {
                    let length = part.len();
                    if !self.core.local(Event::Local(part)) {
                        let why = format!("the node takes no further part, of {length} bytes");
                        return Err(ReviewedError::Failed(why));
                    }
                    waiting += 1;
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.core.tick();
    }

    fn commit(&mut self, mesh: &mut Mesh) -> Result<(), ReviewedError> {
        for output in self.core.commit()? {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                // No client takes part.
                Output::Client(..) => {}
                Output::Host(bytes) => self.deliver(&bytes)?,
            }
        }
        self.tell_verdicts()?;
        if self.new_log.is_due(self.core.log_bytes()) {
            self.begin_anew()?;
        }
        Ok(())
    }

    fn numbers(&self) -> serde_json::Value {
        let node = self.core.node();
        let audited = (0..self.nodes).filter_map(|it| Some((it.to_string(), node.audited(it)?)));
        serde_json::json!({
            "node": self.own,
            "entries": node.last(),
            "parts": node.application().count(),
            "bytes": node.application().length(),
            "waiting": node.backlog(),
            "held": node.held(),
            "audited": audited.collect::<BTreeMap<_, _>>(),
            "suspected": self.suspected.keys().collect::<Vec<_>>(),
            "exposed": self.exposed,
            "signatures_reissued": self.core.node().reissued(),
            "journal_bytes": self.core.log_bytes().length,
        })
    }
}

impl ReviewedNode {
    fn deliver(&mut self, bytes: &[u8]) -> Result<(), ReviewedError> {
        match &mut self.output {
            Some((path, output)) => {
                output.write(bytes).map_err(|error| ReviewedError::File(path.clone(), error))
            }
            None => Ok(()),
        }
    }

    /// Tells the log of verdicts that have changed, and writes evidence to a file.
    fn tell_verdicts(&mut self) -> Result<(), ReviewedError> {
        for other in (0..self.nodes).filter(|it| *it != self.own) {
            let node = self.core.node();
            if let Some(evidence) = node.evidence(other) {
                if self.exposed.insert(other) {
                    let path = self.state.join(format!("evidence-{other}"));
                    let written = replace(&path, &evidence.encode(), 0o644);
                    written.map_err(|error| ReviewedError::File(path.clone(), error))?;
                    tracing::warn!(node = other, evidence = %path.display(), "exposed");
                }
                self.suspected.remove(&other);
                continue;
            }
            let suspicions = node.suspicions(other);
            if suspicions.is_empty() {
                if self.suspected.remove(&other).is_some() {
                    tracing::warn!(node = other, "trusted again");
                }
            } else if self.suspected.get(&other) != Some(&suspicions) {
                let why: Vec<_> = suspicions.iter().map(ToString::to_string).collect();
                tracing::warn!(node = other, why = why.join("; "), "suspected");
                self.suspected.insert(other, suspicions);
            }
        }
        Ok(())
    }

    /// Begins the journal anew: it would grow for ever.
    fn begin_anew(&mut self) -> Result<(), ReviewedError> {
        // A restart delivers only what came since then.
        if let Some((path, output)) = &self.output {
            output.sync().map_err(|error| ReviewedError::File(path.clone(), error))?;
        }
        let begun = self.new_log.begin(&mut self.core);
        begun.map_err(|error| ReviewedError::File(self.new_log.path().to_owned(), error))
    }
}
