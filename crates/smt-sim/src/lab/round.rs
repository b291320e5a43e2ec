// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rounds of an incast: all its messages begin at the same time.

use std::time::Duration;

/// A round of an incast.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// When it began, since messages began.
    pub began: Duration,
    /// Payload of its messages.
    pub bytes: u64,
    /// How long the receiver's link takes for so many bytes.
    pub best: Duration,
    /// Until its last message was whole, of those that became it.
    pub took: Duration,
    /// Messages that have not become whole.
    pub unfinished: u32,
}

/// A message begins, and so does its round if it is the first: a round that nobody takes part in is
/// none. The receiver's link carries so many bits a second.
pub(super) fn join(rounds: &mut Vec<Round>, began: Duration, length: u32, rate: u64) {
    if rounds.last().map(|round| round.began) != Some(began) {
        rounds.push(Round { began, ..Round::default() });
    }
    if let Some(round) = rounds.last_mut() {
        round.bytes += u64::from(length);
        let best = Duration::from_secs_f64(round.bytes as f64 * 8.0 / rate as f64);
        // A byte takes less at more than 8 Gb/s; ratios need more than nothing.
        round.best = best.max(Duration::from_nanos(1));
        round.unfinished += 1;
    }
}

/// A message of the round that began then has arrived; what belongs to no round changes nothing.
pub(super) fn leave(rounds: &mut [Round], began: Duration, took: Duration) {
    if let Ok(place) = rounds.binary_search_by_key(&began, |round| round.began) {
        rounds[place].unfinished -= 1;
        rounds[place].took = took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_join_the_round_in_which_they_begin_and_the_last_to_leave_says_how_long_it_took() {
        let [first, second] = [0, 20].map(Duration::from_micros);
        let mut rounds = Vec::new();
        for (began, length) in [(first, 1_000), (first, 250), (second, 1)] {
            join(&mut rounds, began, length, 10_000_000_000);
        }
        let sums: Vec<_> = rounds.iter().map(|round| (round.bytes, round.unfinished)).collect();
        assert_eq!(sums, [(1_250, 2), (1, 1)]);
        assert_eq!(rounds[0].best, Duration::from_micros(1));
        for took in [3, 7] {
            leave(&mut rounds, first, Duration::from_micros(took));
        }
        leave(&mut rounds, Duration::from_micros(5), Duration::ZERO);
        assert_eq!((rounds[0].unfinished, rounds[1].unfinished), (0, 1));
        assert_eq!(rounds[0].took, Duration::from_micros(7));
    }
}
