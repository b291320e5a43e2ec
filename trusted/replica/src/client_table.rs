// SPDX-License-Identifier: Apache-2.0 OR MIT
//! At most once: the requests of each client that were executed, and their answers.
//!
//! A client's processes have a session each, and a session has several requests in progress
//! (as RIFL's, Lee et al., SOSP 2015, whose leases are here the sessions that were used last).
//! A request's number has its session in the upper bits and its place in the session below
//! ([`session_of`]). The word of a table on a request follows from the requests that were executed
//! before, and from nothing else: all nodes with the same log say the same.
//!
//! All is bounded: of each client 8 sessions are open, and 256 that are over are known by name. The
//! answers of 32 numbers of a session are kept, and of each client no more than 256 KiB.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::request::Request;

/// Bits of a request's number below its session.
const PLACE_BITS: u32 = 22;

/// Requests of a session that may be in progress at once. The number of a request tells that all
/// that are so many below it have their answers, or were given up.
pub const IN_PROGRESS_MAX: u64 = 32;

/// Sessions of a client that are open at once. One more ends the one that was used least recently.
pub const SESSIONS_MAX: usize = 8;

/// Sessions of a client that are over and still known.
const OVER_MAX: usize = 256;

/// Bytes of the answers of a client that are kept, beside its last one.
const ANSWER_BYTES_MAX: u64 = 256 << 10;

/// The session of a request's number.
#[must_use]
pub fn session_of(number: u64) -> u64 {
    number >> PLACE_BITS
}

/// The number that begins a session. A request with it executes nothing.
#[must_use]
pub fn first_number(session: u64) -> u64 {
    session << PLACE_BITS
}

/// The last number of a session.
pub(crate) fn last_number(session: u64) -> u64 {
    first_number(session) | ((1 << PLACE_BITS) - 1)
}

/// Whether no further number is in the session of this one.
#[must_use]
pub fn is_last_of_session(number: u64) -> bool {
    number == last_number(session_of(number))
}

/// Why a request is not executed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum RefusalReason {
    /// The session is over: others of the client were used after it.
    SessionIsOver,
    /// Its number is [`IN_PROGRESS_MAX`] or more below the highest of its session.
    NumberIsTooLow,
    /// Another request of the client had this number.
    NumberIsUsed,
    /// It was executed, and its answer is no longer kept.
    AnswerIsGone,
}

/// A refusal: the request is never executed from now on.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Refusal {
    /// The reason.
    pub reason: RefusalReason,
    /// Whether it may have been executed before. If not, it never was.
    pub may_have_run: bool,
    /// The newest session of the client. A later one is open to it.
    pub newest: u64,
}

/// One of the places for the refusals of a client. Anybody may send again what a client has signed
/// once: each session that is known has places of its own, so that no old request of another one
/// has them. All older sessions share theirs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RefusalPlace {
    client: u32,
    session: Option<u64>,
    place: u64,
    reason: RefusalReason,
}

/// The word of a table on a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing<'a, T> {
    /// It was not executed, and may be.
    New,
    /// It was executed.
    Answered(&'a T),
    /// It is not executed any more.
    Refused(Refusal),
}

/// The executed requests of all clients, with a value for each whose answer is kept.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientTable<T>(BTreeMap<u32, Sessions<T>>);

/// The sessions of a client.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Sessions<T> {
    open: BTreeMap<u64, Session<T>>,
    /// The highest number of each session that is over.
    over: BTreeMap<u64, u64>,
    /// All sessions below this one that are not open are over.
    floor: u64,
    /// How many requests of the client were executed.
    uses: u64,
    /// Bytes of the answers that are kept.
    bytes: u64,
}

/// An open session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Session<T> {
    highest: u64,
    /// The last use of the client that was one of this session.
    used: u64,
    ran: BTreeMap<u64, Ran<T>>,
}

/// An executed request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Ran<T> {
    request: Digest,
    used: u64,
    bytes: u64,
    value: Option<T>,
}

/// All that a number says of a request.
enum Fate<'a, T> {
    New,
    /// A request with this number was executed.
    Ran(&'a Ran<T>),
    /// The reason, and whether a request with this number may have been executed before.
    Refused(RefusalReason, bool),
}

impl<T> Default for ClientTable<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Default for Sessions<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), over: BTreeMap::new(), floor: 0, uses: 0, bytes: 0 }
    }
}

impl<T> ClientTable<T> {
    /// The word on a request.
    #[must_use]
    pub fn standing(&self, request: &Request) -> Standing<'_, T> {
        match self.0.get(&request.client) {
            Some(sessions) => sessions.standing(request),
            None => Standing::New,
        }
    }

    /// Whether a request was not executed, and may be. Its number alone decides that: a look at all
    /// requests that wait hashes none of them.
    #[must_use]
    pub fn is_new(&self, request: &Request) -> bool {
        let of_client = self.0.get(&request.client);
        of_client.is_none_or(|it| matches!(it.fate(request.number), Fate::New))
    }

    /// The place for the refusal of a request.
    #[must_use]
    pub fn refusal_place(&self, request: &Request, refusal: &Refusal) -> RefusalPlace {
        let (client, place) = (request.client, request.number % IN_PROGRESS_MAX);
        let session = session_of(request.number);
        let of_client = self.0.get(&client);
        let is_known = of_client
            .is_some_and(|it| it.open.contains_key(&session) || it.over.contains_key(&session));
        let session = is_known.then_some(session);
        RefusalPlace { client, session, place, reason: refusal.reason }
    }

    /// Notes that a request was executed whose answer has so many bytes. Returns the values of the
    /// answers that are kept no longer.
    pub fn note(&mut self, request: &Request, value: T, bytes: usize) -> Vec<T> {
        let sessions = self.0.entry(request.client).or_default();
        let mut dropped = sessions.note(request, value, bytes as u64);
        dropped.extend(sessions.end_oldest());
        dropped.extend(sessions.drop_answers());
        dropped
    }
}

impl<T> Sessions<T> {
    fn standing(&self, request: &Request) -> Standing<'_, T> {
        let (reason, may_have_run) = match self.fate(request.number) {
            Fate::New => return Standing::New,
            Fate::Refused(reason, may_have_run) => (reason, may_have_run),
            Fate::Ran(ran) if ran.request != request.digest() => {
                (RefusalReason::NumberIsUsed, false)
            }
            Fate::Ran(Ran { value: Some(value), .. }) => return Standing::Answered(value),
            Fate::Ran(_) => (RefusalReason::AnswerIsGone, true),
        };
        Standing::Refused(Refusal { reason, may_have_run, newest: self.newest() })
    }

    fn fate(&self, number: u64) -> Fate<'_, T> {
        let session = session_of(number);
        let Some(open) = self.open.get(&session) else {
            return match self.over.get(&session) {
                Some(highest) => Fate::Refused(RefusalReason::SessionIsOver, number <= *highest),
                None if session < self.floor => Fate::Refused(RefusalReason::SessionIsOver, true),
                None => Fate::New,
            };
        };
        match open.ran.get(&number) {
            Some(ran) => Fate::Ran(ran),
            None if is_too_low(number, open.highest) => {
                Fate::Refused(RefusalReason::NumberIsTooLow, true)
            }
            None => Fate::New,
        }
    }

    fn newest(&self) -> u64 {
        let open = self.open.last_key_value().map_or(0, |it| *it.0);
        let over = self.over.last_key_value().map_or(0, |it| *it.0);
        open.max(over)
    }

    fn note(&mut self, request: &Request, value: T, bytes: u64) -> Vec<T> {
        self.uses += 1;
        let (number, used) = (request.number, self.uses);
        let new = || Session { highest: number, used, ran: BTreeMap::new() };
        let session = self.open.entry(session_of(number)).or_insert_with(new);
        session.highest = session.highest.max(number);
        session.used = used;
        let ran = Ran { request: request.digest(), used, bytes, value: Some(value) };
        self.bytes += bytes;
        let before = session.ran.insert(number, ran);
        let highest = session.highest;
        let kept = session.ran.split_off(&highest.saturating_sub(IN_PROGRESS_MAX - 1));
        let low = std::mem::replace(&mut session.ran, kept).into_values();
        self.forget(before.into_iter().chain(low))
    }

    /// Ends the session that was used least recently, if there are too many.
    fn end_oldest(&mut self) -> Vec<T> {
        if self.open.len() <= SESSIONS_MAX {
            return Vec::new();
        }
        let oldest = self.open.iter().min_by_key(|it| it.1.used).map(|it| *it.0);
        let ended = oldest.and_then(|session| Some((session, self.open.remove(&session)?)));
        let Some((session, ended)) = ended else {
            return Vec::new();
        };
        self.over.insert(session, ended.highest);
        if self.over.len() > OVER_MAX
            && let Some((lowest, _)) = self.over.pop_first()
        {
            self.floor = self.floor.max(lowest + 1);
        }
        self.forget(ended.ran.into_values())
    }

    /// Drops the oldest answers while there are too many bytes of them, but for the last one.
    fn drop_answers(&mut self) -> Vec<T> {
        let mut dropped = Vec::new();
        while self.bytes > ANSWER_BYTES_MAX {
            let ran = self.open.values_mut().flat_map(|it| it.ran.values_mut());
            let kept = ran.filter(|it| it.value.is_some() && it.used != self.uses);
            let Some(oldest) = kept.min_by_key(|it| it.used) else {
                break;
            };
            self.bytes -= std::mem::take(&mut oldest.bytes);
            dropped.extend(oldest.value.take());
        }
        dropped
    }

    fn forget(&mut self, ran: impl Iterator<Item = Ran<T>>) -> Vec<T> {
        let mut values = Vec::new();
        for it in ran {
            self.bytes -= it.bytes;
            values.extend(it.value);
        }
        values
    }
}

fn is_too_low(number: u64, highest: u64) -> bool {
    number.saturating_add(IN_PROGRESS_MAX) <= highest
}

#[cfg(test)]
mod tests;
