// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a replicated service over sessions with all its members.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use smt_mesh::{Arrival, Mesh, Place, SessionError, messages};

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few members answer.
    #[error(
        "the {members}: no answer of f + 1 of them in {seconds} seconds; the request may have run, \
         or may yet"
    )]
    Deadline {
        /// The word for them.
        members: &'static str,
        /// How long they had.
        seconds: u64,
    },
    /// This process has closed its sessions.
    #[error("this client: its endpoint was closed before an answer came")]
    Ended,
    /// The operation is longer than the group permits.
    #[error("your request: {0} bytes are more than the group's operation_bytes, {1}")]
    TooLong(usize, usize),
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A client's half of a protocol, as a state machine.
pub trait ClientProtocol {
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
pub fn last_number() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// A client of the group, and its sessions.
pub struct Caller<P> {
    protocol: P,
    mesh: Mesh,
    terms: Terms,
}

/// The terms of a client that are not of its protocol.
pub struct Terms {
    /// The longest operation that the group permits, in bytes.
    pub operation_max: usize,
    /// Between two ticks.
    pub tick: Duration,
    /// Seconds after which a request is given up.
    pub deadline_s: u64,
}

impl<P: ClientProtocol> Caller<P> {
    /// Opens sessions.
    ///
    /// # Errors
    /// [`CallError::Session`]
    pub fn open(protocol: P, place: &Place, terms: Terms) -> Result<Self, CallError> {
        let caller = Self { protocol, mesh: Mesh::open(place)?, terms };
        // Members reply in the session in which a client spoke last: all must know one.
        caller.greet();
        Ok(caller)
    }

    /// Makes a request, and waits for its answer.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn call(&mut self, operation: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let Terms { operation_max, tick, deadline_s: seconds } = self.terms;
        if operation.len() > operation_max {
            return Err(CallError::TooLong(operation.len(), operation_max));
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(CallError::Random)?;
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
                Arrival::End => return Err(CallError::Ended),
            }
            // Also while packets come: a liar's flood keeps no request from being sent again.
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + tick;
                self.protocol.tick();
                // A member that has restarted knows no session.
                self.greet();
            }
            if began.elapsed().as_secs() >= seconds {
                return Err(CallError::Deadline { members: P::MEMBERS, seconds });
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
