// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A group over SMT on the loopback: a thread for each replica and the caller's for all clients,
//! each with an endpoint of its own.

use std::fmt::Display;
use std::time::{Duration, Instant};

use smt_bft::Client;
use smt_device_client::DeviceError;
use smt_loopback::{EndError, Machine, Places, PlacesError, Running, StartError, for_client, send};
use smt_mesh::{Arrival, Mesh, SessionError, messages};

use crate::keys::GroupKeys;

/// For messages on their way when an endpoint closes.
const GRACE: Duration = Duration::from_millis(100);

/// Why a group does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Certificates or addresses cannot be had.
    #[error(transparent)]
    Places(#[from] PlacesError),
    /// An endpoint cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A replica's device failed.
    #[error("the device of replica {0}: {1}")]
    Device(u32, DeviceError),
    /// A replica has not started.
    #[error("replica {0} has not started: {1}")]
    Start(u32, StartError),
    /// A replica has panicked.
    #[error("replica {0} has panicked")]
    Panicked(u32),
    /// No answer comes.
    #[error("the replicas give no answer in {0:?}")]
    Deadline(Duration),
}

/// The time of a group over SMT.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Between two ticks of a member.
    pub tick: Duration,
    /// Without any answer for so long, the group has failed.
    pub deadline: Duration,
}

/// A group of replicas and clients.
pub struct OverSmt {
    replicas: Vec<Option<Running<DeviceError>>>,
    clients: Vec<Client>,
    /// The last answer of each client.
    answers: Vec<Option<Vec<u8>>>,
    mesh: Mesh,
    times: Times,
    next_tick: Instant,
    _places: Places,
}

impl OverSmt {
    /// Opens the endpoints of all members. `make` makes a replica in its own thread, which need not
    /// be left.
    ///
    /// # Errors
    /// [`RunError`]
    pub fn start<M: Machine<Error = DeviceError>, E: Display>(
        keys: &GroupKeys,
        times: Times,
        make: impl Fn(u32) -> Result<M, E> + Clone + Send + 'static,
    ) -> Result<Self, RunError> {
        let places = Places::make(keys.group.replicas)?;
        let mut replicas = Vec::new();
        for own in 0..keys.group.replicas {
            let make = make.clone();
            let running = Running::start(&places.replica(own), times.tick, move || make(own));
            replicas.push(Some(running.map_err(|it| RunError::Start(own, it))?));
        }
        let mut mesh = Mesh::open(&places.clients())?;
        // Replicas reply in the session in which a client spoke last: all must know one.
        mesh.to_replicas(&[]);
        let clients: Vec<Client> = keys.group.clients.keys().map(|it| keys.client(*it)).collect();
        let answers = vec![None; clients.len()];
        let next_tick = Instant::now() + times.tick;
        Ok(Self { replicas, clients, answers, mesh, times, next_tick, _places: places })
    }

    /// Ends a replica.
    ///
    /// # Errors
    /// [`RunError::Device`], [`RunError::Panicked`].
    pub fn stop(&mut self, number: u32) -> Result<(), RunError> {
        let Some(running) = self.replicas.get_mut(number as usize).and_then(Option::take) else {
            return Ok(());
        };
        running.end().map_err(|it| match it {
            EndError::Machine(error) => RunError::Device(number, error),
            _ => RunError::Panicked(number),
        })
    }

    /// The last answer of a client.
    #[must_use]
    pub fn answer(&self, client: u32) -> Option<&[u8]> {
        self.answers.get(client as usize)?.as_deref()
    }

    /// Makes so many requests in all, each client one at a time, and waits for all answers.
    ///
    /// # Errors
    /// [`RunError::Deadline`]; that of a replica if it has ended by itself.
    pub fn run(&mut self, requests: u64, operation: &[u8]) -> Result<(), RunError> {
        let (mut begun, mut answered) = (0, 0);
        for client in 0..self.clients.len() {
            if begun < requests {
                self.submit(client, operation);
                begun += 1;
            }
        }
        let mut last = Instant::now();
        while answered < requests {
            let wait = self.next_tick.saturating_duration_since(Instant::now());
            if let Arrival::Packet(_, packet) = self.mesh.next(wait) {
                for message in messages(&packet) {
                    let Some(client) = self.receive(message) else {
                        continue;
                    };
                    (answered, last) = (answered + 1, Instant::now());
                    if begun < requests {
                        self.submit(client, operation);
                        begun += 1;
                    }
                }
            }
            if Instant::now() >= self.next_tick {
                self.tick();
            }
            if last.elapsed() >= self.times.deadline {
                self.stop_ended()?;
                return Err(RunError::Deadline(self.times.deadline));
            }
        }
        Ok(())
    }

    /// The failure of a replica that has ended by itself.
    fn stop_ended(&mut self) -> Result<(), RunError> {
        let has_ended = |it: &Option<Running<_>>| it.as_ref().is_some_and(Running::has_ended);
        let ended = (0..).zip(&self.replicas).filter(|it| has_ended(it.1));
        let ended: Vec<u32> = ended.map(|it| it.0).collect();
        ended.into_iter().try_for_each(|number| self.stop(number))
    }

    fn tick(&mut self) {
        self.next_tick = Instant::now() + self.times.tick;
        for client in 0..self.clients.len() {
            self.clients[client].tick();
            self.send(client);
        }
    }

    fn submit(&mut self, client: usize, operation: &[u8]) {
        self.clients[client].submit([0; 16], operation.to_vec());
        self.send(client);
    }

    /// Takes a message, and returns the client that has its answer now.
    fn receive(&mut self, message: &[u8]) -> Option<usize> {
        let (client, reply) = for_client(message)?;
        let client = client as usize;
        let completion = self.clients.get_mut(client)?.receive(reply)?;
        self.answers[client] = completion.result.ok();
        Some(client)
    }

    fn send(&mut self, client: usize) {
        self.clients[client].outputs().into_iter().for_each(|it| send(&mut self.mesh, it));
    }
}

impl Drop for OverSmt {
    fn drop(&mut self) {
        self.replicas.iter().flatten().for_each(Running::close);
        self.mesh.close(GRACE);
    }
}
