// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A tunnel: a TUN device, its workers, and the handle by which other threads reach them.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use smt_esp::{Action, Database, InboundPath, OutboundPath, Policy};
use smt_io::{
    EspRawSocket, EspSocketError, EspSocketOptions, EspUdpSocket, Sharing, TunError, TunOffloads,
    TunQueue,
};

use crate::association::{AssociationSpec, Direction, default_name};
use crate::config::{ActionName, Config, EncapsulationName};
use crate::event::EventLog;
use crate::setup::{self, SetupError};
use crate::statistics::TunnelStatistics;
use crate::underlay::Underlay;
use crate::used_keys::{UsedKeys, UsedKeysError};
use crate::worker::{Command, CommandError, Parts, Slot, Worker};

/// Why a tunnel is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenTunnelError {
    /// The TUN device.
    #[error(transparent)]
    Device(#[from] TunError),
    /// The socket under ESP.
    #[error(transparent)]
    Socket(#[from] EspSocketError),
    /// Addresses and routes.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A key was used before.
    #[error(transparent)]
    UsedKeys(#[from] UsedKeysError),
    /// An association of the file.
    #[error("{0}")]
    Association(String),
    /// The process has no file descriptors or threads left.
    #[error("environment: cannot begin to work")]
    System(#[from] io::Error),
}

/// Why a command to a tunnel was not carried out, in words.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The association, or its name.
    #[error("{0}")]
    Refused(String),
    /// The tunnel has ended.
    #[error("environment: the tunnel has ended")]
    Ended,
}

impl From<CommandError> for HandleError {
    fn from(error: CommandError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A tunnel that is set up.
pub struct Tunnel {
    workers: Vec<Worker>,
    handle: TunnelHandle,
    mtu: u16,
}

/// The way to the workers of a tunnel, for other threads.
#[derive(Clone)]
pub struct TunnelHandle {
    device: String,
    workers: Vec<WorkerHandle>,
    used_keys: UsedKeys,
}

#[derive(Clone)]
struct WorkerHandle {
    commands: Sender<Command>,
    wake: Arc<UnixStream>,
}

impl Tunnel {
    /// Makes device and sockets, sets the host up, and gives each worker its associations.
    ///
    /// # Errors
    /// See [`OpenTunnelError`].
    pub fn open(config: &Config, events: &EventLog) -> Result<Self, OpenTunnelError> {
        setup::check_routes(config)?;
        setup::check_filter(config)?;
        let (offloads, count) = (config.offloads, config.device.queues);
        let of_device = TunOffloads {
            checksums: offloads.checksums || offloads.segmentation,
            tcp_segmentation: offloads.segmentation,
            udp_segmentation: offloads.segmentation,
        };
        let queues = TunQueue::open(&config.device.name, count.into(), of_device)?;
        let started = Instant::now();
        let (mut workers, mut handles) = (Vec::new(), Vec::new());
        for (index, queue) in (0..count).zip(queues) {
            let underlay = open_underlay(config, Sharing { index, count })?;
            let (commands, receiver) = channel();
            let (wake, woken) = UnixStream::pair()?;
            wake.set_nonblocking(true)?;
            woken.set_nonblocking(true)?;
            let wiring = Wiring { queue, underlay, commands: receiver, woken, started };
            workers.push(Worker::new(parts(config, wiring, events))?);
            handles.push(WorkerHandle { commands, wake: Arc::new(wake) });
        }
        for spec in &config.associations {
            let spec = spec.get_ref().clone();
            let worker = &mut workers[worker_of(spec.spi, usize::from(count))];
            let added = worker.add(spec);
            added.map_err(|error| OpenTunnelError::Association(error.to_string()))?;
        }
        let mtu = device_mtu(config);
        setup::set_up(config, mtu)?;
        // Last: a tunnel that is not opened has used no key.
        let used_keys = UsedKeys::at(&config.used_keys);
        used_keys.take(config.associations.iter().map(|spec| spec.get_ref()))?;
        Ok(Self {
            workers,
            handle: TunnelHandle {
                device: config.device.name.clone(),
                workers: handles,
                used_keys,
            },
            mtu,
        })
    }

    /// The way to the workers.
    #[must_use]
    pub fn handle(&self) -> TunnelHandle {
        self.handle.clone()
    }

    /// Bytes of the longest packet that the device takes.
    #[must_use]
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Works, a thread for each worker, until the handle says stop or a worker fails. The device is
    /// gone then.
    ///
    /// # Errors
    /// The system lets a worker wait for nothing, or gives no thread.
    pub fn run(self) -> io::Result<()> {
        let mut threads = Vec::new();
        for (index, worker) in self.workers.into_iter().enumerate() {
            let builder = std::thread::Builder::new().name(format!("esp-{index}"));
            let stop = StopAll(self.handle.clone());
            threads.push(builder.spawn(move || {
                let _stop = stop;
                worker.run()
            })?);
        }
        let mut outcome = Ok(());
        for thread in threads {
            let ended = thread.join();
            outcome = outcome.and_then(|()| {
                ended.unwrap_or_else(|_| Err(io::Error::other("a worker has panicked")))
            });
        }
        outcome
    }
}

/// Stops all workers when it is dropped: without one of them, packets of its SPIs would be lost
/// without a word.
struct StopAll(TunnelHandle);

impl Drop for StopAll {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl TunnelHandle {
    /// Counts of all workers.
    ///
    /// # Errors
    /// The tunnel has ended.
    pub fn status(&self) -> Result<TunnelStatistics, HandleError> {
        let mut statistics =
            TunnelStatistics { device: self.device.clone(), ..TunnelStatistics::default() };
        for worker in &self.workers {
            let status = worker.ask(Command::Status)?;
            statistics.add(status.associations, &status.database, &status.counts);
        }
        Ok(statistics)
    }

    /// Adds an association. One for packets out takes the place of another of its name, from the
    /// next packet on: the peer must have it already.
    ///
    /// # Errors
    /// The association cannot be, or the tunnel has ended.
    pub fn add(&self, spec: AssociationSpec) -> Result<(), HandleError> {
        let taken = self.used_keys.take([&spec]);
        taken.map_err(|error| HandleError::Refused(error.to_string()))?;
        let worker = &self.workers[worker_of(spec.spi, self.workers.len())];
        Ok(worker.ask(|answer| Command::Add(Box::new(spec), answer))??)
    }

    /// Removes an association: its packets are dropped from now on.
    ///
    /// # Errors
    /// There is none, or the tunnel has ended.
    pub fn remove(&self, direction: Direction, spi: u32) -> Result<(), HandleError> {
        let worker = &self.workers[worker_of(spi, self.workers.len())];
        Ok(worker.ask(|answer| Command::Remove { direction, spi, answer })??)
    }

    /// Ends the tunnel.
    pub fn stop(&self) {
        for worker in &self.workers {
            worker.tell(Command::Stop);
        }
    }
}

#[cfg(test)]
impl TunnelHandle {
    /// A tunnel that does nothing.
    pub(crate) fn without_workers() -> Self {
        Self {
            device: "esp7".to_owned(),
            workers: Vec::new(),
            used_keys: UsedKeys::at(std::path::Path::new("/nonexistent")),
        }
    }
}

impl WorkerHandle {
    fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
        // Full: the worker wakes anyway.
        let _ = (&*self.wake).write(&[0]);
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, HandleError> {
        let (sender, answer) = channel();
        self.tell(command(sender));
        answer.recv_timeout(ANSWER_LIMIT).map_err(|_| HandleError::Ended)
    }
}

/// The ends of one worker.
struct Wiring {
    queue: TunQueue,
    underlay: Underlay,
    commands: Receiver<Command>,
    woken: UnixStream,
    started: Instant,
}

fn parts(config: &Config, wiring: Wiring, events: &EventLog) -> Parts {
    let mut database = Database::new();
    let in_udp = config.underlay.encapsulation == EncapsulationName::Udp;
    database.set_udp_port(in_udp.then_some(config.underlay.port));
    let names = config.names().into_iter();
    let slots: Vec<Slot> =
        names.map(|name| Slot { name, id: database.reserve_outbound(), spec: None }).collect();
    for policy in policies(config, &slots) {
        database.add_policy(policy);
    }
    let flows = if config.offloads.coalescing { COALESCED_FLOWS } else { 0 };
    let takes_udp = wiring.queue.takes_udp_segments();
    Parts {
        queue: wiring.queue,
        underlay: wiring.underlay,
        path: config.path_properties(),
        outbound: OutboundPath::new(config.underlay.mtu.into(), config.offloads.segmentation),
        inbound: InboundPath::new(flows).with_udp(takes_udp),
        database,
        slots,
        commands: wiring.commands,
        wake: wiring.woken,
        events: events.clone(),
        started: wiring.started,
    }
}

/// The policies of the file. Without any, the packets of each association for packets out are for
/// that one.
fn policies(config: &Config, slots: &[Slot]) -> Vec<Policy> {
    let protect = |name: &str| {
        let slot = slots.iter().find(|slot| slot.name == name);
        slot.map_or(Action::Discard, |slot| Action::Protect(slot.id))
    };
    if !config.policies.is_empty() {
        let specs = config.policies.iter().map(|policy| policy.get_ref());
        return specs
            .map(|spec| Policy {
                selectors: spec.selectors.selectors(),
                action: match spec.action {
                    ActionName::Protect => protect(&spec.association),
                    ActionName::Discard => Action::Discard,
                },
            })
            .collect();
    }
    let specs = config.associations.iter().map(|spec| spec.get_ref());
    let mut policies: Vec<Policy> = specs
        .filter(|spec| spec.direction == Direction::Out)
        .map(|spec| Policy {
            selectors: spec.selectors(config.path_properties()),
            action: protect(&spec.name),
        })
        .collect();
    policies.dedup();
    if policies.is_empty() {
        // The keys come later.
        policies.push(Policy {
            selectors: smt_esp::Selectors::default(),
            action: protect(&default_name()),
        });
    }
    policies
}

fn open_underlay(config: &Config, sharing: Sharing) -> Result<Underlay, EspSocketError> {
    let offloads = config.offloads;
    let options = EspSocketOptions {
        local: config.local_address(),
        device: config.underlay.device.clone(),
        segmentation: offloads.batched_send,
        coalescing: offloads.batched_receive,
        sharing,
    };
    Ok(match config.underlay.encapsulation {
        EncapsulationName::Udp => {
            Underlay::udp(EspUdpSocket::open(&options)?, offloads.batched_send)
        }
        EncapsulationName::None => {
            Underlay::raw(EspRawSocket::open(&options)?, offloads.batched_send)
        }
    })
}

/// The longest packet that fits each association of the file, or the file's own number.
fn device_mtu(config: &Config) -> u16 {
    if let Some(mtu) = config.device.mtu {
        return mtu;
    }
    let underlay_mtu = usize::from(config.underlay.mtu);
    let specs = config.associations.iter().map(|spec| spec.get_ref());
    let longest = specs
        .filter(|spec| spec.direction == Direction::Out)
        .filter_map(|spec| spec.outbound(config.path_properties(), Duration::ZERO).ok())
        .map(|association| association.longest_packet(underlay_mtu))
        .min();
    let longest = longest.unwrap_or_else(|| underlay_mtu.saturating_sub(MOST_OVERHEAD));
    u16::try_from(longest).unwrap_or(u16::MAX)
}

/// A flow stays on its worker by its SPI, as the sockets spread what comes.
fn worker_of(spi: u32, workers: usize) -> usize {
    spi as usize % workers.max(1)
}

/// Flows that are coalesced beside each other: as many as Linux's GRO has in a bucket.
const COALESCED_FLOWS: usize = 8;
/// Bytes that ESP adds at most: an outer IPv6 header, UDP, ESP, IV, padding, trailer and ICV.
const MOST_OVERHEAD: usize = 40 + 8 + 8 + 8 + 3 + 2 + 16;
/// A turn of a worker takes milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_panics_stops_the_others() {
        let (commands, other) = channel();
        let (wake, _woken) = UnixStream::pair().unwrap();
        let handle = TunnelHandle {
            workers: vec![WorkerHandle { commands, wake: Arc::new(wake) }],
            ..TunnelHandle::without_workers()
        };
        let stop = StopAll(handle);
        let worker = std::thread::spawn(move || {
            let _stop = stop;
            panic!("a worker")
        });
        assert!(worker.join().is_err());
        assert!(matches!(other.try_recv(), Ok(Command::Stop)));
    }
}
