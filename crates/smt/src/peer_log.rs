// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of an endpoint's peers, at level info and with the target `smt`: when a session begins
//! and ends, and which clients are refused.
//!
//! A client that is refused tries a few times, and anybody may send from forged addresses: a line
//! is not repeated for some seconds, and there are a few in a second at most. Those left out are
//! counted, and the next line tells how many.

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
            let name = peer.shown_name();
            tracing::info!(target: TARGET, peer = %peer.address, name, %session, "session began");
        }
    }

    /// A session has ended.
    pub(crate) fn ended(session: SessionIndex, peer: Option<&Peer>, end: &SessionEnd) {
        if is_on() {
            let address = peer.map(|peer| tracing::field::display(peer.address));
            let name = peer.and_then(Peer::shown_name);
            tracing::info!(target: TARGET, peer = address, name, %session, reason = %end, "session ended");
        }
    }

    /// A client was not taken.
    pub(crate) fn refused(&mut self, now: Time, client: SocketAddr, reason: Box<str>) {
        if !is_on() || !self.is_told(now, client, &reason) {
            return;
        }
        let left_out = Some(std::mem::take(&mut self.left_out)).filter(|count| *count > 0);
        tracing::info!(target: TARGET, peer = %client, %reason, left_out, "client refused");
        self.recent.push_back(Refusal { at: now, client, reason });
    }

    /// The endpoint ends: refusals that were left out since the last line are told.
    pub(crate) fn finish(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            tracing::info!(target: TARGET, left_out, "clients refused");
        }
    }

    /// Whether a refusal is told now. One that is too much is counted.
    fn is_told(&mut self, now: Time, client: SocketAddr, reason: &str) -> bool {
        let is_old = |refusal: &Refusal| now.since(refusal.at) >= REPEATED_AFTER;
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        let is_it = |told: &Refusal| told.client == client && *told.reason == *reason;
        if self.recent.iter().any(is_it) {
            return false;
        }
        if now.since(self.second) >= SECOND {
            (self.second, self.in_second) = (now, 0);
        }
        let is_told = self.in_second < IN_SECOND;
        self.in_second += u32::from(is_told);
        self.left_out += u64::from(!is_told);
        is_told
    }
}

/// Whether somebody reads the log: certificates are not parsed in vain.
fn is_on() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// The target of what a user of the library wants to know, wherever it happens.
const TARGET: &str = "smt";
const SECOND: Duration = Duration::from_secs(1);
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

    /// Tells it if it is to be told.
    fn tell(log: &mut PeerLog, ms: u64, port: u16, reason: &str) -> bool {
        let is_told = log.is_told(at(ms), client(port), reason);
        if is_told {
            log.recent.push_back(Refusal {
                at: at(ms),
                client: client(port),
                reason: reason.into(),
            });
        }
        is_told
    }

    #[test]
    fn the_attempts_of_a_client_are_one_line() {
        let mut log = PeerLog::default();
        assert!(tell(&mut log, 0, 1, "no"));
        assert!(!tell(&mut log, 200, 1, "no") && !tell(&mut log, 400, 1, "no"));
        assert!(tell(&mut log, 400, 2, "no") && tell(&mut log, 400, 1, "other"));
        assert!(tell(&mut log, 5_000, 1, "no"));
        assert_eq!(log.left_out, 0);
    }

    #[test]
    fn a_flood_has_a_few_lines_in_a_second_and_the_others_are_counted() {
        let mut log = PeerLog::default();
        let told = (0..1_000).filter(|port| tell(&mut log, 0, *port, "no"));
        assert_eq!(told.count(), 10);
        assert_eq!(log.left_out, 990);
        assert!(tell(&mut log, 1_000, 1_001, "no"));
        for second in 2..100 {
            for port in 0..100 {
                tell(&mut log, second * 1_000, port, "no");
            }
        }
        assert!(log.recent.len() <= 60, "{}", log.recent.len());
    }
}
