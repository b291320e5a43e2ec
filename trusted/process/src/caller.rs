// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests to a replicated service over sessions with all its members.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use smt_mesh::{Arrival, Mesh, Place, SessionError, messages};
use smt_replica::{Completion, Refusal, RefusalReason, is_last_of_session};

/// The last session that there is.
const SESSION_MAX: u64 = (1 << 42) - 1;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few members answer.
    #[error(
        "the {members}: no answer of f + 1 of them in {seconds} seconds; the request {}",
        if *.is_sent { "may have run, or may yet" } else { "was not sent" }
    )]
    Deadline {
        /// The word for them.
        members: &'static str,
        /// How long they had.
        seconds: u64,
        /// Whether the request was sent: what begins a session goes before it.
        is_sent: bool,
    },
    /// The group does not execute the request.
    #[error("the {members}: {}; the request {}", reason(refusal), fate(refusal))]
    Refused {
        /// The word for them.
        members: &'static str,
        /// The refusal.
        refusal: Refusal,
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

fn reason(refusal: &Refusal) -> &'static str {
    match refusal.reason {
        RefusalReason::SessionIsOver => {
            "this client's session is over, since eight others of the client were used after it"
        }
        RefusalReason::NumberIsTooLow => "the request's number is too low for its session",
        RefusalReason::NumberIsUsed => "another request of this client had the request's number",
        RefusalReason::AnswerIsGone => "the request's answer is no longer kept",
    }
}

fn fate(refusal: &Refusal) -> &'static str {
    match (refusal.reason, refusal.may_have_run) {
        (RefusalReason::AnswerIsGone, _) => "has run",
        (_, true) => "may have run, and will not run again",
        (_, false) => "did not run, and will not",
    }
}

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
    fn send(&mut self, mesh: &Mesh);
}

/// The last request number of earlier processes of a client, for a protocol without sessions:
/// numbers grow over restarts while the clock does not go back.
pub fn last_number() -> u64 {
    u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX)
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

/// A request that waits for its end.
struct Call {
    /// Its place among the operations.
    place: usize,
    operation: Vec<u8>,
    began: Instant,
}

/// Requests that have not ended.
#[derive(Default)]
struct Calls {
    in_progress: BTreeMap<u64, Call>,
    /// Places and operations of requests that did not run in a session that is over.
    again: VecDeque<(usize, Vec<u8>)>,
}

impl Calls {
    fn is_idle(&self) -> bool {
        self.in_progress.is_empty()
    }

    fn oldest(&self) -> Option<Instant> {
        self.in_progress.values().map(|it| it.began).min()
    }

    /// Takes the end of a request. One that did not run is made again. A refusal ends the session.
    fn end<E: From<CallError>>(
        &mut self,
        (completion, members): (Completion, &'static str),
        session: &mut Option<u64>,
        mut answered: impl FnMut(usize, Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(call) = self.in_progress.remove(&completion.number) else {
            return Ok(());
        };
        let refusal = match completion.result {
            Ok(answer) => return answered(call.place, answer),
            Err(refusal) => refusal,
        };
        *session = None;
        match refusal.may_have_run {
            true => Err(CallError::Refused { members, refusal }.into()),
            false => {
                self.again.push_back((call.place, call.operation));
                Ok(())
            }
        }
    }
}

impl<P: ClientProtocol> Caller<P> {
    /// Opens sessions.
    ///
    /// # Errors
    /// [`CallError::Session`]
    pub fn open(protocol: P, place: &Place, terms: Terms) -> Result<Self, CallError> {
        let (mesh, next_tick) = (Mesh::open(place)?, Instant::now() + terms.tick);
        let caller = Self { protocol, mesh, terms, session: None, next_tick };
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
                return Ok(());
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
            let next = calls.again.front().or_else(|| operations.peek());
            let is_new_session = self.session.is_none();
            let Some((_, operation)) = next.filter(|_| !is_new_session || calls.is_idle()) else {
                return Ok(());
            };
            let Some(number) = self.submit(operation)? else {
                return Ok(());
            };
            let next = calls.again.pop_front().or_else(|| operations.next());
            calls.in_progress.extend(next.map(|(place, operation)| {
                (number, Call { place, operation, began: Instant::now() })
            }));
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
        self.protocol.send(&self.mesh);
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
    fn greet(&self) {
        self.mesh.to_replicas(&[]);
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
    use super::*;

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

    // Once, a session that was over for so long that the group no longer knew it stayed that of the
    // process, whose requests were refused ever after.
    #[test]
    fn a_request_after_any_refusal_is_made_in_another_session() {
        for may_have_run in [true, false] {
            let call = Call { place: 3, operation: vec![1], began: Instant::now() };
            let mut calls = Calls::default();
            calls.in_progress.insert(7, call);
            let refusal = Refusal { may_have_run, ..refusal(9) };
            let completion = Completion { number: 7, result: Err(refusal) };
            let mut session = Some(5);
            let ended =
                calls.end((completion, "replicas"), &mut session, |_, _| Ok::<(), CallError>(()));
            assert_eq!((ended.is_err(), session), (may_have_run, None));
            assert_eq!(calls.again.is_empty(), may_have_run, "one that did not run is made again");
        }
    }

    #[test]
    fn a_refusal_says_by_name_whether_the_request_ran() {
        let text = |reason, may_have_run| {
            let refusal = Refusal { reason, may_have_run, newest: 0 };
            CallError::Refused { members: "replicas", refusal }.to_string()
        };
        assert_eq!(
            text(RefusalReason::NumberIsUsed, false),
            "the replicas: another request of this client had the request's number; the request \
             did not run, and will not"
        );
        let over = text(RefusalReason::SessionIsOver, true);
        assert!(over.ends_with("may have run, and will not run again"), "{over}");
        assert!(text(RefusalReason::AnswerIsGone, true).ends_with("has run"));
    }
}
