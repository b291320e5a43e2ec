// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One server: the live session with it, or the attempt at the next one.

use std::net::SocketAddr;
use std::task::Waker;
use std::time::Duration;

use smt_proto::{ConnectError, ConnectId, Endpoint, Time};
use smt_wire::SessionIndex;

use super::Caller;
use super::backoff::Backoff;
use super::race::{Course, Race};
use crate::builder::Address;
use crate::early_call::EarlyCall;
use crate::error::ErrorKind;

/// A server, as its client has chosen it.
#[derive(Clone, Debug)]
pub(crate) struct ServerChoice {
    pub(crate) address: Address,
    /// The name that it must prove.
    pub(crate) server_name: String,
    /// The time of an attempt, over all addresses.
    pub(crate) deadline: Duration,
}

/// Why there is no session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// The address that the failure is of, if it is one's.
    pub(crate) address: Option<SocketAddr>,
}

impl Failure {
    pub(crate) fn of(kind: impl Into<ErrorKind>) -> Self {
        Self { kind: kind.into(), address: None }
    }

    pub(super) fn at(address: SocketAddr, error: ConnectError) -> Self {
        Self { kind: error.into(), address: Some(address) }
    }
}

/// A server.
pub(super) struct Reconnect {
    choice: ServerChoice,
    session: Option<SessionIndex>,
    attempt: Option<Attempt>,
    attempts: u64,
    /// Calls that the attempt takes along when it first connects.
    early: Vec<EarlyCall>,
    /// Those that the connect of the session has taken along, until they have their names.
    taken_along: Option<(ConnectId, Vec<EarlyCall>)>,
    /// How the last attempt that failed did.
    failure: Option<(u64, Failure)>,
    backoff: Backoff,
    waiting: Vec<Waker>,
    is_closed: bool,
}

/// An attempt in progress.
struct Attempt {
    number: u64,
    due: Time,
    /// Once the addresses are known.
    race: Option<Race>,
}

/// The next need of a server.
pub(super) enum Step {
    /// To be looked after then, if nothing comes before.
    Wait(Time),
    /// Its name resolved, and to be looked after then.
    Resolve { attempt: u64, address: Address, due: Time },
    /// Its attempt has ended.
    Ended,
}

impl Reconnect {
    pub(super) fn new(choice: ServerChoice) -> Self {
        Self {
            choice,
            session: None,
            attempt: None,
            attempts: 0,
            early: Vec::new(),
            taken_along: None,
            failure: None,
            backoff: Backoff::default(),
            waiting: Vec::new(),
            is_closed: false,
        }
    }

    /// From now on no caller gets a session.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The session, if it lives.
    pub(super) fn live(&self, endpoint: &Endpoint) -> Option<SessionIndex> {
        self.session.filter(|session| endpoint.session(*session).is_some())
    }

    /// Why a caller gets no session, and no attempt begins for it: the one that it has waited for
    /// has failed, or the last one did so just now.
    pub(super) fn failure(&self, now: Time, caller: &Caller<'_>) -> Option<Failure> {
        if let Some(failure) = self.failed(*caller.attempt) {
            return Some(failure);
        }
        let is_held = !self.is_attempting() && !caller.is_urgent && self.is_held(now);
        let last = self.failure.as_ref().filter(|_| is_held);
        last.map(|(_, failure)| failure.clone())
    }

    /// Whether an attempt is in progress.
    pub(super) fn is_attempting(&self) -> bool {
        self.attempt.is_some()
    }

    /// Whether an attempt has failed so recently that the next one waits.
    pub(super) fn is_held(&self, now: Time) -> bool {
        self.backoff.holds(now)
    }

    /// Attempts that have begun so far.
    pub(super) fn attempts(&self) -> u64 {
        self.attempts
    }

    /// How the last attempt that has failed did.
    pub(super) fn last_failure(&self) -> Option<Failure> {
        self.failure.as_ref().map(|(_, failure)| failure.clone())
    }

    /// How this attempt has failed, if it was the last one.
    pub(super) fn failed(&self, attempt: Option<u64>) -> Option<Failure> {
        let last = self.failure.as_ref();
        let of = last.filter(|(number, _)| Some(*number) == attempt);
        of.map(|(_, failure)| failure.clone())
    }

    /// The next attempt takes a call along; one that has begun takes none.
    pub(super) fn take_along(&mut self, early: Option<&EarlyCall>) {
        if let Some(early) = early.filter(|early| early.is_alone() && self.attempt.is_none()) {
            self.early.push(early.clone());
        }
    }

    /// Takes the calls that this connect has taken along.
    pub(super) fn take_early(&mut self, connect: ConnectId) -> Option<Vec<EarlyCall>> {
        let taken = self.taken_along.take_if(|(of, _)| *of == connect);
        taken.map(|(_, calls)| calls)
    }

    /// Goes on with the attempt, or begins one.
    pub(super) fn attempt(&mut self, now: Time, endpoint: &mut Endpoint) -> Step {
        let Some(attempt) = &mut self.attempt else {
            return self.begin(now, endpoint);
        };
        let Some(race) = &mut attempt.race else {
            return match attempt.due <= now {
                true => self.fail(now, endpoint, Failure::of(unresolved_in_time())),
                false => Step::Wait(attempt.due),
            };
        };
        if attempt.due + GRACE <= now {
            // The addresses' own deadlines come first, so that this never happens.
            let lost = race.lost();
            return self.fail(now, endpoint, lost);
        }
        let course = Course {
            server_name: &self.choice.server_name,
            due: attempt.due,
            early: &mut self.early,
        };
        match race.advance(now, endpoint, course) {
            Ok(due) => Step::Wait(due),
            Err(failure) => self.fail(now, endpoint, failure),
        }
    }

    /// A caller waits for the attempt, whose number is returned; that of one that has ended just
    /// now, if none is in progress.
    pub(super) fn wait(&mut self, waker: &Waker) -> Option<u64> {
        if self.attempt.is_some() && self.waiting.iter().all(|other| !other.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        Some(self.attempts)
    }

    /// The name was resolved for an attempt, or not.
    pub(super) fn resolved(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        number: u64,
        found: Result<Vec<SocketAddr>, ErrorKind>,
    ) -> Step {
        match &mut self.attempt {
            Some(attempt) if attempt.number == number => match found {
                Ok(addresses) => attempt.race = Some(Race::new(now, addresses)),
                Err(kind) => return self.fail(now, endpoint, Failure::of(kind)),
            },
            // It has ended, which this was not waited for.
            None => return Step::Ended,
            Some(_) => {}
        }
        self.attempt(now, endpoint)
    }

    /// Whether an attempt waits for this connect.
    pub(super) fn waits_for(&self, connect: ConnectId) -> bool {
        let race = self.attempt.as_ref().and_then(|one| one.race.as_ref());
        race.is_some_and(|race| race.runs(connect))
    }

    /// A connect of the attempt has ended.
    pub(super) fn finish(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        connect: ConnectId,
        result: Result<SessionIndex, ConnectError>,
    ) -> Step {
        let error = match result {
            Ok(session) => {
                self.session = Some(session);
                self.backoff.reset();
                let race = self.attempt.as_mut().and_then(|one| one.race.as_mut());
                self.taken_along = race.and_then(|race| race.take_early(connect));
                self.early.clear();
                self.cancel_but(connect, endpoint);
                return Step::Ended;
            }
            Err(error) => error,
        };
        let race = self.attempt.as_mut().and_then(|one| one.race.as_mut());
        match race.map_or(Ok(()), |race| race.fail(connect, error)) {
            Ok(()) => self.attempt(now, endpoint),
            Err(failure) => self.fail(now, endpoint, failure),
        }
    }

    /// This session has no more ids.
    pub(super) fn retire(&mut self, session: SessionIndex) {
        if self.session == Some(session) {
            self.session = None;
        }
    }

    /// Ends the attempt.
    pub(super) fn cancel(&mut self, endpoint: &mut Endpoint) {
        self.early.clear();
        if let Some(mut race) = self.attempt.take().and_then(|attempt| attempt.race) {
            race.cancel(endpoint);
        }
    }

    pub(super) fn take_waiting(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting)
    }

    fn begin(&mut self, now: Time, endpoint: &mut Endpoint) -> Step {
        self.attempts += 1;
        let known = self.choice.address.known();
        let attempt = Attempt {
            number: self.attempts,
            due: now + self.choice.deadline,
            race: (!known.is_empty()).then(|| Race::new(now, known.to_vec())),
        };
        let (number, due) = (attempt.number, attempt.due);
        let is_known = attempt.race.is_some();
        self.attempt = Some(attempt);
        match is_known {
            true => self.attempt(now, endpoint),
            false => Step::Resolve { attempt: number, address: self.choice.address.clone(), due },
        }
    }

    fn fail(&mut self, now: Time, endpoint: &mut Endpoint, failure: Failure) -> Step {
        self.failure = Some((self.attempts, failure));
        self.early.clear();
        self.backoff.fail(now);
        self.cancel(endpoint);
        Step::Ended
    }

    /// The others have lost the race.
    fn cancel_but(&mut self, winner: ConnectId, endpoint: &mut Endpoint) {
        if let Some(mut race) = self.attempt.take().and_then(|attempt| attempt.race) {
            race.win(winner);
            race.cancel(endpoint);
        }
    }
}

fn unresolved_in_time() -> ErrorKind {
    ErrorKind::Unresolved("the resolver did not answer in time".to_owned())
}

/// An attempt ends this long after its time whatever happens.
pub(super) const GRACE: Duration = Duration::from_millis(100);
