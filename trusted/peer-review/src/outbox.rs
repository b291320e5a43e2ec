// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of a node to one receiver that have no receipt yet.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::authenticator::{Receipt, SentMessage};
use crate::group::Options;

/// How many messages are sent again at once.
const TOGETHER: usize = 8;

/// Messages to one receiver, in the order of their numbers.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Outbox {
    waiting: VecDeque<SentMessage>,
    /// The tick at which each of them began to wait.
    since: VecDeque<u64>,
    now: u64,
    /// The number of the last message.
    sent: u64,
    /// The newest receipt, which is one for all messages before too.
    receipt: Option<Receipt>,
    /// Ticks since the first message is the first.
    age: u32,
}

/// Things to be done for a receiver.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Due {
    pub(crate) again: Vec<SentMessage>,
    pub(crate) complaint: Option<SentMessage>,
}

impl Outbox {
    /// Adds a message. The oldest are kept when there are more than `retained`: they are the ones
    /// that a receiver takes first.
    pub(crate) fn push(&mut self, message: SentMessage, retained: usize) {
        self.sent = message.number;
        if self.waiting.len() < retained {
            self.waiting.push_back(message);
            self.since.push_back(self.now);
        }
    }

    /// How many messages have no receipt yet.
    pub(crate) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Ticks since the receiver has given the last receipt, while messages wait.
    pub(crate) fn age(&self) -> u32 {
        self.age
    }

    pub(crate) fn receipt(&self) -> Option<&Receipt> {
        self.receipt.as_ref()
    }

    /// Whether a receipt tells something new.
    pub(crate) fn wants(&self, receipt: &Receipt) -> bool {
        let known = self.receipt.as_ref().map_or(0, |it| it.number);
        (known + 1..=self.sent).contains(&receipt.number)
    }

    /// Takes a genuine receipt.
    pub(crate) fn acknowledge(&mut self, receipt: Receipt) {
        while self.waiting.front().is_some_and(|it| it.number <= receipt.number) {
            self.waiting.pop_front();
            self.since.pop_front();
        }
        self.age = 0;
        self.receipt = Some(receipt);
    }

    /// The message after the first one.
    #[cfg(feature = "sim")]
    pub(crate) fn second(&self) -> Option<&SentMessage> {
        self.waiting.get(1)
    }

    /// Whether a message was sent, has no receipt, and is not kept.
    #[cfg(feature = "sim")]
    pub(crate) fn has_forgotten(&self, number: u64) -> bool {
        let received = self.receipt.as_ref().map_or(0, |it| it.number);
        let is_kept = self.waiting.iter().any(|it| it.number == number);
        (received + 1..=self.sent).contains(&number) && !is_kept
    }

    pub(crate) fn tick(&mut self, options: &Options) -> Due {
        self.now = self.now.saturating_add(1);
        let (Some(first), Some(since)) = (self.waiting.front(), self.since.front()) else {
            return Due::default();
        };
        self.age = self.age.saturating_add(1);
        let mut due = Due::default();
        if self.age.is_multiple_of(options.resend.max(1)) {
            due.again = self.waiting.iter().take(TOGETHER).cloned().collect();
        }
        // A receiver that takes messages late is told of too, though receipts come now and then.
        let complain = u64::from(options.complain.max(1));
        let is_old = self.now.saturating_sub(*since) >= complain;
        if is_old && self.now.is_multiple_of(complain) {
            due.complaint = Some(first.clone());
        }
        due
    }
}
