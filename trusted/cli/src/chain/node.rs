// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain node`: a node as a process.
//!
//! Threads take messages from sessions, and one works on them: it takes all that wait, makes them
//! durable by one write, and then sends what follows from them. Each peer has a thread that sends,
//! and one thread speaks with etcd: the chain waits for none of them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smt_attestation::GroupSecret;
use smt_bft::{AnyService, SigningKey};
use smt_chain::{Configuration, Durable, DurableError, Identity, Message, Output};
use smt_journal::{FileDisk, JournalError};
use smt_mesh::{Arrival, Member, Mesh, SessionError, messages};

use crate::bft::metrics::MetricsFile;
use crate::bft::replica::end_by_signal;
use crate::bft::state::{State, StateError, log_path};
use crate::chain::config::NodeConfig;
use crate::chain::etcd::Etcd;
use crate::chain::reconfigure::Reconfiguration;
use crate::source::ConfigError;

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
         `stream`, `service`, the `reply_key` of each node, the clients with their keys, and the \
         options `operation_bytes`, `window`, `retained` and `timeout_ticks` must be as they were"
    )]
    OtherOwner(String),
    /// The log is lost, and the node's counter with it.
    #[error(
        "your files: {0} has no log of this node any more, and a node without its log would say \
         another thing under a counter that it has used: leave it off, as one of the f nodes that \
         may fail, and form a new group when you can"
    )]
    Lost(String),
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A part of the log is damaged.
    #[error("{0}; leave this node off, as one of the f nodes that may fail")]
    Damaged(JournalError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(DurableError),
    /// A file or a signal cannot be had.
    #[error("the operating system failed: {0}")]
    File(String, #[source] io::Error),
}

impl NodeError {
    /// The error of a log that cannot be opened.
    fn of_log(path: &Path, error: DurableError) -> Self {
        match error {
            DurableError::Journal(JournalError::OtherOwner) => {
                Self::OtherOwner(path.display().to_string())
            }
            error => error.into(),
        }
    }
}

impl From<DurableError> for NodeError {
    fn from(error: DurableError) -> Self {
        match error {
            DurableError::Journal(error @ JournalError::Damaged(_)) => Self::Damaged(error),
            error => Self::Log(error),
        }
    }
}

/// Messages from which on no further packet becomes durable with them.
const TOGETHER_MAX: usize = 4096;
/// Bytes from which on none does either.
const TOGETHER_BYTES_MAX: usize = 16 << 20;
/// Messages of a client's packet that are looked at. A client has one request at a time, and each
/// may cost the verification of a signature.
const OF_CLIENT_MAX: usize = 64;
/// Between two lines of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// For messages on their way when the process ends.
const GRACE: Duration = Duration::from_secs(1);

impl NodeArguments {
    pub(crate) fn run(self) -> Result<(), NodeError> {
        let config = NodeConfig::read(&self.config)?;
        let metrics = self.metrics.as_deref().map(MetricsFile::open).transpose();
        let metrics = metrics.map_err(|it| NodeError::File("the file of --metrics".into(), it))?;
        let signals = Signals::new([SIGINT, SIGTERM]);
        let signals = signals.map_err(|it| NodeError::File("catching signals".into(), it))?;
        let core = open_core(&config)?;
        let mesh = Mesh::open(&config.place)?;
        let closer = mesh.closer();
        std::thread::spawn(move || end_by_signal(signals, &closer));
        let mut out = io::stdout().lock();
        let told = writeln!(out, "listening on {}", mesh.local_address());
        told.and_then(|()| out.flush())
            .map_err(|it| NodeError::File("standard output".into(), it))?;
        drop(out);
        let etcd = Etcd::new(config.group.etcd.clone());
        let poll = Duration::from_millis(config.group.etcd.poll_ms.into());
        let accused = core.node().accusation();
        let own = (config.node, SigningKey::from_bytes(&config.signing_key), accused);
        let known = (config.group.group.clone(), core.node().made().cloned());
        let service = Reconfiguration::start(etcd, poll, known, own);
        let (own, nodes) = (config.node, config.group.group.replicas);
        let configuration = core.metrics().configuration;
        let (began, faulty) = (Instant::now(), BTreeSet::new());
        let mut process = Process {
            core,
            own,
            nodes,
            mesh,
            service,
            accused,
            metrics,
            configuration,
            faulty,
            began,
        };
        let ended = process.work(Duration::from_millis(config.group.tick_ms.into()));
        process.mesh.close(GRACE);
        process.tell_end();
        ended
    }
}

type Core = Durable<AnyService, FileDisk>;

fn open_core(config: &NodeConfig) -> Result<Core, NodeError> {
    let state = State::open(&config.state, None).map_err(|error| match error {
        StateError::Missing(name) => NodeError::Missing(name),
        StateError::LogGone(_) => NodeError::Lost(config.state.display().to_string()),
        error => NodeError::State(error),
    })?;
    let identity = Identity {
        node: config.node,
        secret: GroupSecret::new(*config.group_secret),
        reply_key: SigningKey::from_bytes(&config.signing_key),
    };
    let began = Instant::now();
    let service = config.group.service.first_state();
    let path = log_path(&config.state, state.epoch);
    let core = Durable::open(config.group.group.clone(), identity, service, state.log)
        .map_err(|error| NodeError::of_log(&path, error))?;
    State::begun(&config.state, state.epoch).map_err(NodeError::State)?;
    let (inputs, metrics, ms) = (core.replayed(), core.metrics(), began.elapsed().as_millis());
    let (configuration, committed) = (metrics.configuration, metrics.committed);
    tracing::info!(inputs, ms, configuration, committed, "log read");
    tracing::info!("a kernel in this process attests: who reads its memory can forge");
    Ok(core)
}

struct Process {
    core: Core,
    own: u32,
    nodes: u32,
    mesh: Mesh,
    service: Reconfiguration,
    /// The configuration that this node accuses, as the service was told.
    accused: Option<u64>,
    metrics: Option<MetricsFile>,
    configuration: u64,
    /// The nodes that were told to be faulty.
    faulty: BTreeSet<u32>,
    began: Instant,
}

impl Process {
    /// Works until the end is asked for.
    fn work(&mut self, tick: Duration) -> Result<(), NodeError> {
        let mut next_tick = Instant::now();
        let mut next_metrics = Instant::now() + METRICS_EVERY;
        loop {
            let mut wait = next_tick.saturating_duration_since(Instant::now());
            let (mut taken, mut bytes) = (0, 0);
            while taken < TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX {
                match self.mesh.next(wait) {
                    Arrival::Packet(member, packet) => {
                        bytes += packet.len();
                        taken += self.take(member, &packet);
                    }
                    Arrival::Nothing => break,
                    Arrival::End => return Ok(()),
                }
                // Only those that are there already become durable together.
                wait = Duration::ZERO;
            }
            if let Some(newest) = self.service.newest() {
                self.core.configure(&newest);
            }
            if Instant::now() >= next_tick {
                self.core.tick();
                // Ticks that were missed are not made up for: all timeouts would end at once.
                next_tick = Instant::now() + tick;
            }
            let outputs = self.core.commit()?;
            outputs.into_iter().for_each(|it| self.send(it));
            self.tell();
            if Instant::now() >= next_metrics {
                next_metrics = Instant::now() + METRICS_EVERY;
                self.write_metrics();
            }
        }
    }

    /// Takes a packet of a member, and returns how many messages it had. Members cannot speak for
    /// each other where that would matter: what they say is attested or signed, and questions name
    /// the node that gets the answer.
    fn take(&mut self, from: Member, packet: &[u8]) -> usize {
        let mut count = 0;
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            count += 1;
            let may_say = match (from, Message::decode(message)) {
                (Member::Replica(own), Some(Message::Status(status))) => status.from == own,
                (Member::Replica(_), Some(_)) => true,
                (Member::Client(_), _) if count > OF_CLIENT_MAX => false,
                (Member::Client(own), Some(Message::Request(it))) => it.client == own,
                _ => false,
            };
            if may_say {
                self.core.receive(message);
            } else {
                self.mesh.traffic().refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        // A packet without messages is work as well.
        count.max(1)
    }

    fn send(&self, output: Output) {
        match output {
            Output::Node(to, bytes) => self.mesh.to_replica(to, bytes),
            Output::Nodes(bytes) => self.mesh.to_replicas(&bytes),
            Output::Client(to, bytes) => self.mesh.to_client(to, bytes),
            // The service hears of what the node accuses, for as long as it does: `tell`.
            Output::Accuse(_) => {}
        }
    }

    /// Tells the service what the node accuses, and the log of a new configuration and of nodes
    /// that are found to lie.
    fn tell(&mut self) {
        let accused = self.core.node().accusation();
        if accused != self.accused {
            self.accused = accused;
            self.service.accuse(accused);
        }
        let metrics = self.core.metrics();
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

    fn numbers(&self) -> serde_json::Value {
        let (metrics, traffic) = (self.core.metrics(), self.mesh.traffic());
        let service = self.service.seen();
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        serde_json::json!({
            "node": self.own,
            "configuration": metrics.configuration,
            "order": self.order(),
            "committed": metrics.committed,
            "accusations": metrics.accusations,
            "faulty": self.faulty,
            "log_bytes": self.core.log_length(),
            "etcd_answers": service.is_reachable.load(Ordering::Relaxed),
            "etcd_failures": count(&service.failures),
            "configurations_written": count(&service.made),
            "packets_received": count(&traffic.received),
            "messages_sent": count(&traffic.sent),
            "messages_dropped": count(&traffic.dropped),
            "refused": count(&traffic.refused),
            "seconds": self.began.elapsed().as_secs(),
        })
    }

    fn write_metrics(&mut self) {
        let numbers = self.numbers();
        if let Some(file) = &mut self.metrics {
            file.write(numbers);
        }
    }

    /// The summary, when the process ends.
    fn tell_end(&mut self) {
        self.write_metrics();
        let numbers = self.numbers();
        tracing::warn!(%numbers, "ended");
    }
}
