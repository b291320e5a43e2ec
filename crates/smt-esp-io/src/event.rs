// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Things that go wrong while packets flow, in words: whose fault, with which peer, what to do.
//!
//! An event of a kind is told at its first, tenth, hundredth … time: a hostile peer fills no log.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use smt_esp::{OpenError, SealError};

use crate::underlay::Arrived;

/// An event that is told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Fault, peer, and what to do.
    pub text: String,
    /// How often this kind of event has happened.
    pub count: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        if self.count > 1 {
            write!(f, " ({} times so far)", self.count)?;
        }
        Ok(())
    }
}

/// The receiver of events, which are told from the workers' threads.
#[derive(Clone)]
pub struct EventLog {
    tell: Arc<dyn Fn(&Event) + Send + Sync>,
    counts: BTreeMap<&'static str, u64>,
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").finish_non_exhaustive()
    }
}

impl EventLog {
    /// Events go to this function.
    pub fn new(tell: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), counts: BTreeMap::new() }
    }

    fn note(&mut self, kind: &'static str, text: impl FnOnce() -> String) {
        let count = self.counts.entry(kind).or_insert(0);
        *count += 1;
        if is_power_of_ten(*count) {
            (self.tell)(&Event { text: text(), count: *count });
        }
    }

    pub(crate) fn not_opened(&mut self, arrived: Arrived, error: OpenError) {
        let Arrived { from, spi } = arrived;
        self.note(open_kind(error), || {
            let advice = open_advice(error);
            format!("{} a packet of {from} under SPI {spi:#x}: {error}{advice}", open_fault(error))
        });
    }

    pub(crate) fn not_sealed(&mut self, to: Option<IpAddr>, error: SealError) {
        let to = to.map_or_else(|| "nobody".to_owned(), |to| to.to_string());
        self.note(seal_kind(error), || {
            format!("{} a packet to {to}: {error}{}", seal_fault(error), seal_advice(error))
        });
    }

    pub(crate) fn not_sent(&mut self, error: &io::Error) {
        let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
        let (kind, advice) = match code {
            Some(rustix::io::Errno::MSGSIZE) => {
                ("send: too long", ": the network passes less than underlay.mtu says")
            }
            Some(rustix::io::Errno::NETUNREACH | rustix::io::Errno::HOSTUNREACH) => {
                ("send: no route", ": no route leads to the peer")
            }
            Some(rustix::io::Errno::PERM) => {
                ("send: forbidden", ": a rule of this host forbids it")
            }
            _ => ("send", ""),
        };
        self.note(kind, || format!("environment: sealed packets were not sent: {error}{advice}"));
    }

    pub(crate) fn not_received(&mut self, error: &io::Error) {
        self.note("receive", || format!("environment: nothing can be received: {error}"));
    }

    pub(crate) fn device(&mut self, what: &str, error: &io::Error) {
        self.note("device", || format!("environment: the TUN device {what}: {error}"));
    }
}

const fn is_power_of_ten(mut count: u64) -> bool {
    while count >= 10 && count.is_multiple_of(10) {
        count /= 10;
    }
    count == 1
}

const fn open_kind(error: OpenError) -> &'static str {
    match error {
        OpenError::Malformed => "open: malformed",
        OpenError::Fragment => "open: fragment",
        OpenError::NoAssociation { .. } => "open: no association",
        OpenError::Encapsulation => "open: encapsulation",
        OpenError::Replay => "open: replay",
        OpenError::BelowWindow => "open: below window",
        OpenError::Integrity => "open: integrity",
        OpenError::Expired => "open: expired",
        OpenError::Padding | OpenError::Inner => "open: inner",
        OpenError::Congestion => "open: congestion",
        OpenError::Selectors => "open: selectors",
        OpenError::Policy => "open: policy",
    }
}

const fn open_fault(error: OpenError) -> &'static str {
    match error {
        OpenError::Expired => "limit:",
        OpenError::Congestion => "environment:",
        _ => "peer:",
    }
}

const fn open_advice(error: OpenError) -> &'static str {
    match error {
        OpenError::NoAssociation { .. } => {
            ": it was never added here, or it was removed while the peer goes on to use it"
        }
        OpenError::Integrity => {
            ": the peer has another key, suite or length of the ICV, or the packet is forged"
        }
        OpenError::Replay => ": the network repeats packets, or somebody replays them",
        OpenError::BelowWindow => {
            ": the network reorders by more than replay-window, or somebody replays packets"
        }
        OpenError::Encapsulation => ": one end has ESP in UDP, and the other has not",
        OpenError::Expired => ": replace the association at both ends",
        OpenError::Fragment => ": the peer's path passes less than its underlay.mtu says",
        OpenError::Selectors => ": the ends have different selectors",
        _ => "",
    }
}

const fn seal_kind(error: SealError) -> &'static str {
    match error {
        SealError::Malformed => "seal: malformed",
        SealError::Fragment => "seal: fragment",
        SealError::Policy => "seal: policy",
        SealError::NoAssociation => "seal: no association",
        SealError::Selectors => "seal: selectors",
        SealError::SequenceExhausted => "seal: sequence numbers",
        SealError::Expired => "seal: expired",
        SealError::NoRoom | SealError::TooBig { .. } => "seal: too big",
        SealError::Cipher => "seal: cipher",
    }
}

const fn seal_fault(error: SealError) -> &'static str {
    match error {
        SealError::SequenceExhausted | SealError::Expired => "limit:",
        SealError::Cipher => "environment:",
        _ => "caller:",
    }
}

const fn seal_advice(error: SealError) -> &'static str {
    match error {
        SealError::SequenceExhausted => ", or set extended-numbers at both ends",
        SealError::Expired => ": replace the association at both ends",
        SealError::NoAssociation => ": it was removed, or its keys have not come yet",
        SealError::Policy => ": no [[policy]] matches, or the one that matches discards",
        SealError::TooBig { .. } => ": its sender is told by ICMP",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn told(times: u64, error: OpenError) -> Vec<Event> {
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let mut log = EventLog::new(move |event| sink.lock().unwrap().push(event.clone()));
        for spi in 0..times {
            let arrived = Arrived { from: "192.0.2.2".parse().unwrap(), spi: 0x1000 + spi as u32 };
            log.not_opened(arrived, error);
        }
        let events = events.lock().unwrap();
        events.clone()
    }

    #[test]
    fn a_flood_is_told_at_powers_of_ten() {
        let counts: Vec<u64> =
            told(2_000, OpenError::Replay).iter().map(|event| event.count).collect();
        assert_eq!(counts, [1, 10, 100, 1_000]);
    }

    #[test]
    fn an_event_tells_fault_peer_and_advice() {
        let events = told(1, OpenError::Integrity);
        assert_eq!(
            events[0].to_string(),
            "peer: a packet of 192.0.2.2 under SPI 0x1000: the integrity check failed: the peer has \
             another key, suite or length of the ICV, or the packet is forged"
        );
    }
}
