// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The results of a run.

use std::time::Duration;

use super::round::Round;
use crate::net::network::Counts;

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Length and slowdown of each message that was counted, by length. For a message that has not
    /// arrived it is the least that its slowdown can be.
    messages: Vec<(u32, f32)>,
    /// Payload of those that have arrived.
    payload: u64,
    /// Messages that were counted and had not arrived when patience ended.
    pub unfinished: u64,
    /// Messages of the counted time that the transport did not take.
    pub refused: u64,
    /// Payload that arrived in the counted time, bits a second of each host.
    pub goodput: f64,
    /// Share of the hosts' links that was used in the counted time.
    pub used: f64,
    /// Longest queue of any port of a switch since messages began, in bytes.
    pub queue_max: u64,
    /// Packets that switches dropped, trimmed, marked since then.
    pub dropped: u64,
    /// See above.
    pub trimmed: u64,
    /// See above.
    pub marked: u64,
    /// Questions for missing bytes (SMT): after a while without anything, and after a trimmed
    /// packet.
    pub asked_by_timer: u64,
    /// See above.
    pub asked_by_trimmed: u64,
    /// From the beginning to the last arrival.
    pub lasted: Duration,
    /// Counts of all packets that moved, setting up included.
    pub counts: Counts,
    /// How much time of the simulation passed.
    pub simulated: Duration,
    /// Queues and goodput over the counted time and the warm-up; at most [`Results::SAMPLES_MAX`].
    pub samples: Vec<Sample>,
    /// The rounds of an incast.
    pub rounds: Vec<Round>,
    /// The times to which slowdowns are ratios, for the shortest, the median and the longest
    /// message: the same transport's own time, so that absolute times of transports can be
    /// compared.
    pub alone: Vec<LoneTime>,
}

/// How long a message takes in a network that is empty but for it, by the longest path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoneTime {
    /// Its bytes.
    pub length: u32,
    /// Until it is whole at its receiver.
    pub took: Duration,
}

/// The events since the sample before.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    /// When it was taken, since messages began.
    pub at: Duration,
    /// The longest queue that any port of a switch has had meanwhile, in bytes.
    pub queue_longest: u64,
    /// Bytes that wait in all queues of switches at that time.
    pub queued: u64,
    /// Payload of the messages that have become whole meanwhile.
    pub arrived: u64,
    /// Bytes that links have carried meanwhile to all hosts, or to the receiver of an incast.
    pub carried: u64,
}

/// Messages of similar length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowdownRow {
    /// The longest of them, in bytes.
    pub up_to: u32,
    /// How many.
    pub count: usize,
    /// Half of them were no slower.
    pub p50: f32,
    /// 99 % of them were no slower.
    pub p99: f32,
    /// The slowest.
    pub max: f32,
}

impl Results {
    /// More than a plot has columns.
    pub const SAMPLES_MAX: u32 = 500;

    /// Those that have arrived, and those that have not, with what their slowdown is at least.
    pub(super) fn set_messages(&mut self, arrived: Vec<(u32, f32)>, missing: Vec<(u32, f32)>) {
        self.payload = arrived.iter().map(|(length, _)| u64::from(*length)).sum();
        let mut messages = arrived;
        messages.extend(missing);
        // Slowdowns are not negative: their bits have the order of the numbers.
        messages.sort_unstable_by_key(|(length, slowdown)| {
            u64::from(*length) << 32 | u64::from(slowdown.to_bits())
        });
        self.messages = messages;
    }

    /// Messages that were counted and have arrived.
    pub fn count(&self) -> usize {
        self.messages.len() - (self.unfinished + self.refused) as usize
    }

    /// Share of the messages of the counted time that were refused, or had not arrived when
    /// patience ended: of those, what percentiles have is too little.
    pub fn missing(&self) -> f64 {
        let missing = self.unfinished + self.refused;
        missing as f64 / self.messages.len().max(1) as f64
    }

    /// Payload of the messages that were counted and have arrived.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    /// Slowdown by length: each row has a tenth of the messages. Messages of one length are in one
    /// row, so there may be fewer.
    pub fn rows(&self) -> Vec<SlowdownRow> {
        self.parts(10)
    }

    /// The same with rows of a fiftieth, for a curve; fewer if a row had less than 200 messages,
    /// since a 99th percentile of those is two of them.
    pub fn curve(&self) -> Vec<SlowdownRow> {
        self.parts((self.messages.len() / 200).clamp(10, 50))
    }

    /// Equal parts of the messages, by length.
    fn parts(&self, count: usize) -> Vec<SlowdownRow> {
        let total = self.messages.len();
        let mut rows = Vec::new();
        let mut start = 0;
        for part in 1..=count {
            let wanted = total * part / count;
            if wanted <= start {
                continue;
            }
            let last = self.messages[wanted - 1].0;
            let end = self.messages.partition_point(|(length, _)| *length <= last);
            rows.push(row(&self.messages[start..end]));
            start = end;
        }
        rows
    }

    /// The shorter half of the messages together: those that are no longer than the median message,
    /// since of messages of one length none is the shorter one. `None` if that is all of them.
    pub fn shorter_half(&self) -> Option<SlowdownRow> {
        let (median, _) = self.messages.get(self.messages.len().checked_sub(1)? / 2)?;
        let end = self.messages.partition_point(|(length, _)| length <= median);
        (end < self.messages.len()).then(|| row(&self.messages[..end]))
    }

    /// All messages together.
    pub fn all(&self) -> Option<SlowdownRow> {
        (!self.messages.is_empty()).then(|| row(&self.messages))
    }
}

fn row(messages: &[(u32, f32)]) -> SlowdownRow {
    let mut slowdowns: Vec<f32> = messages.iter().map(|(_, slowdown)| *slowdown).collect();
    let last = slowdowns.len() - 1;
    let mut at = |percent: usize| {
        // `percent` percent of them, rounded up, are no slower: the 99th percentile of fewer than
        // 100 is the slowest.
        let place = (slowdowns.len() * percent).div_ceil(100).clamp(1, last + 1) - 1;
        *slowdowns.select_nth_unstable_by(place, f32::total_cmp).1
    };
    SlowdownRow {
        up_to: messages.last().map_or(0, |(length, _)| *length),
        count: messages.len(),
        p50: at(50),
        p99: at(99),
        max: at(100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_tenth_each_and_keep_lengths_together() {
        let mut results = Results::default();
        results.set_messages((0..1_000).map(|n| (n % 100, n as f32)).collect(), Vec::new());
        let rows = results.rows();
        assert_eq!(rows.len(), 10);
        assert!(rows.iter().all(|row| row.count == 100));
        assert_eq!(rows[9].up_to, 99);
        assert_eq!(results.curve().len(), 10);
        let mut equal = Results::default();
        equal.set_messages(vec![(7, 1.0); 50], Vec::new());
        assert_eq!(equal.rows().len(), 1);
    }

    #[test]
    fn percentiles_are_of_the_slowdown() {
        let mut results = Results::default();
        let messages = (1..=200).map(|n| (n, (201 - n) as f32)).collect();
        results.set_messages(messages, Vec::new());
        let all = results.all().unwrap();
        assert_eq!((all.p50, all.p99, all.max), (100.0, 198.0, 200.0));
        let half = results.shorter_half().unwrap();
        assert_eq!((half.up_to, half.p50, half.max), (100, 150.0, 200.0));
        assert_eq!((results.count(), results.payload()), (200, 20_100));
    }

    #[test]
    fn message_that_did_not_arrive_is_missing() {
        let mut results = Results::default();
        assert_eq!(results.missing(), 0.0);
        let missing = vec![(7, 3.0), (7, 5.0), (9, 9.0)];
        (results.unfinished, results.refused) = (2, 1);
        results.set_messages(vec![(7, 1.0); 97], missing);
        assert_eq!((results.missing(), results.count()), (0.03, 97));
        assert_eq!(results.payload(), 97 * 7);
        // They are the slowest, with what is known of them.
        let all = results.all().unwrap();
        assert_eq!((all.p50, all.p99, all.max), (1.0, 5.0, 9.0));
    }

    #[test]
    fn the_shorter_half_is_not_the_faster_part_of_one_length() {
        let half_of = |lengths: &[u32]| {
            let mut results = Results::default();
            let messages = lengths.iter().zip(1u8..);
            let messages = messages.map(|(n, slow)| (*n, slow.into())).collect();
            results.set_messages(messages, Vec::new());
            let half = results.shorter_half();
            half.map(|half| (half.up_to, half.count, half.max))
        };
        assert_eq!(half_of(&[10, 20, 20, 20, 30, 30]), Some((20, 4, 4.0)));
        assert_eq!(half_of(&[10, 20, 30]), Some((20, 2, 2.0)));
        for without in [&[][..], &[10], &[10, 10, 10], &[10, 20, 20]] {
            assert_eq!(half_of(without), None, "{without:?}");
        }
    }
}
