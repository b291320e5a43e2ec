// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages of a node to one receiver, as a witness of the node sees them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::authenticator::{Receipt, SentMessage};
use crate::group::Options;

/// How many messages a witness delivers at once.
const TOGETHER: usize = 8;

/// How many receipts of late a witness remembers, at most one a tick.
const RECENT: usize = 64;

/// A message without a receipt.
#[derive(Clone, Deserialize, Serialize)]
struct Waiting {
    message: SentMessage,
    /// The witness's tick at which it learned of the message.
    since: u64,
}

/// Messages that the log of a node sends to one receiver. `now` is the witness's tick.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Forwarding {
    /// The number of the last message.
    sent: u64,
    /// The newest receipt, and when it came. The node may have lost it.
    receipt: Option<Receipt>,
    received_at: u64,
    /// The oldest without a receipt, without a gap: the receiver takes the first of them next.
    waiting: VecDeque<Waiting>,
    /// Receipts of late: when each came, and the number of the one before.
    recent: VecDeque<(u64, u64)>,
    /// The tick up to which it holds that the node has told of its first message without a receipt,
    /// by sending it to this witness. A correct node tells again as long as it has no receipt.
    told_until: u64,
    /// The message of which the node has told last before the receipt of the one before it was
    /// here, and the tick up to which that holds.
    told_early: Option<(u64, u64)>,
    /// Whether the node told while this witness kept no more: it could keep no more itself, and a
    /// receiver that comes back gets no further messages.
    is_excused: bool,
}

impl Forwarding {
    fn received(&self) -> u64 {
        self.receipt.as_ref().map_or(0, |it| it.number)
    }

    /// Whether a receipt tells something new.
    pub(crate) fn wants(&self, receipt: &Receipt) -> bool {
        receipt.number > self.received()
    }

    /// The receipt that covers a message.
    pub(crate) fn receipt_of(&self, number: u64) -> Option<&Receipt> {
        self.receipt.as_ref().filter(|it| number <= it.number)
    }

    /// Takes a receipt. Messages that still wait have waited as long as before.
    pub(crate) fn acknowledge(&mut self, receipt: Receipt, now: u64) {
        while self.waiting.front().is_some_and(|it| it.message.number <= receipt.number) {
            self.waiting.pop_front();
        }
        self.is_excused &= receipt.number < self.sent;
        if self.recent.back().is_none_or(|it| it.0 < now) {
            self.recent.push_back((now, self.received()));
            self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        }
        self.receipt = Some(receipt);
        self.received_at = now;
        if let Some((number, until)) = self.told_early.filter(|it| now < it.1) {
            self.hold(number, until);
        }
    }

    /// The node has told of a message. It may not have the receipts of late yet.
    pub(crate) fn tell(&mut self, number: u64, now: u64, options: &Options) {
        // A node that has a receipt tells no more, and this witness gets it with the next audit.
        let holds = u64::from(options.complain).saturating_mul(2) + u64::from(options.audit);
        while self.recent.front().is_some_and(|it| it.0.saturating_add(holds) < now) {
            self.recent.pop_front();
        }
        let known = self.recent.front().map_or_else(|| self.received(), |it| it.1);
        if number > known {
            self.hold(number, now.saturating_add(holds));
        }
    }

    /// The node has told of a message: of its first one without a receipt, or that is not known
    /// yet.
    fn hold(&mut self, number: u64, until: u64) {
        if number - 1 > self.received() {
            self.told_early = Some((number, until));
            return;
        }
        self.told_early = None;
        self.told_until = self.told_until.max(until);
        self.is_excused |= self.last() < self.sent;
    }

    /// The last message up to which nothing was forgotten.
    fn last(&self) -> u64 {
        self.waiting.back().map_or_else(|| self.received(), |it| it.message.number)
    }

    /// The log sends a message.
    pub(crate) fn add(&mut self, message: SentMessage, now: u64, retained: usize) {
        self.sent = message.number;
        let is_next = self.last().checked_add(1) == Some(message.number);
        if is_next && self.waiting.len() < retained {
            self.waiting.push_back(Waiting { message, since: now });
        } else {
            self.is_excused |= self.is_told(now);
        }
    }

    /// Whether messages wait too long, and the node does not tell of the first.
    pub(crate) fn is_late(&self, now: u64, options: &Options) -> bool {
        let since = self.waiting.front().map_or(self.received_at, |it| it.since);
        let is_missing = !self.waiting.is_empty() || !self.is_excused;
        let waits = self.received() < self.sent && is_missing && is_long(since, now, options);
        waits && !self.is_told(now)
    }

    fn is_told(&self, now: u64) -> bool {
        now < self.told_until
    }

    /// The messages that the witness delivers now: those that have waited too long, told or not. A
    /// node that tells its own witnesses alone would starve its receiver else.
    pub(crate) fn due(&self, now: u64, options: &Options) -> Vec<SentMessage> {
        let Some(first) = self.waiting.front() else {
            return Vec::new();
        };
        let resend = u64::from(options.resend.max(1));
        let is_time = now.saturating_sub(first.since).is_multiple_of(resend);
        if !is_time {
            return Vec::new();
        }
        let late = self.waiting.iter().take_while(|it| is_long(it.since, now, options));
        late.take(TOGETHER).map(|it| it.message.clone()).collect()
    }
}

fn is_long(since: u64, now: u64, options: &Options) -> bool {
    now.saturating_sub(since) > u64::from(options.suspect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::Authenticator;

    fn authenticator(node: u32) -> Authenticator {
        let signature = [[0; 32]; 2];
        let (previous, input, sent) = ([0; 32], [0; 32], Vec::new());
        Authenticator { node, index: 1, previous, input, sent, signature }
    }

    fn message(number: u64) -> SentMessage {
        SentMessage { authenticator: authenticator(1), to: 2, number, body: Vec::new() }
    }

    fn receipt(number: u64) -> Receipt {
        let authenticator = authenticator(2);
        Receipt { authenticator, from: 1, number, body: [0; 32], sender: [0; 32] }
    }

    fn numbers(it: &Forwarding, now: u64) -> Vec<u64> {
        let due = it.due(now, &Options::default());
        due.iter().map(|it| it.number).collect()
    }

    #[test]
    fn a_message_waits_since_it_was_logged_whatever_receipts_come() {
        let (options, mut it) = (Options::default(), Forwarding::default());
        (1..=3).for_each(|number| it.add(message(number), number, 9));
        assert!(!it.is_late(41, &options));
        assert!(it.is_late(42, &options));
        it.acknowledge(receipt(1), 42);
        assert!(it.is_late(43, &options));
        assert_eq!(numbers(&it, 44), [2, 3]);
        it.tell(2, 43, &options);
        assert!(!it.is_late(44, &options));
        assert_eq!(numbers(&it, 44), [2, 3]);
        // A node that has not heard of a receipt of late tells of an earlier message.
        it.acknowledge(receipt(2), 50);
        it.tell(2, 55, &options);
        assert!(!it.is_late(70, &options));
        for number in [2, 4] {
            it.tell(number, 80, &options);
            assert!(it.is_late(81, &options), "{number}");
        }
        it.acknowledge(receipt(3), 84);
        assert!(!it.is_late(400, &options));
        assert_eq!(it.receipt_of(3), Some(&receipt(3)));
        assert_eq!(it.receipt_of(4), None);
    }

    #[test]
    fn a_witness_keeps_a_bounded_part_without_a_gap() {
        let mut it = Forwarding::default();
        (1..=5).for_each(|number| it.add(message(number), 1, 3));
        it.acknowledge(receipt(2), 1);
        it.add(message(6), 1, 3);
        assert_eq!(numbers(&it, 43), [3]);
        it.acknowledge(receipt(6), 43);
        it.add(message(7), 43, 3);
        assert_eq!(numbers(&it, 85), [7]);
    }

    #[test]
    fn a_node_that_tells_of_a_message_has_told_also_before_the_receipt_of_the_one_before_is_here() {
        let (options, mut it) = (Options::default(), Forwarding::default());
        (1..=2).for_each(|number| it.add(message(number), 1, 9));
        it.tell(2, 50, &options);
        assert!(it.is_late(51, &options));
        it.acknowledge(receipt(1), 52);
        assert!(!it.is_late(75, &options) && it.is_late(76, &options));
    }

    #[test]
    fn a_node_is_excused_for_what_is_forgotten_if_it_told_of_what_is_not() {
        let options = Options::default();
        let forgotten_at = 40;
        for (told_at, is_excused) in [(1, false), (20, true), (48, true)] {
            let mut it = Forwarding::default();
            let tell = |it: &mut Forwarding| it.tell(1, told_at, &options);
            if told_at < forgotten_at {
                tell(&mut it);
            }
            (1..=5).for_each(|number| it.add(message(number), forgotten_at, 3));
            if told_at > forgotten_at {
                tell(&mut it);
            }
            it.add(message(6), 50, 3);
            assert!(it.is_late(90, &options), "a message is there");
            it.acknowledge(receipt(3), 91);
            assert_eq!(it.is_late(400, &options), !is_excused, "{told_at}");
            it.acknowledge(receipt(6), 401);
            it.add(message(7), 401, 3);
            assert!(it.is_late(442, &options), "{told_at}");
        }
    }

    #[test]
    fn a_node_is_not_excused_by_what_it_told_long_before() {
        let (options, mut it) = (Options::default(), Forwarding::default());
        it.tell(2, 10, &options);
        (1..=5).for_each(|number| it.add(message(number), 40, 3));
        it.acknowledge(receipt(1), 50);
        it.acknowledge(receipt(3), 91);
        assert!(it.is_late(400, &options));
    }

    #[test]
    fn a_receipt_of_the_greatest_number_is_no_panic() {
        let (options, mut it) = (Options::default(), Forwarding::default());
        it.acknowledge(receipt(u64::MAX), 1);
        it.tell(1, 1, &options);
        it.add(message(1), 1, 9);
        assert!(!it.is_late(99, &options));
        assert_eq!(numbers(&it, 90), [0; 0]);
    }
}
