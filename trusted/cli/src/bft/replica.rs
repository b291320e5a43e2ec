// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft replica`: a replica as a process.
//!
//! Threads take messages from sessions, and one works on them: it takes all that wait, makes them
//! durable by one write, and then sends what follows from them. Each peer has a thread that sends.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_bft::{
    AnyService, AttestorError, Durable, DurableError, Identity, Message, Output, OwnDevice,
    SigningKey,
};
use smt_device_client::{Client, Device, DeviceError};
use smt_journal::{FileDisk, JournalError};
use smt_mesh::{Arrival, Closer, Member, Mesh, SessionError, messages};

use crate::a2m::device_fault;
use crate::bft::config::{DeviceConfig, ReplicaConfig};
use crate::bft::metrics::MetricsFile;
use crate::bft::state::{State, StateError};
use crate::source::ConfigError;

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
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
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
    /// A file or a signal cannot be had.
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

/// Packets that become durable together at most.
const TOGETHER_MAX: usize = 256;
/// Bytes from which on no further packet becomes durable with them.
const TOGETHER_BYTES_MAX: usize = 16 << 20;
/// Between two lines of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(10);
/// For messages on their way when the process ends.
const GRACE: Duration = Duration::from_secs(1);

type Core = Durable<AnyService, FileDisk>;

impl ReplicaArguments {
    pub(crate) fn run(self) -> Result<(), ReplicaError> {
        let config = ReplicaConfig::read(&self.config)?;
        let metrics = self.metrics.as_deref().map(MetricsFile::open).transpose();
        let metrics =
            metrics.map_err(|it| ReplicaError::File("the file of --metrics".into(), it))?;
        let signals = Signals::new([SIGINT, SIGTERM]);
        let signals = signals.map_err(|it| ReplicaError::File("catching signals".into(), it))?;
        let core = open_core(&config, self.epoch)?;
        let mesh = Mesh::open(&config.place)?;
        let closer = mesh.closer();
        std::thread::spawn(move || end_by_signal(signals, &closer));
        let mut out = io::stdout().lock();
        let told = writeln!(out, "listening on {}", mesh.local_address());
        told.and_then(|()| out.flush())
            .map_err(|it| ReplicaError::File("standard output".into(), it))?;
        drop(out);
        let (own, view) = (config.replica, core.metrics().view);
        let mut process = Process { core, own, mesh, metrics, view, began: Instant::now() };
        let ended = process.work(Duration::from_millis(config.group.tick_ms.into()));
        process.mesh.close(GRACE);
        process.tell_end();
        ended
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

/// Has the mesh end on the first signal, and ends the process on the second.
pub(crate) fn end_by_signal(mut signals: Signals, closer: &Closer) {
    let mut signals = signals.forever();
    signals.next();
    closer.end();
    if let Some(signal) = signals.next() {
        std::process::exit(128 + signal);
    }
}

struct Process {
    core: Core,
    own: u32,
    mesh: Mesh,
    metrics: Option<MetricsFile>,
    view: u64,
    began: Instant,
}

impl Process {
    /// Works until the end is asked for.
    fn work(&mut self, tick: Duration) -> Result<(), ReplicaError> {
        let mut next_tick = Instant::now();
        let mut next_metrics = Instant::now() + METRICS_EVERY;
        loop {
            let mut wait = next_tick.saturating_duration_since(Instant::now());
            let (mut taken, mut bytes) = (0, 0);
            while taken < TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX {
                match self.mesh.next(wait) {
                    Arrival::Packet(member, packet) => {
                        bytes += packet.len();
                        self.take(member, &packet);
                    }
                    Arrival::Nothing => break,
                    Arrival::End => return Ok(()),
                }
                // Only those that are there already become durable together.
                wait = Duration::ZERO;
                taken += 1;
            }
            if Instant::now() >= next_tick {
                self.core.tick();
                // Ticks that were missed are not made up for: all timeouts would end at once.
                next_tick = Instant::now() + tick;
            }
            let outputs = self.core.commit()?;
            outputs.into_iter().for_each(|it| self.send(it));
            self.tell_view();
            if Instant::now() >= next_metrics {
                next_metrics = Instant::now() + METRICS_EVERY;
                self.write_metrics();
            }
        }
    }

    /// Takes a packet of a member. Members cannot speak for each other where that would matter:
    /// what they say is attested or signed, and questions name the replica that gets the answer.
    fn take(&mut self, from: Member, packet: &[u8]) {
        // An empty message tells of a session alone.
        for message in messages(packet).filter(|it| !it.is_empty()) {
            let may_say = match (from, Message::decode(message)) {
                (Member::Replica(own), Some(Message::Status(status))) => status.from == own,
                (Member::Replica(_), Some(_)) => true,
                (Member::Client(own), Some(Message::Request(it))) => it.client == own,
                _ => false,
            };
            if may_say {
                self.core.receive(message);
            } else {
                self.mesh.traffic().refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn send(&self, output: Output) {
        match output {
            Output::Replica(to, bytes) => self.mesh.to_replica(to, bytes),
            Output::Replicas(bytes) => self.mesh.to_replicas(&bytes),
            Output::Client(to, bytes) => self.mesh.to_client(to, bytes),
        }
    }

    fn tell_view(&mut self) {
        let metrics = self.core.metrics();
        if metrics.view != self.view {
            self.view = metrics.view;
            tracing::info!(view = metrics.view, executed = metrics.executed, "view entered");
        }
    }

    fn numbers(&self) -> serde_json::Value {
        let (metrics, traffic) = (self.core.metrics(), self.mesh.traffic());
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
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
