// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A path as a queue: which packets are lost, which are held back, and when each leaves.
//!
//! It has no clock, sockets or randomness but a seed: packets and times in, packets out. The n-th
//! packet of a direction meets the same fate with the same seed, whatever the time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// The properties of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSetting {
    /// Each packet takes so long.
    pub(crate) delay: Duration,
    /// The share of packets that are lost.
    pub(crate) loss: f64,
    /// The share of packets that are held back.
    pub(crate) reordered: f64,
    /// A held packet leaves behind so many later ones of its flow.
    pub(crate) places: u32,
    /// A held packet waits no longer than this for them.
    pub(crate) hold: Duration,
    /// The seed of the fates.
    pub(crate) seed: u64,
}

/// One direction of a path, for packets that are `T` to the caller.
#[derive(Debug)]
pub(crate) struct Path<T> {
    setting: PathSetting,
    random: u64,
    /// Packets by the time at which they leave, and among equal times by their order.
    queue: BinaryHeap<Reverse<Queued<T>>>,
    held: Vec<Held<T>>,
    order: u64,
    pub(crate) counts: PathCounts,
}

/// The counts of a path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct PathCounts {
    pub(crate) taken: u64,
    pub(crate) lost: u64,
    pub(crate) held: u64,
    /// Packets that found the queue full.
    pub(crate) overflowed: u64,
}

/// A packet that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// Since any fixed moment.
    pub(crate) at: Duration,
    /// Packets of other flows do not count as later ones.
    pub(crate) flow: usize,
}

#[derive(Debug)]
struct Queued<T> {
    due: Duration,
    order: u64,
    packet: T,
}

#[derive(Debug)]
struct Held<T> {
    flow: usize,
    places: u32,
    until: Duration,
    packet: T,
}

impl<T> Path<T> {
    /// A path whose fates are those of the seed and this direction.
    pub(crate) fn new(setting: PathSetting, direction: u64) -> Self {
        Self {
            setting,
            random: setting.seed ^ direction.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            queue: BinaryHeap::new(),
            held: Vec::new(),
            order: 0,
            counts: PathCounts::default(),
        }
    }

    /// Takes a packet.
    pub(crate) fn take(&mut self, coming: Coming, packet: T) {
        self.counts.taken += 1;
        let fate = self.draw();
        if fate < self.setting.loss {
            self.counts.lost += 1;
            return;
        }
        if self.queue.len() + self.held.len() >= QUEUE_MAX {
            self.counts.overflowed += 1;
            return;
        }
        let due = coming.at + self.setting.delay;
        if fate < self.setting.loss + self.setting.reordered {
            self.counts.held += 1;
            self.held.push(Held {
                flow: coming.flow,
                places: self.setting.places,
                until: due + self.setting.hold,
                packet,
            });
            return;
        }
        self.enqueue(due, packet);
        self.pass(coming.flow, due);
    }

    /// A packet of the flow passes those that are held.
    fn pass(&mut self, flow: usize, due: Duration) {
        let mut place = 0;
        while place < self.held.len() {
            let held = &mut self.held[place];
            held.places = held.places.saturating_sub(u32::from(held.flow == flow));
            match held.places {
                0 => {
                    let held = self.held.remove(place);
                    self.enqueue(due, held.packet);
                }
                _ => place += 1,
            }
        }
    }

    fn enqueue(&mut self, due: Duration, packet: T) {
        self.order += 1;
        let order = self.order;
        self.queue.push(Reverse(Queued { due, order, packet }));
    }

    /// When the next packet leaves.
    pub(crate) fn next(&self) -> Option<Duration> {
        let queued = self.queue.peek().map(|Reverse(queued)| queued.due);
        let held = self.held.iter().map(|held| held.until).min();
        queued.into_iter().chain(held).min()
    }

    /// The next packet that leaves by now.
    pub(crate) fn leave(&mut self, now: Duration) -> Option<T> {
        while let Some(place) = self.held.iter().position(|held| held.until <= now) {
            let held = self.held.remove(place);
            self.enqueue(held.until, held.packet);
        }
        let Reverse(queued) = self.queue.peek()?;
        if queued.due > now {
            return None;
        }
        self.queue.pop().map(|Reverse(queued)| queued.packet)
    }

    /// From 0 to below 1 (splitmix64).
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl<T> PartialEq for Queued<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.order) == (other.due, other.order)
    }
}

impl<T> Eq for Queued<T> {}

impl<T> PartialOrd for Queued<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Queued<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

/// Packets of one direction that are under way at most: some 90 MB.
const QUEUE_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn setting() -> PathSetting {
        PathSetting {
            delay: 1_000 * US,
            loss: 0.0,
            reordered: 0.0,
            places: 2,
            hold: 500 * US,
            seed: 7,
        }
    }

    fn through(setting: PathSetting, packets: u32) -> (Vec<u32>, PathCounts) {
        let mut path = Path::new(setting, 0);
        let mut left = Vec::new();
        for number in 0..packets {
            let at = number * US;
            path.take(Coming { at, flow: 0 }, number);
            left.extend(std::iter::from_fn(|| path.leave(at)));
        }
        left.extend(std::iter::from_fn(|| path.leave(Duration::from_secs(1))));
        (left, path.counts)
    }

    #[test]
    fn a_packet_leaves_after_the_delay_and_not_before() {
        let mut path = Path::new(setting(), 0);
        path.take(Coming { at: US, flow: 0 }, ());
        assert_eq!(path.next(), Some(1_001 * US));
        assert_eq!(path.leave(1_000 * US), None);
        assert_eq!(path.leave(1_001 * US), Some(()));
        assert_eq!(path.next(), None);
    }

    #[test]
    fn held_packets_leave_behind_two_later_ones_and_none_is_lost() {
        let mut setting = setting();
        setting.reordered = 0.05;
        let (left, counts) = through(setting, 20_000);
        assert!((800..1_200).contains(&counts.held), "{counts:?}");
        let mut sorted = left.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..20_000));
        let late = |place: usize| {
            let later = left[..place].iter().filter(|other| **other > left[place]);
            later.count()
        };
        // Held ones that follow each other do not count as passed: a place more for each.
        assert!((0..left.len()).all(|place| late(place) <= 2 + 6));
        let displaced = (0..left.len()).filter(|place| late(*place) >= 2).count();
        assert!(displaced as u64 * 10 > counts.held * 9, "{displaced}");
    }

    #[test]
    fn a_held_packet_without_followers_leaves_when_its_time_ends() {
        let mut setting = setting();
        setting.reordered = 1.0;
        let mut path = Path::new(setting, 0);
        path.take(Coming { at: US, flow: 0 }, ());
        assert_eq!(path.next(), Some(1_501 * US));
        assert_eq!(path.leave(1_501 * US), Some(()));
    }

    #[test]
    fn packets_of_another_flow_do_not_release_a_held_one() {
        let mut setting = setting();
        setting.reordered = 1.0;
        let mut path = Path::new(setting, 0);
        path.take(Coming { at: US, flow: 0 }, 0);
        path.setting.reordered = 0.0;
        for number in 1..9 {
            path.take(Coming { at: US, flow: 1 }, number);
        }
        let left: Vec<u32> = std::iter::from_fn(|| path.leave(1_499 * US)).collect();
        assert!(left.into_iter().eq(1..9));
    }

    #[test]
    fn the_same_seed_loses_the_same_packets_and_as_many_as_asked() {
        let mut setting = setting();
        setting.loss = 0.02;
        let (first, counts) = through(setting, 50_000);
        assert!((900..1_100).contains(&counts.lost), "{counts:?}");
        assert_eq!(first, through(setting, 50_000).0);
        setting.seed = 8;
        assert_ne!(first, through(setting, 50_000).0);
    }
}
