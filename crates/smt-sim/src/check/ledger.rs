// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The books of all messages: who sent what to whom, what was delivered, how it ended.
//!
//! Applications report; the ledger believes only what follows from the messages' bytes and from who the peer
//! of a session has proved to be.

use std::collections::BTreeMap;

use bytes::Bytes;
use smt_proto::{Execution, OneWayOutcome};

use super::{Checker, Content, Failure};
use crate::packet::HostId;

/// What an application has done or seen.
#[derive(Debug)]
pub enum Report {
    /// It handed a message to its endpoint.
    Sent(Sent),
    /// A message came out of the endpoint of `at`, in a session whose peer has proved to be `from`.
    Delivered {
        /// The receiver.
        at: HostId,
        /// The proven sender.
        from: HostId,
        /// The message.
        body: Bytes,
    },
    /// The receiving application refused the request instead of running it.
    RefusedByApplication(Bytes),
    /// The receiving application ended the request without a reply, or by one that its caller does not take.
    DroppedByApplication(Bytes),
    /// A message that was sent has ended.
    Ended {
        /// Its number.
        number: u64,
        /// How.
        outcome: Outcome,
    },
    /// A session is live with a peer that has proved to be somebody else than who is at its address.
    Impostor {
        /// Who believes it.
        at: HostId,
        /// Who is there.
        expected: HostId,
        /// What was proved.
        proved: Option<HostId>,
    },
    /// A host has crashed: whatever it waited for will not be reported.
    Crashed(HostId),
    /// It saw what must not be.
    Found(Failure),
}

/// A message that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// What it is.
    pub content: Content,
    /// Who sent it.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// Without a reply.
    pub is_one_way: bool,
    /// With a deadline, or to be given up.
    pub may_be_given_up: bool,
}

/// How a message ended for its sender.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A reply came.
    Replied(Bytes),
    /// None came.
    Failed(Execution),
    /// The end of a one-way message.
    OneWay(OneWayOutcome),
}

/// All messages of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    messages: BTreeMap<u64, Entry>,
    /// Messages that do not name themselves: how many of these bytes were sent, and delivered.
    tiny: BTreeMap<(HostId, HostId, Bytes), (u32, u32)>,
    failures: Vec<Failure>,
    /// Sessions last: then only an application ends a message without success.
    do_sessions_last: bool,
    /// How many were delivered, and how many ended well.
    delivered: u64,
    succeeded: u64,
}

#[derive(Debug)]
struct Entry {
    sent: Sent,
    delivered: u32,
    was_refused: bool,
    was_dropped: bool,
    /// It ended as one that did not run and will not.
    is_void: bool,
    has_ended: bool,
}

impl Ledger {
    /// Of a run in which sessions last, or may end.
    pub fn new(do_sessions_last: bool) -> Self {
        Self {
            do_sessions_last,
            ..Self::default()
        }
    }

    /// Takes a report.
    pub fn take(&mut self, report: Report) {
        match report {
            Report::Sent(sent) => self.sent(sent),
            Report::Delivered { at, from, body } => self.delivered(at, from, body),
            Report::RefusedByApplication(body) => {
                if let Some(entry) = self.claimed(&body) {
                    entry.was_refused = true;
                }
            }
            Report::DroppedByApplication(body) => {
                if let Some(entry) = self.claimed(&body) {
                    entry.was_dropped = true;
                }
            }
            Report::Found(failure) => self.failures.push(failure),
            Report::Ended { number, outcome } => self.ended(number, &outcome),
            Report::Impostor {
                at,
                expected,
                proved,
            } => {
                let text = format!("{at:?} has a session with {expected:?}, who proved {proved:?}");
                self.fail(Checker::Provenance, text);
            }
            Report::Crashed(host) => {
                let of_host = self.messages.values_mut().filter(|e| e.sent.from == host);
                of_host.for_each(|entry| entry.has_ended = true);
            }
        }
    }

    /// What was found so far.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Messages delivered.
    pub fn delivered_count(&self) -> u64 {
        self.delivered
    }

    /// Messages that were sent, and those of several records (given the largest first record).
    pub fn sent_counts(&self, first_record: u32) -> (u64, u64) {
        let all = self.messages.len() as u64;
        let several = self
            .messages
            .values()
            .filter(|entry| entry.sent.content.length > first_record);
        (all, several.count() as u64)
    }

    /// Messages that were replied to, or delivered if they are one-way.
    pub fn succeeded_count(&self) -> u64 {
        self.succeeded
    }

    /// Messages that have not ended.
    pub fn open_count(&self) -> usize {
        let open = self.messages.values().filter(|entry| !entry.has_ended);
        open.count()
    }

    /// Looks whether everything has ended. Call it when there was time enough.
    pub fn check_all_ended(&mut self) {
        let open = self.messages.iter().filter(|(_, entry)| !entry.has_ended);
        let open: Vec<u64> = open.map(|(number, _)| *number).collect();
        if let Some(first) = open.first() {
            let entry = &self.messages[first];
            let text = format!(
                "{} messages never ended; the first is {:?}",
                open.len(),
                entry.sent
            );
            self.fail(Checker::Liveness, text);
        }
    }

    fn claimed(&mut self, body: &Bytes) -> Option<&mut Entry> {
        let content = Content::claimed(body)?;
        self.messages.get_mut(&content.number)
    }

    fn sent(&mut self, sent: Sent) {
        if sent.content.length < super::TINY {
            let name = (sent.from, sent.to, sent.content.body());
            self.tiny.entry(name).or_default().0 += 1;
        }
        let entry = Entry {
            sent,
            delivered: 0,
            was_refused: false,
            was_dropped: false,
            is_void: false,
            has_ended: false,
        };
        self.messages.insert(sent.content.number, entry);
    }

    fn delivered(&mut self, at: HostId, from: HostId, body: Bytes) {
        self.delivered += 1;
        let Some(claimed) = Content::claimed(&body) else {
            self.tiny_delivered(at, from, body);
            return;
        };
        let Some(entry) = self.messages.get_mut(&claimed.number) else {
            let text = format!("{at:?} got {} bytes that nobody sent", body.len());
            self.fail(Checker::Content, text);
            return;
        };
        entry.delivered += 1;
        let (sent, times, is_void) = (entry.sent, entry.delivered, entry.is_void);
        if sent.content.body() != body {
            let text = format!("{at:?} got other bytes than were sent as {sent:?}");
            self.fail(Checker::Content, text);
        }
        if (sent.from, sent.to) != (from, at) {
            let text = format!("{at:?} got from {from:?} what was sent as {sent:?}");
            self.fail(Checker::Provenance, text);
        }
        if times > 1 {
            let text = format!("{sent:?} was delivered {times} times");
            self.fail(Checker::AtMostOnce, text);
        }
        if is_void {
            let text = format!("{sent:?} was delivered after it was reported as not run");
            self.fail(Checker::AtMostOnce, text);
        }
    }

    fn tiny_delivered(&mut self, at: HostId, from: HostId, body: Bytes) {
        let (sent, delivered) = self.tiny.entry((from, at, body)).or_default();
        *delivered += 1;
        if delivered > sent {
            let text = format!("{at:?} got a tiny message from {from:?} too often: {sent} sent");
            self.fail(Checker::AtMostOnce, text);
        }
    }

    fn ended(&mut self, number: u64, outcome: &Outcome) {
        let Some(entry) = self.messages.get_mut(&number) else {
            return;
        };
        let sent = entry.sent;
        let had_ended = std::mem::replace(&mut entry.has_ended, true);
        // Deliveries of tiny messages are not told apart.
        let delivered = (sent.content.length >= super::TINY).then_some(entry.delivered);
        let mut problems = Vec::new();
        // Who refused or dropped a message that does not name itself nobody can tell.
        let is_sure = self.do_sessions_last && delivered.is_some() && !sent.may_be_given_up;
        match outcome {
            Outcome::Replied(body) => {
                self.succeeded += 1;
                if sent.content.reply() != *body {
                    problems.push((Checker::Content, "got another reply than was given"));
                }
                if delivered == Some(0) {
                    problems.push((Checker::Content, "got a reply though it was not delivered"));
                }
            }
            Outcome::Failed(Execution::DidNotRun)
            | Outcome::OneWay(OneWayOutcome::NotDelivered(_)) => {
                entry.is_void = true;
                if delivered.is_some_and(|times| times > 0) && !entry.was_refused {
                    problems.push((Checker::AtMostOnce, "ran but was reported as not run"));
                }
                if is_sure && !entry.was_refused {
                    problems.push((Checker::Liveness, "did not run though nothing hindered it"));
                }
            }
            Outcome::OneWay(OneWayOutcome::Delivered) => {
                self.succeeded += 1;
                if delivered == Some(0) {
                    problems.push((Checker::Content, "was not delivered but reported as such"));
                }
            }
            Outcome::Failed(Execution::MayHaveRun) => {
                if is_sure && !entry.was_dropped {
                    problems.push((Checker::Liveness, "failed though nothing hindered it"));
                }
            }
            Outcome::OneWay(OneWayOutcome::MayHaveBeenDelivered(_)) => {
                // What was delivered so many ids ago that only "seen" is known of it (SPEC §4.2).
                if is_sure && delivered == Some(0) {
                    problems.push((Checker::Liveness, "was lost though nothing hindered it"));
                }
            }
        }
        if had_ended {
            problems.push((Checker::AtMostOnce, "ended twice"));
        }
        for (checker, problem) in problems {
            self.fail(checker, format!("{sent:?} {problem}"));
        }
    }

    fn fail(&mut self, checker: Checker, text: String) {
        self.failures.push(Failure::new(checker, text));
    }
}

#[cfg(test)]
mod tests;
