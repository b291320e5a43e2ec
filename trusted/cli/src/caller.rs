// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a replicated service over sessions with all its members.

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use smt_mesh::{Arrival, Mesh, Place, SessionError, messages};

use crate::operation::{Operation, of_load, shown};
use crate::source::{ConfigError, ServiceName};

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few members answer.
    #[error(
        "the {members}: no answer of f + 1 of them in {seconds} seconds; the request may have run, \
         or may yet"
    )]
    Deadline { members: &'static str, seconds: u64 },
    /// This process has closed its sessions.
    #[error("this client: its endpoint was closed before an answer came")]
    Ended,
    /// The service has no such operation.
    #[error("your request: the group serves {0}, which has no such operation")]
    OtherService(&'static str),
    /// The operation is longer than the group permits.
    #[error("your request: {0} bytes are more than the group's operation_bytes, {1}")]
    TooLong(usize, usize),
    /// An answer that is none of the service.
    #[error("the group: f + 1 of its members have given an answer that the service does not give")]
    Answer,
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// Standard output failed.
    #[error("the operating system: standard output failed")]
    Output(#[from] io::Error),
}

/// A client's half of a protocol, as a state machine.
pub(crate) trait Protocol {
    /// The word for the members that serve.
    const MEMBERS: &'static str;
    /// Begins a request.
    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>);
    /// Takes a message, and returns the answer when f + 1 members have given it.
    fn receive(&mut self, bytes: &[u8]) -> Option<Vec<u8>>;
    /// Time passes.
    fn tick(&mut self);
    /// Sends what is to be sent.
    fn send(&mut self, mesh: &Mesh);
}

/// The last request number of earlier processes of a client: numbers grow over restarts while the
/// clock does not go back.
pub(crate) fn last_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// A client of the group, and its sessions.
pub(crate) struct Caller<P> {
    protocol: P,
    mesh: Mesh,
    terms: Terms,
}

/// The terms of a client that are not of its protocol.
pub(crate) struct Terms {
    pub(crate) service: ServiceName,
    pub(crate) operation_max: usize,
    pub(crate) tick: Duration,
    pub(crate) deadline_s: u64,
}

impl<P: Protocol> Caller<P> {
    pub(crate) fn open(protocol: P, place: &Place, terms: Terms) -> Result<Self, ClientError> {
        let caller = Self { protocol, mesh: Mesh::open(place)?, terms };
        // Members reply in the session in which a client spoke last: all must know one.
        caller.greet();
        Ok(caller)
    }

    /// Does what the user asks for, and prints each answer.
    pub(crate) fn run(&mut self, operation: Operation) -> Result<(), ClientError> {
        let service = self.terms.service;
        let mut out = io::stdout().lock();
        match operation {
            Operation::Load { count } => {
                let began = Instant::now();
                for number in 0..count {
                    let answer = self.call(of_load(service, number))?;
                    writeln!(out, "{}", shown(service, &answer)?)?;
                    out.flush()?;
                }
                let seconds = began.elapsed().as_secs_f64();
                eprintln!("{count} requests in {seconds:.2} s");
            }
            one => {
                let answer = self.call(one.encode(service)?)?;
                writeln!(out, "{}", shown(service, &answer)?)?;
            }
        }
        Ok(())
    }

    /// Makes a request, and waits for its answer.
    fn call(&mut self, operation: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        let Terms { operation_max, tick, deadline_s: seconds, .. } = self.terms;
        if operation.len() > operation_max {
            return Err(ClientError::TooLong(operation.len(), operation_max));
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(ClientError::Random)?;
        self.protocol.submit(nonce, operation);
        let began = Instant::now();
        let mut next_tick = began + tick;
        loop {
            self.protocol.send(&self.mesh);
            let wait = next_tick.saturating_duration_since(Instant::now());
            match self.mesh.next(wait) {
                Arrival::Packet(_, packet) => {
                    let answer = messages(&packet).find_map(|it| self.protocol.receive(it));
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
                Arrival::Nothing => {}
                Arrival::End => return Err(ClientError::Ended),
            }
            // Also while packets come: a liar's flood keeps no request from being sent again.
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + tick;
                self.protocol.tick();
                // A member that has restarted knows no session.
                self.greet();
            }
            if began.elapsed().as_secs() >= seconds {
                return Err(ClientError::Deadline { members: P::MEMBERS, seconds });
            }
        }
    }

    /// Says nothing to all, so that they know a session.
    fn greet(&self) {
        self.mesh.to_replicas(&[]);
    }
}

impl<P> Drop for Caller<P> {
    fn drop(&mut self) {
        self.mesh.close(Duration::from_millis(200));
    }
}
