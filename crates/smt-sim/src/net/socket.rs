// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host's socket that refuses for a while, or takes only a part of a batch.

use std::time::Duration;

use smt_proto::Time;

use crate::net::world::Burst;
use crate::random::Random;

/// A socket between an endpoint and its cable.
#[derive(Debug, Default)]
pub struct Socket {
    refuses_until: Option<Time>,
    short: Option<Random>,
    /// The packets that it has not taken yet.
    rest: Option<Burst>,
    /// It refuses since it is told to, not since its buffer is full.
    is_told_to: bool,
    has_refused: bool,
    has_cut: bool,
}

impl Socket {
    /// It takes nothing until then.
    pub fn refuse(&mut self, until: Time) {
        self.refuses_until = Some(until);
        self.is_told_to = true;
    }

    /// Whether it was asked while it took nothing.
    pub fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Whether it has taken a part only.
    pub fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// From now on it takes only a part of some batches. The rest is offered again, or the system
    /// has lost it.
    pub fn cut_short(&mut self, random: Random) {
        self.short = Some(random);
    }

    /// It works again.
    pub fn heal(&mut self) {
        self.refuses_until = None;
        self.short = None;
    }

    /// When it takes something again.
    pub fn next_timeout(&self) -> Option<Time> {
        self.refuses_until
    }

    /// It takes something again if its time has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.refuses_until.is_some_and(|until| until <= now) {
            self.refuses_until = None;
        }
    }

    /// Asks `poll` for a batch, if it takes one.
    pub fn transmit(&mut self, now: Time, poll: impl FnOnce() -> Option<Burst>) -> Option<Burst> {
        if self.refuses_until.is_some_and(|until| now < until) {
            self.has_refused |= self.is_told_to;
            return None;
        }
        self.refuses_until = None;
        self.is_told_to = false;
        if let Some(rest) = self.rest.take() {
            return Some(rest);
        }
        let burst = poll()?;
        let Some(random) = &mut self.short else {
            return Some(burst);
        };
        let segments = burst.bytes.len().div_ceil(burst.segment_size) as u64;
        if segments < 2 || random.chance(500_000) {
            return Some(burst);
        }
        let taken = random.between(1, segments - 1) as usize * burst.segment_size;
        let rest = Burst { bytes: burst.bytes.slice(taken..), ..burst.clone() };
        self.rest = random.chance(500_000).then_some(rest);
        self.refuses_until = Some(now + RETRY);
        self.has_cut = true;
        Some(Burst { bytes: burst.bytes.slice(..taken), ..burst })
    }
}

/// A full send buffer drains.
const RETRY: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::packet::{HostId, Protocol};
    use bytes::Bytes;

    fn burst(segments: usize) -> Option<Burst> {
        Some(Burst {
            from: HostId(1),
            to: HostId(0),
            bytes: Bytes::from(vec![0; segments * 10]),
            segment_size: 10,
            priority: 0,
            entropy: 0,
            protocol: Protocol::Smt,
        })
    }

    #[test]
    fn it_refuses_for_its_time() {
        let mut socket = Socket::default();
        socket.refuse(Time::from_nanos(100));
        assert!(socket.transmit(Time::from_nanos(99), || burst(1)).is_none());
        assert!(socket.transmit(Time::from_nanos(100), || burst(1)).is_some());
    }

    #[test]
    fn it_takes_a_part_and_offers_or_loses_the_rest() {
        let (mut lost, mut kept) = (0, 0);
        for seed in 0..100 {
            let mut socket = Socket::default();
            socket.cut_short(Random::new(seed));
            let first = socket.transmit(Time::default(), || burst(6)).unwrap();
            let later = Time::default() + RETRY;
            let second = socket.transmit(later, || None);
            match second {
                Some(rest) => {
                    assert_eq!(first.bytes.len() + rest.bytes.len(), 60);
                    kept += 1;
                }
                None if first.bytes.len() < 60 => lost += 1,
                None => {}
            }
        }
        assert!(lost > 10 && kept > 10, "{lost} {kept}");
    }
}
