// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a replicated service over sessions with all its members.

use std::iter::Peekable;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use smt_mesh::{Arrival, Mesh, Place, messages};
use smt_replica::{Completion, Refusal, is_last_of_session};

use crate::call_error::CallError;
use crate::calls::{Call, Calls};

/// The last session that there is.
const SESSION_MAX: u64 = (1 << 42) - 1;

/// A client's half of a protocol, as a state machine.
pub trait ClientProtocol {
    /// The word for the members that serve.
    const MEMBERS: &'static str;
    /// Begins a session with a request that executes nothing, and returns its number. Nothing if
    /// the protocol has no sessions.
    fn begin_session(&mut self, nonce: [u8; 16], session: u64) -> Option<u64>;
    /// Begins a request, and returns its number. Nothing if no more may be in progress.
    fn submit(&mut self, nonce: [u8; 16], operation: Vec<u8>) -> Option<u64>;
    /// Leaves a request.
    fn give_up(&mut self, number: u64);
    /// Accepts a message, and returns the end of a request when f + 1 members agree on it.
    fn receive(&mut self, bytes: &[u8]) -> Option<Completion>;
    /// Time passes.
    fn tick(&mut self);
    /// Sends what is to be sent.
    fn send(&mut self, mesh: &mut Mesh);
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A client of the group, and its sessions.
pub struct Caller<P> {
    protocol: P,
    mesh: Mesh,
    terms: Terms,
    /// The session in which requests are made, if one was begun.
    session: Option<u64>,
    next_tick: Instant,
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

/// The choice of a session that is later than all others of the client.
struct Choice {
    session: u64,
    step: u64,
}

impl Choice {
    /// The group has refused the session. One of those that say so may lie, and name none that is
    /// later: the steps grow.
    fn refused(&mut self, refusal: &Refusal) {
        let latest = self.session.max(refusal.newest);
        self.session = latest.saturating_add(self.step).min(SESSION_MAX);
        self.step = self.step.saturating_mul(2);
    }
}

impl<P: ClientProtocol> Caller<P> {
    /// Opens sessions.
    ///
    /// # Errors
    /// [`CallError::Session`]
    pub fn open(protocol: P, place: &Place, terms: Terms) -> Result<Self, CallError> {
        let (mesh, next_tick) = (Mesh::open(place)?, Instant::now() + terms.tick);
        let mut caller = Self { protocol, mesh, terms, session: None, next_tick };
        // Members reply in the sessions in which a client spoke last: all must know one.
        caller.greet();
        Ok(caller)
    }

    /// Makes a request, and waits for its answer.
    ///
    /// # Errors
    /// [`CallError`]
    pub fn call(&mut self, operation: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let mut answer = Vec::new();
        self.call_all([operation], 1, |_, it| {
            answer = it;
            Ok::<(), CallError>(())
        })?;
        Ok(answer)
    }

    /// Makes requests, up to `in_progress` at a time, and hands out each answer as it comes, with
    /// the place of its operation, from 0.
    ///
    /// # Errors
    /// [`CallError`] of the first request that has no answer, and those of `answered`. Others in
    /// progress may run.
    pub fn call_all<E: From<CallError>>(
        &mut self,
        operations: impl IntoIterator<Item = Vec<u8>>,
        in_progress: usize,
        mut answered: impl FnMut(usize, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut operations = operations.into_iter().enumerate().peekable();
        let mut calls = Calls::default();
        let ended = loop {
            if let Err(error) = self.submit_next(&mut operations, &mut calls, in_progress) {
                break Err(error.into());
            }
            if calls.is_idle() {
                let is_done = calls.again.is_empty() && operations.peek().is_none();
                return if is_done { Ok(()) } else { Err(CallError::NotBegun.into()) };
            }
            let ended = self.step(calls.oldest()).map_err(E::from).and_then(|completions| {
                let mut completions = completions.into_iter();
                completions.try_for_each(|it| {
                    calls.end((it, P::MEMBERS), &mut self.session, &mut answered)
                })
            });
            if ended.is_err() {
                break ended;
            }
        };
        calls.in_progress.keys().for_each(|number| self.protocol.give_up(*number));
        ended
    }

    /// Begins requests until there are as many as there may be. Those that did not run in a session
    /// that is over come first, in a new one, which has to wait for the end of all others.
    fn submit_next(
        &mut self,
        operations: &mut Peekable<impl Iterator<Item = (usize, Vec<u8>)>>,
        calls: &mut Calls,
        in_progress: usize,
    ) -> Result<(), CallError> {
        while calls.in_progress.len() < in_progress.max(1) {
            let again = calls.again.front().map(|it| &it.operation);
            let next = again.or_else(|| operations.peek().map(|it| &it.1));
            let is_new_session = self.session.is_none();
            let Some(operation) = next.filter(|_| !is_new_session || calls.is_idle()) else {
                return Ok(());
            };
            let Some(number) = self.submit(operation)? else {
                return Ok(());
            };
            let again = calls.again.pop_front();
            let next = again.or_else(|| operations.next().map(Call::new));
            calls.in_progress.extend(next.map(|it| (number, it)));
        }
        Ok(())
    }

    fn submit(&mut self, operation: &[u8]) -> Result<Option<u64>, CallError> {
        if operation.len() > self.terms.operation_max {
            return Err(CallError::TooLong(operation.len(), self.terms.operation_max));
        }
        if self.session.is_none() {
            self.session = Some(self.begin_session()?);
        }
        let number = self.protocol.submit(nonce()?, operation.to_vec());
        // The number after the last one of a session is in another one.
        if number.is_some_and(is_last_of_session) {
            self.session = None;
        }
        Ok(number)
    }

    /// Begins a session that is later than all of this client. The clock is no more than a guess:
    /// a group that knows later ones says so, and two processes that guess alike have two sessions.
    fn begin_session(&mut self) -> Result<u64, CallError> {
        let began = Instant::now();
        let clock = u64::try_from(since_1970().as_millis()).unwrap_or(SESSION_MAX);
        let mut choice = Choice { session: clock.min(SESSION_MAX), step: 1 };
        loop {
            let session = choice.session;
            let Some(first) = self.protocol.begin_session(nonce()?, session) else {
                return Ok(session);
            };
            let refusal = loop {
                let completions = self.step(Some(began)).map_err(not_sent)?;
                let first = completions.into_iter().find(|it| it.number == first);
                match first.map(|it| it.result) {
                    Some(Ok(_)) => return Ok(session),
                    Some(Err(refusal)) => break refusal,
                    None => {}
                }
            };
            choice.refused(&refusal);
        }
    }

    /// Sends, waits for the next packet or tick, and returns the requests that have ended.
    fn step(&mut self, oldest: Option<Instant>) -> Result<Vec<Completion>, CallError> {
        let seconds = self.terms.deadline_s;
        if oldest.is_some_and(|it| it.elapsed().as_secs() >= seconds) {
            return Err(CallError::Deadline { members: P::MEMBERS, seconds, is_sent: true });
        }
        self.protocol.send(&mut self.mesh);
        let wait = self.next_tick.saturating_duration_since(Instant::now());
        let completions = match self.mesh.next(wait) {
            Arrival::Packet(_, packet) => {
                messages(&packet).filter_map(|it| self.protocol.receive(it)).collect()
            }
            Arrival::Nothing => Vec::new(),
            Arrival::End => return Err(CallError::Ended),
        };
        // Also while packets come: a liar's flood keeps no request from being sent again.
        if Instant::now() >= self.next_tick {
            self.next_tick = Instant::now() + self.terms.tick;
            self.protocol.tick();
            // A member that has restarted knows no session.
            self.greet();
        }
        Ok(completions)
    }

    /// Says nothing to all, so that they know a session.
    fn greet(&mut self) {
        self.mesh.to_replicas(&[]);
        self.mesh.flush();
    }
}

fn nonce() -> Result<[u8; 16], CallError> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(CallError::Random)?;
    Ok(nonce)
}

/// A deadline in whose time the request was not sent.
fn not_sent(error: CallError) -> CallError {
    match error {
        CallError::Deadline { members, seconds, .. } => {
            CallError::Deadline { members, seconds, is_sent: false }
        }
        other => other,
    }
}

impl<P> Drop for Caller<P> {
    fn drop(&mut self) {
        self.mesh.close(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use smt_replica::RefusalReason;

    use super::*;
    use crate::test_mesh::mesh;

    /// A protocol that begins no request.
    struct Full;

    impl ClientProtocol for Full {
        const MEMBERS: &'static str = "replicas";

        fn begin_session(&mut self, _: [u8; 16], _: u64) -> Option<u64> {
            None
        }

        fn submit(&mut self, _: [u8; 16], _: Vec<u8>) -> Option<u64> {
            None
        }

        fn give_up(&mut self, _: u64) {}

        fn receive(&mut self, _: &[u8]) -> Option<Completion> {
            None
        }

        fn tick(&mut self) {}

        fn send(&mut self, _: &mut Mesh) {}
    }

    // Once, it returned as if all had their answers.
    #[test]
    fn operations_of_which_the_protocol_begins_none_end_with_an_error() {
        let terms = Terms { operation_max: 8, tick: Duration::from_secs(1), deadline_s: 1 };
        let (mesh, next_tick) = (mesh("caller"), Instant::now());
        let mut caller = Caller { protocol: Full, mesh, terms, session: None, next_tick };
        let none = caller.call_all([], 4, |_, _| Ok::<(), CallError>(()));
        assert!(none.is_ok());
        let ended = caller.call_all([vec![1]], 4, |_, _| Ok::<(), CallError>(()));
        assert!(matches!(ended, Err(CallError::NotBegun)), "{ended:?}");
    }

    fn refusal(newest: u64) -> Refusal {
        let reason = RefusalReason::SessionIsOver;
        Refusal { reason, may_have_run: true, newest }
    }

    #[test]
    fn a_client_whose_clock_went_back_begins_a_session_after_the_newest() {
        let mut choice = Choice { session: 1_000, step: 1 };
        choice.refused(&refusal(1_700_000_000_000));
        assert_eq!(choice.session, 1_700_000_000_001);
    }

    #[test]
    fn a_liar_that_names_no_later_session_keeps_no_client_out() {
        let mut choice = Choice { session: 1_000, step: 1 };
        let newest = 1_700_000_000_000;
        let tries = (1..).find(|_| {
            choice.refused(&refusal(0));
            choice.session > newest
        });
        assert!(tries.is_some_and(|it| it <= 42), "{tries:?}");
        (0..100).for_each(|_| choice.refused(&refusal(u64::MAX)));
        assert_eq!(choice.session, SESSION_MAX);
    }
}
