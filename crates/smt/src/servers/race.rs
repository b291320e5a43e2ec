// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The race between the addresses of a server (RFC 8305, "happy eyeballs"): the next address is
//! tried when the one before has failed, or has not answered for some time; the first session wins.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use smt_carrier::Path;
use smt_proto::key_exchange::Fault;
use smt_proto::{ConnectError, ConnectId, ConnectRequest, Endpoint, Time};

use super::reconnect::{Failure, GRACE};
use crate::early_call::EarlyCall;

/// The addresses of an attempt.
#[derive(Debug)]
pub(super) struct Race {
    left: VecDeque<SocketAddr>,
    running: Vec<(ConnectId, SocketAddr)>,
    /// The next address is tried then, if none has answered.
    next: Time,
    /// The failure so far that says most.
    failure: Option<(SocketAddr, ConnectError)>,
    /// The connect that has taken calls along, which is the first, and those calls.
    early: Option<(ConnectId, Vec<EarlyCall>)>,
}

/// The server of a race.
pub(super) struct Course<'a> {
    pub(super) server_name: &'a str,
    /// The end of the race.
    pub(super) due: Time,
    /// Calls that the first connect takes along.
    pub(super) early: &'a mut Vec<EarlyCall>,
}

impl Race {
    pub(super) fn new(now: Time, addresses: Vec<SocketAddr>) -> Self {
        Self {
            left: interleaved(addresses),
            running: Vec::new(),
            next: now,
            failure: None,
            early: None,
        }
    }

    /// Tries the addresses whose turn it is. Returns when the next one's is.
    ///
    /// # Errors
    /// All have failed, or one has in a way that holds for all.
    pub(super) fn advance(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        course: Course<'_>,
    ) -> Result<Time, Failure> {
        while self.running.is_empty() || self.next <= now {
            let Some(address) = self.left.pop_front() else {
                break;
            };
            self.next = now + STAGGER;
            let early = std::mem::take(course.early);
            let wanted = ConnectRequest {
                path: Path::to(address),
                server_name: course.server_name,
                deadline: course.due.since(now),
                calls: early.iter().map(|early| early.call(now)).collect(),
            };
            match endpoint.connect_with_calls(now, wanted) {
                Ok(connect) => {
                    self.running.push((connect, address));
                    if !early.is_empty() {
                        self.early = Some((connect, early));
                    }
                }
                Err(error) => self.note(address, error)?,
            }
        }
        if self.running.is_empty() {
            return Err(self.lost());
        }
        Ok(match self.left.is_empty() {
            true => course.due + GRACE,
            false => self.next,
        })
    }

    /// Takes the calls that this connect has taken along.
    pub(super) fn take_early(&mut self, connect: ConnectId) -> Option<(ConnectId, Vec<EarlyCall>)> {
        self.early.take_if(|(of, _)| *of == connect)
    }

    pub(super) fn runs(&self, connect: ConnectId) -> bool {
        self.running.iter().any(|(of, _)| *of == connect)
    }

    /// An address has failed.
    ///
    /// # Errors
    /// The failure holds for all addresses.
    pub(super) fn fail(&mut self, connect: ConnectId, error: ConnectError) -> Result<(), Failure> {
        let at = self.running.iter().position(|(of, _)| *of == connect);
        match at.map(|at| self.running.swap_remove(at)) {
            Some((_, address)) => self.note(address, error),
            None => Ok(()),
        }
    }

    /// This address is not given up with the others.
    pub(super) fn win(&mut self, connect: ConnectId) {
        self.running.retain(|(of, _)| *of != connect);
    }

    /// Gives the addresses up that have not answered yet.
    pub(super) fn cancel(&mut self, endpoint: &mut Endpoint) {
        for (connect, _) in self.running.drain(..) {
            endpoint.cancel_connect(connect);
        }
        self.left.clear();
    }

    /// The failure of the whole race.
    pub(super) fn lost(&mut self) -> Failure {
        match self.failure.take() {
            Some((address, error)) => Failure::at(address, error),
            None => Failure::of(ConnectError::NoServer),
        }
    }

    fn note(&mut self, address: SocketAddr, error: ConnectError) -> Result<(), Failure> {
        tracing::debug!(%address, %error, "an address of the server does not do");
        let says = says(&error);
        if says == Says::All {
            return Err(Failure::at(address, error));
        }
        let before = self.failure.as_ref();
        if before.is_none_or(|(_, before)| self::says(before) <= says) {
            self.failure = Some((address, error));
        }
        Ok(())
    }
}

/// Both families in turn, each in the system's order, the first one's first (RFC 8305 §4).
fn interleaved(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let is_first_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_first_v6);
    let (mut families, mut all) = ([first, second], VecDeque::new());
    while families.iter().any(|family| !family.is_empty()) {
        all.extend(families.iter_mut().filter_map(VecDeque::pop_front));
    }
    all
}

/// How much a failure says of the server, the least first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Says {
    NoAnswer,
    NotSent,
    NoServer,
    NotSmt,
    /// One is there that did not answer in time, or has another certificate.
    OfServer,
    /// Nothing of this address alone: it is the caller's, and holds for all.
    All,
}

fn says(error: &ConnectError) -> Says {
    match error {
        ConnectError::NoAnswer(_) => Says::NoAnswer,
        ConnectError::NotSent(_) | ConnectError::PathTooSmall => Says::NotSent,
        ConnectError::NoServer => Says::NoServer,
        ConnectError::NotSmt(_) => Says::NotSmt,
        ConnectError::Unavailable(_)
        | ConnectError::Unfinished { .. }
        | ConnectError::Unproven { .. }
        | ConnectError::Version { .. }
        | ConnectError::Handshake { fault: Fault::Peer | Fault::Environment, .. } => Says::OfServer,
        _ => Says::All,
    }
}

/// The time after which the next address is tried, if none has answered. RFC 8305 §8 recommends
/// 250 ms for the Internet, and permits 100 ms; in a datacenter an answer takes a fraction of one.
const STAGGER: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_tried_in_turn_and_the_systems_first_one_first() {
        let of = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let found = of(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let tried = of(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(Vec::from(interleaved(found)), tried);
        assert!(interleaved(Vec::new()).is_empty());
    }

    fn not_smt() -> ConnectError {
        ConnectError::NotSmt(Duration::from_secs(1))
    }

    #[test]
    fn the_failure_that_says_most_of_the_server_is_told() {
        let address = |last: u8| SocketAddr::from(([192, 0, 2, last], 9));
        let failures =
            [ConnectError::NoAnswer(Duration::from_secs(1)), not_smt(), ConnectError::NoServer];
        let mut race = Race::new(Time::default(), Vec::new());
        for (at, error) in (1..).zip(failures) {
            race.note(address(at), error).unwrap();
        }
        let told = race.lost();
        assert_eq!(told, Failure::at(address(2), not_smt()));
    }

    #[test]
    fn a_failure_that_another_address_does_not_help_ends_the_race() {
        let mut race = Race::new(Time::default(), Vec::new());
        let error = ConnectError::TooManySessions(1);
        race.note(([192, 0, 2, 1], 9).into(), error).unwrap_err();
    }
}
