// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft replica`: a replica as a process.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_bft::{
    AnyService, AttestorError, Durable, DurableError, Identity, Message, Output, OwnDevice,
    SigningKey,
};
use smt_device_client::{Client, Device, DeviceError};
use smt_journal::{FileDisk, JournalError};
use smt_mesh::{Member, Mesh, messages};
use smt_trusted_process::{ConfigError, Process, ProcessError, State, StateError, System, Taken};

use crate::a2m::device_fault;
use crate::bft::config::{DeviceConfig, ReplicaConfig};

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
    State(#[from] StateError),
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
    #[error("{}: {error}", device_fault(.error))]
    Device { error: DeviceError },
    /// The device and the log differ.
    #[error("the host or its disk: {0}")]
    Attestor(AttestorError),
    /// The replica's device is another one.
    #[error("your files: the device at the socket is number {0}, and the replica is number {1}")]
    OtherDevice(u32, u32),
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

impl From<DeviceError> for ReplicaError {
    fn from(error: DeviceError) -> Self {
        Self::Device { error }
    }
}

impl From<DurableError> for ReplicaError {
    fn from(error: DurableError) -> Self {
        match error {
            DurableError::Journal(error @ JournalError::Damaged(_)) => Self::Damaged(error),
            DurableError::Journal(error) => Self::Log(error),
            DurableError::Device(AttestorError::Device(error)) => Self::Device { error },
            DurableError::Device(error) => Self::Attestor(error),
            error => Self::File("the log".to_owned(), io::Error::other(error)),
        }
    }
}

type Core = Durable<AnyService, FileDisk>;

impl ReplicaArguments {
    pub(crate) fn run(self) -> Result<(), ReplicaError> {
        let config = ReplicaConfig::read(&self.config)?;
        let process = Process::begin(self.metrics.as_deref())?;
        let core = open_core(&config, self.epoch)?;
        let (own, view) = (config.replica, core.metrics().view);
        let replica = Replica { core, own, view };
        process.run(replica, &config.place, Duration::from_millis(config.group.tick_ms.into()))
    }
}

fn open_core(config: &ReplicaConfig, asked: Option<u64>) -> Result<Core, ReplicaError> {
    let (device, state) = open_device(config, asked)?;
    let is_process = matches!(device, OwnDevice::Process { .. });
    let reply_key = SigningKey::from_bytes(&config.signing_key);
    let identity = Identity { device, reply_key };
    let began = Instant::now();
    let service = config.group.service.first_state();
    let core = Durable::open(config.group.group.clone(), identity, service, state.log)?;
    State::begun(&config.state, state.epoch)?;
    let (inputs, metrics) = (core.replayed(), core.metrics());
    let (epoch, ms) = (state.epoch, began.elapsed().as_millis());
    tracing::info!(epoch, inputs, ms, view = metrics.view, executed = metrics.executed, "log read");
    match is_process {
        true => tracing::info!("a device of its own attests; this process has no key of the group"),
        false => tracing::info!("a kernel in this process attests: who reads its memory can forge"),
    }
    Ok(core)
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
            Ok((OwnDevice::Library { secret, start }, state))
        }
        DeviceConfig::Process(..) if asked.is_some() => Err(ReplicaError::EpochOfDevice),
        DeviceConfig::Process(socket, secret) => {
            let device = Client::connect(socket)?;
            let own = device.own();
            if own.device.0 != config.replica {
                return Err(ReplicaError::OtherDevice(own.device.0, config.replica));
            }
            let state = State::of_device(&config.state, own.epoch.0)?;
            Ok((OwnDevice::Process { device: Box::new(device), secret: *secret }, state))
        }
    }
}

/// A replica, and what its log was told of it.
struct Replica {
    core: Core,
    own: u32,
    view: u64,
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

    fn commit(&mut self, mesh: &Mesh) -> Result<(), ReplicaError> {
        for output in self.core.commit()? {
            match output {
                Output::Replica(to, bytes) => mesh.to_replica(to, bytes),
                Output::Replicas(bytes) => mesh.to_replicas(&bytes),
                Output::Client(to, bytes) => mesh.to_client(to, bytes),
            }
        }
        let metrics = self.core.metrics();
        if metrics.view != self.view {
            self.view = metrics.view;
            tracing::info!(view = metrics.view, executed = metrics.executed, "view entered");
        }
        Ok(())
    }

    fn numbers(&self) -> serde_json::Value {
        let metrics = self.core.metrics();
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
