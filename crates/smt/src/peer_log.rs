// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of an endpoint's peers, at level info and with the target `smt`: when a session begins
//! and ends, and which clients are refused.
//!
//! A client that is refused tries a few times, and anybody may send from forged addresses: a line
//! is not repeated for some seconds, and there are a few in a second at most. Those left out are
//! counted, and the next line tells how many. Where level info is off, a line at level warn tells
//! once a minute how many clients were refused, and the last reason.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use smt_proto::{SessionEnd, Time};
use smt_wire::SessionIndex;

use crate::peer::Peer;

/// The refusals that were told of late.
#[derive(Debug, Default)]
pub(crate) struct PeerLog {
    recent: VecDeque<Refusal>,
    /// When the present second began, and lines that were told in it.
    second: Time,
    in_second: u32,
    left_out: u64,
    /// Clients that were refused: the attempts of one within some seconds count once.
    clients: u64,
    minute: Minute,
}

/// The refusals since a line at level warn has told of some.
#[derive(Debug, Default)]
struct Minute {
    told: Option<Time>,
    count: u64,
    last: Option<(SocketAddr, Box<str>)>,
}

impl Minute {
    /// Takes a refusal in; it is told at once if none was told for a minute.
    fn note(&mut self, now: Time, client: SocketAddr, reason: Box<str>) {
        self.count += 1;
        self.last = Some((client, reason));
        self.tell_due(now);
    }

    /// When refusals are to be told.
    fn due(&self) -> Option<Time> {
        let due = self.told.map_or_else(Time::default, |told| told + MINUTE);
        (self.count > 0).then_some(due)
    }

    fn tell_due(&mut self, now: Time) {
        if self.due().is_some_and(|due| due <= now) {
            self.told = Some(now);
            self.tell();
        }
    }

    fn tell(&mut self) {
        let clients = std::mem::take(&mut self.count);
        if let Some((peer, reason)) = self.last.take() {
            tracing::warn!(target: TARGET, clients, last = %peer, %reason, "clients were refused");
        }
    }
}

/// A client, why it was refused, and when that was told.
#[derive(Debug)]
struct Refusal {
    at: Time,
    client: SocketAddr,
    reason: Box<str>,
}

impl PeerLog {
    /// A session is live.
    pub(crate) fn began(session: SessionIndex, peer: &Peer) {
        if is_on() {
            let name = peer.name();
            tracing::info!(target: TARGET, peer = %peer.address, name, %session, "session began");
        }
    }

    /// A session has ended.
    pub(crate) fn ended(session: SessionIndex, peer: Option<&Peer>, end: &SessionEnd) {
        if is_on() {
            let address = peer.map(|peer| tracing::field::display(peer.address));
            let name = peer.and_then(Peer::name);
            tracing::info!(target: TARGET, peer = address, name, %session, reason = %end, "session ended");
        }
    }

    /// A client was not taken.
    pub(crate) fn refused(&mut self, now: Time, client: SocketAddr, reason: Box<str>) {
        match self.judge(now, client, &reason) {
            Line::Repeated => return,
            Line::TooMany => self.left_out += 1,
            Line::Told => {
                if is_on() {
                    let left_out = std::mem::take(&mut self.left_out);
                    let left_out = Some(left_out).filter(|count| *count > 0);
                    tracing::info!(target: TARGET, peer = %client, %reason, left_out, "client refused");
                }
                self.recent.push_back(Refusal { at: now, client, reason: reason.clone() });
            }
        }
        self.clients += 1;
        if !is_on() {
            self.minute.note(now, client, reason);
        }
    }

    /// Clients that were refused so far: the attempts of one within some seconds count once.
    pub(crate) fn clients_refused(&self) -> u64 {
        self.clients
    }

    /// When something is to be told although nothing happens.
    pub(crate) fn due(&self) -> Option<Time> {
        self.minute.due()
    }

    /// Tells what is due.
    pub(crate) fn tell_due(&mut self, now: Time) {
        self.minute.tell_due(now);
    }

    /// The endpoint ends: refusals that were left out since the last line are told.
    pub(crate) fn finish(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 && is_on() {
            tracing::info!(target: TARGET, left_out, "clients refused");
        }
        self.minute.tell();
    }

    /// Whether a refusal is told now.
    fn judge(&mut self, now: Time, client: SocketAddr, reason: &str) -> Line {
        let is_old = |refusal: &Refusal| now.since(refusal.at) >= REPEATED_AFTER;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        let is_it = |told: &Refusal| told.client == client && *told.reason == *reason;
        if self.recent.iter().any(is_it) {
            return Line::Repeated;
        }
        if now.since(self.second) >= SECOND {
            (self.second, self.in_second) = (now, 0);
        }
        if self.in_second >= IN_SECOND {
            return Line::TooMany;
        }
        self.in_second += 1;
        Line::Told
    }
}

/// Whether there is a line about a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line {
    Told,
    /// It was told just now.
    Repeated,
    /// There are too many in this second: it is counted.
    TooMany,
}

/// Whether somebody reads the log: certificates are not parsed in vain.
fn is_on() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// The target of what a user of the library wants to know, wherever it happens.
const TARGET: &str = "smt";
const SECOND: Duration = Duration::from_secs(1);
/// Time between lines at level warn.
const MINUTE: Duration = Duration::from_secs(60);
/// Lines about refused clients in a second: enough for people to read. They also bound what is
/// remembered.
const IN_SECOND: u32 = 10;
/// A client makes its few attempts within a fraction of this.
const REPEATED_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(60_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn the_attempts_of_a_client_are_one_line_and_one_client() {
        let mut log = PeerLog::default();
        let mut refuse = |ms, port, reason: &str| {
            log.refused(at(ms), client(port), reason.into());
            (log.clients, log.recent.len())
        };
        assert_eq!([refuse(0, 1, "no"), refuse(200, 1, "no"), refuse(400, 1, "no")], [(1, 1); 3]);
        assert_eq!([refuse(400, 2, "no"), refuse(400, 1, "other")], [(2, 2), (3, 3)]);
        assert_eq!(refuse(6_000, 1, "no"), (4, 1));
        assert_eq!(log.left_out, 0);
    }

    #[test]
    fn a_flood_has_a_few_lines_in_a_second_and_the_others_are_counted() {
        let mut log = PeerLog::default();
        for port in 0..1_000 {
            log.refused(at(0), client(port), "no".into());
        }
        assert_eq!((log.recent.len(), log.left_out, log.clients), (10, 990, 1_000));
        for second in 1..100 {
            for port in 0..100 {
                log.refused(at(second * 1_000), client(port), "no".into());
            }
        }
        assert!(log.recent.len() <= 60, "{}", log.recent.len());
    }

    #[test]
    fn a_minute_has_one_warning_the_first_at_once() {
        let mut minute = Minute::default();
        assert_eq!(minute.due(), None);
        minute.note(at(0), client(1), "no".into());
        assert_eq!((minute.count, minute.due()), (0, None), "it was told");
        minute.note(at(1_000), client(2), "no".into());
        minute.note(at(59_999), client(3), "other".into());
        assert_eq!((minute.count, minute.due()), (2, Some(at(60_000))));
        minute.tell_due(at(59_999));
        assert_eq!(minute.count, 2);
        minute.tell_due(at(60_000));
        assert_eq!((minute.count, minute.due()), (0, None));
    }
}
