// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long an association may be used (RFC 4301 §4.4.2.1).

use std::time::Duration;

/// The most of something: at the soft limit keys should be replaced, at the hard one use ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit<T> {
    /// From here on the association should be replaced.
    pub soft: Option<T>,
    /// Beyond this nothing is sealed or opened.
    pub hard: Option<T>,
}

impl<T> Default for Limit<T> {
    fn default() -> Self {
        Self { soft: None, hard: None }
    }
}

impl<T: PartialOrd> Limit<T> {
    fn is_soft_reached(&self, used: &T) -> bool {
        self.soft.as_ref().is_some_and(|soft| used >= soft)
    }

    fn is_hard_passed(&self, used: &T) -> bool {
        self.hard.as_ref().is_some_and(|hard| used > hard)
    }
}

/// How long an association may be used; without limits by default.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lifetime {
    /// Bytes to which the cipher or the hash was applied: payload and trailer.
    pub bytes: Limit<u64>,
    /// Packets.
    pub packets: Limit<u64>,
    /// Time since the association was added.
    pub time: Limit<Duration>,
}

/// The hard limit of a lifetime is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Expired;

/// The part of its lifetime that an association has used.
#[derive(Debug)]
pub(crate) struct Usage {
    lifetime: Lifetime,
    added: Duration,
    bytes: u64,
    packets: u64,
    soft_told: bool,
}

impl Usage {
    pub(crate) const fn new(lifetime: Lifetime, added: Duration) -> Self {
        Self { lifetime, added, bytes: 0, packets: 0, soft_told: false }
    }

    /// Whether a packet of so many bytes may still pass.
    pub(crate) fn permits(&self, bytes: usize, now: Duration) -> Result<(), Expired> {
        let (bytes, packets) = (self.bytes.saturating_add(bytes as u64), self.packets + 1);
        let lifetime = &self.lifetime;
        let expired = lifetime.bytes.is_hard_passed(&bytes)
            || lifetime.packets.is_hard_passed(&packets)
            || lifetime.time.is_hard_passed(&now.saturating_sub(self.added));
        if expired { Err(Expired) } else { Ok(()) }
    }

    /// Counts a packet. Says once that a soft limit is reached.
    pub(crate) fn count(&mut self, bytes: usize, now: Duration) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.packets += 1;
        let lifetime = &self.lifetime;
        let soft = lifetime.bytes.is_soft_reached(&self.bytes)
            || lifetime.packets.is_soft_reached(&self.packets)
            || lifetime.time.is_soft_reached(&now.saturating_sub(self.added));
        soft && !std::mem::replace(&mut self.soft_told, true)
    }

    pub(crate) const fn is_soft_expired(&self) -> bool {
        self.soft_told
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn usage(lifetime: Lifetime) -> Usage {
        Usage::new(lifetime, SECOND)
    }

    #[test]
    fn the_last_byte_of_a_lifetime_may_be_used() {
        let bytes = Limit { soft: Some(60), hard: Some(100) };
        let mut usage = usage(Lifetime { bytes, ..Lifetime::default() });
        assert!(!usage.count(50, SECOND));
        assert_eq!(usage.permits(50, SECOND), Ok(()));
        assert_eq!(usage.permits(51, SECOND), Err(Expired));
        assert!(!usage.is_soft_expired());
        assert!(usage.count(10, SECOND), "the soft limit is told");
        assert!(usage.is_soft_expired());
        assert!(!usage.count(1, SECOND), "the soft limit is told once");
    }

    #[test]
    fn packets_and_time_end_a_lifetime_too() {
        let packets = Limit { soft: None, hard: Some(1) };
        let mut by_packets = usage(Lifetime { packets, ..Lifetime::default() });
        assert_eq!(by_packets.permits(1, SECOND), Ok(()));
        by_packets.count(1, SECOND);
        assert_eq!(by_packets.permits(1, SECOND), Err(Expired));

        let time = Limit { soft: Some(SECOND), hard: Some(SECOND * 2) };
        let mut by_time = usage(Lifetime { time, ..Lifetime::default() });
        assert!(by_time.count(1, SECOND * 2));
        assert_eq!(by_time.permits(1, SECOND * 3), Ok(()));
        assert_eq!(by_time.permits(1, SECOND * 4), Err(Expired));
    }
}
