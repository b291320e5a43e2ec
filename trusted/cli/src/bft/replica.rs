// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft replica`: a replica as a process.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_bft::{Identity, Message, Output};
use smt_device_client::Device;
use smt_journal::{FileDisk, JournalError, SnapshotLog};
use smt_mesh::{Member, Mesh, messages};
use smt_replica::{AnyService, AttestorError, Logged, LoggedError, OwnDevice, SigningKey};
use smt_trusted_process::{
    ConfigError, NewLog, Process, ProcessError, State, StateError, System, Taken, log_path,
};

use crate::bft::config::ReplicaConfig;
use crate::own_device::{DeviceConfig, OwnDeviceError};

/// Runs a replica
#[derive(Args)]
pub(crate) struct ReplicaArguments {
    /// The replica's configuration file
    #[arg(long)]
    config: PathBuf,
    /// Begins this epoch with an empty log, and gets the state from the others: for a replica whose
    /// disk was lost, and has no device of its own. The number is above all epochs that the replica
    /// had
    #[arg(long)]
    epoch: Option<u64>,
    /// Appends a line of JSON with the replica's numbers to this file, each ten seconds and at the
    /// end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

/// Why a replica does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplicaError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    State(StateError),
    /// The directory has no epoch.
    #[error(
        "your files: {0} has no epoch: if the state was lost, start with --epoch and a number \
         above all that this replica had; if the group is new, with --epoch 1"
    )]
    Missing(String),
    /// The log is gone.
    #[error(
        "your files: the log of epoch {0} is gone: start with --epoch {next}, or restart the \
         replica's device", next = .0 + 1
    )]
    LogGone(u64),
    /// The process does not begin.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A part of the log is damaged.
    #[error(
        "{0}; a damaged log is left behind by a new epoch: start with --epoch, or restart the \
         replica's device"
    )]
    Damaged(JournalError),
    /// The log cannot be used.
    #[error(transparent)]
    Log(JournalError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] OwnDeviceError),
    /// The log was restored or lost, and the device goes on.
    #[error(
        "the host or its disk: {0}. Restart the device: it begins a new epoch, and the replica an \
         empty log"
    )]
    OldLog(AttestorError),
    /// A device counts its epochs itself.
    #[error("your request: the replica's device counts epochs: restart it, and leave out --epoch")]
    EpochOfDevice,
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The log cannot be used, for a reason of a later version of it.
    #[error("the operating system failed: {0}")]
    File(String, #[source] io::Error),
}

impl From<StateError> for ReplicaError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Missing(name) => Self::Missing(name),
            StateError::LogGone(epoch) => Self::LogGone(epoch),
            error => Self::State(error),
        }
    }
}

impl From<LoggedError> for ReplicaError {
    fn from(error: LoggedError) -> Self {
        match error {
            LoggedError::Journal(error @ JournalError::Damaged(_)) => Self::Damaged(error),
            LoggedError::Journal(error) => Self::Log(error),
            LoggedError::Device(error @ AttestorError::Ahead) => Self::OldLog(error),
            LoggedError::Device(error) => Self::Device(error.into()),
            error => Self::File("the log".to_owned(), io::Error::other(error)),
        }
    }
}

type Core = Logged<smt_bft::Replica<AnyService>, FileDisk>;

impl ReplicaArguments {
    pub(crate) fn run(self) -> Result<(), ReplicaError> {
        let config = ReplicaConfig::read(&self.config)?;
        let process = Process::begin(self.metrics.as_deref())?;
        let (core, log) = open_core(&config, self.epoch)?;
        let (own, view) = (config.replica, core.node().metrics().view);
        let new_log = NewLog::new(log, config.log_bytes);
        let replica = Replica { core, own, view, new_log };
        process.run(&config.place, Duration::from_millis(config.group.tick_ms.into()), || replica)
    }
}

/// The replica, and the path of its log.
fn open_core(config: &ReplicaConfig, asked: Option<u64>) -> Result<(Core, PathBuf), ReplicaError> {
    let (device, state) = open_device(config, asked)?;
    let reply_key = SigningKey::from_bytes(&config.signing_key);
    let identity = Identity { device, reply_key };
    let began = Instant::now();
    let service = config.group.service.first_state();
    let core = smt_bft::Replica::open(config.group.group.clone(), identity, service, state.log)?;
    State::begun(&config.state, state.epoch)?;
    let (inputs, metrics) = (core.replayed(), core.node().metrics());
    let (epoch, ms) = (state.epoch, began.elapsed().as_millis());
    tracing::info!(epoch, inputs, ms, view = metrics.view, executed = metrics.executed, "log read");
    config.device.tell();
    Ok((core, log_path(&config.state, state.epoch)))
}

/// The replica's device, and the directory in the device's epoch.
fn open_device(
    config: &ReplicaConfig,
    asked: Option<u64>,
) -> Result<(OwnDevice, State), ReplicaError> {
    match &config.device {
        DeviceConfig::Library(secret) => {
            let state = State::open(&config.state, asked)?;
            let mut nonce = [0; 16];
            getrandom::fill(&mut nonce).map_err(ReplicaError::Random)?;
            let (device, epoch) = (DeviceId(config.replica), Epoch(state.epoch));
            let start = Start { device, epoch, nonce };
            let secret = GroupSecret::new(**secret);
            Ok((OwnDevice::Library { secret, start, signing_key: None }, state))
        }
        DeviceConfig::Process(_) if asked.is_some() => Err(ReplicaError::EpochOfDevice),
        DeviceConfig::Process(process) => {
            let device = process.connect(config.replica)?;
            let state = State::of_device(&config.state, device.own().epoch.0)?;
            Ok((process.of(device), state))
        }
    }
}

/// A replica, and what its log was told of it.
struct Replica {
    core: Core,
    own: u32,
    view: u64,
    new_log: NewLog,
}

impl System for Replica {
    type Error = ReplicaError;

    /// Members cannot speak for each other where that would matter: what they say is attested or
    /// signed, and questions name the replica that gets the answer.
    fn take(&mut self, from: Member, packet: &[u8]) -> Taken {
        let mut taken = Taken::default();
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            taken.count += 1;
            let may_say = match (from, Message::decode(message)) {
                (Member::Replica(own), Some(Message::Status(status))) => status.from == own,
                (Member::Replica(_), Some(_)) => true,
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

    fn tick(&mut self) {
        self.core.tick();
    }

    fn commit(&mut self, mesh: &mut Mesh) -> Result<(), ReplicaError> {
        for output in self.core.commit()? {
            match output {
                Output::Node(to, bytes) => mesh.to_replica(to, bytes),
                Output::Nodes(bytes) => mesh.to_replicas(&bytes),
                Output::Client(to, bytes) => mesh.to_client(to, bytes),
            }
        }
        let metrics = self.core.node().metrics();
        if metrics.view != self.view {
            self.view = metrics.view;
            tracing::info!(view = metrics.view, executed = metrics.executed, "view entered");
        }
        self.begin_log_anew()
    }

    fn numbers(&self) -> serde_json::Value {
        let metrics = self.core.node().metrics();
        serde_json::json!({
            "replica": self.own,
            "view": metrics.view,
            "views_entered": metrics.views,
            "executed": metrics.executed,
            "stable": metrics.stable,
            "states_taken": metrics.states,
            "is_active": metrics.is_active,
            "statements_reissued": metrics.reissued,
            "log_bytes": self.core.log_length(),
        })
    }
}

impl Replica {
    /// Begins the log anew when it has grown.
    fn begin_log_anew(&mut self) -> Result<(), ReplicaError> {
        if !self.new_log.is_due(self.core.log_bytes()) {
            return Ok(());
        }
        let begun = self.new_log.begin(&mut self.core);
        let name = self.new_log.path().display().to_string();
        begun.map_err(|error| ReplicaError::File(name, error))
    }
}
