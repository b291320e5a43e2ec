// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread of a replica, and its endpoint.

use std::fmt::Display;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smt_bft::Output;
use smt_mesh::{Arrival, Closer, Member, Mesh, Place, SessionError, messages};

use crate::machine::{Machine, Sender};
use crate::places::CLIENTS;

/// Packets after which a replica answers what it has taken.
const TOGETHER_MAX: usize = 4096;
/// For messages on their way when an endpoint closes.
const GRACE: Duration = Duration::from_millis(100);

/// A replica in its thread.
#[derive(Debug)]
pub struct Running<E> {
    closer: Closer,
    /// Until its end was waited for.
    thread: Option<JoinHandle<Result<(), E>>>,
}

/// A replica that is given up is asked to end, and is not waited for.
impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.closer.end();
        }
    }
}

/// Why a replica has not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its endpoint cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// It cannot be made.
    #[error("{0}")]
    Machine(String),
    /// Its thread has panicked.
    #[error("its thread has panicked")]
    Panicked,
}

/// Why a replica has ended without being asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndError<E> {
    /// Its state machine has said so.
    #[error("{0}")]
    Machine(E),
    /// Its thread has panicked.
    #[error("its thread has panicked")]
    Panicked,
}

impl<E: Send + 'static> Running<E> {
    /// Opens the endpoint, and has `make` make the replica in its own thread, which it need not
    /// leave.
    ///
    /// # Errors
    /// [`StartError`]
    pub fn start<M: Machine<Error = E>, F: Display>(
        place: &Place,
        tick: Duration,
        make: impl FnOnce() -> Result<M, F> + Send + 'static,
    ) -> Result<Self, StartError> {
        let mut mesh = Mesh::open(place)?;
        let closer = mesh.closer();
        let (sender, made) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let made = make().map_err(|it| it.to_string());
            let (machine, told) = match made {
                Ok(machine) => (Some(machine), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // The one that waits for it is there until then.
            let _ = sender.send(told);
            let ended = machine.map_or(Ok(()), |mut it| serve(&mut it, &mut mesh, tick));
            mesh.close(GRACE);
            ended
        });
        made.recv().map_err(|_| StartError::Panicked)?.map_err(StartError::Machine)?;
        Ok(Self { closer, thread: Some(thread) })
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks for the end, and does not wait for it.
    pub fn close(&self) {
        self.closer.end();
    }

    /// Ends the replica.
    ///
    /// # Errors
    /// It had ended before.
    pub fn end(mut self) -> Result<(), EndError<E>> {
        self.closer.end();
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        thread.join().map_err(|_| EndError::Panicked)?.map_err(EndError::Machine)
    }
}

/// Works until the end is asked for.
fn serve<M: Machine>(machine: &mut M, mesh: &mut Mesh, tick: Duration) -> Result<(), M::Error> {
    let mut next_tick = Instant::now() + tick;
    loop {
        machine.outputs()?.into_iter().for_each(|it| send(mesh, it));
        let mut wait = next_tick.saturating_duration_since(Instant::now());
        for _ in 0..TOGETHER_MAX {
            match mesh.next(wait) {
                Arrival::Packet(member, packet) => {
                    let from = match member {
                        Member::Replica(number) => Sender::Replica(number),
                        Member::Client(_) => Sender::Client,
                    };
                    // An empty message tells of a session alone.
                    let all = messages(&packet).filter(|it| !it.is_empty());
                    all.for_each(|it| machine.receive(from, it));
                }
                Arrival::Nothing => break,
                Arrival::End => return Ok(()),
            }
            // Only those that are there already are taken together.
            wait = Duration::ZERO;
        }
        if Instant::now() >= next_tick {
            machine.tick();
            next_tick = Instant::now() + tick;
        }
    }
}

/// Sends an output of a replica or of a client.
pub fn send(mesh: &mut Mesh, output: Output) {
    match output {
        Output::Node(to, bytes) => mesh.to_replica(to, bytes),
        Output::Nodes(bytes) => mesh.to_replicas(&bytes),
        Output::Client(client, bytes) => {
            let mut named = Vec::from(client.to_be_bytes());
            named.extend(bytes);
            mesh.to_client(CLIENTS, named);
        }
    }
}

/// The client that a message is for, and the replica's bytes.
#[must_use]
pub fn for_client(message: &[u8]) -> Option<(u32, &[u8])> {
    let (client, bytes) = message.split_first_chunk()?;
    Some((u32::from_be_bytes(*client), bytes))
}
