// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The books of all messages: who sent what to whom, what was delivered, how it ended.
//!
//! Applications report; the ledger believes only what follows from the messages' bytes and from who
//! the peer of a session has proved to be.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use smt_proto::{Execution, OneWayOutcome};

use super::parts::PartStreams;
use super::{Checker, Content, Failure, InParts, PartReport, PartStream};
use crate::net::packet::HostId;
use crate::swarm::host_pairs::HostPairs;

/// A report of what an application has done or seen.
#[derive(Debug)]
pub enum Report {
    /// It handed a message to its endpoint.
    Sent(Sent),
    /// A message came out of an endpoint.
    Delivered(Received),
    /// The receiving application refused the request instead of running it.
    RefusedByApplication(Received),
    /// The receiving application ended the request without a reply.
    DroppedByApplication(Received),
    /// A message that was sent has ended.
    Ended {
        /// Its number.
        number: u64,
        /// How.
        outcome: Outcome,
        /// Before it was to be given up, by clocks that are right.
        is_early: bool,
    },
    /// A session is live with a peer that has proved to be somebody else than who is at its
    /// address.
    Impostor {
        /// The host that believes the proof.
        at: HostId,
        /// The host that is at the address.
        expected: HostId,
        /// The host whose identity was proved.
        proved: Option<HostId>,
    },
    /// A host has crashed: whatever it waited for will not be reported.
    Crashed(HostId),
    /// A part of a call was sent or taken.
    Part(PartStream, PartReport),
    /// It saw what must not be.
    Found(Failure),
}

/// A message that has come out of an endpoint.
#[derive(Clone, Debug)]
pub struct Received {
    /// The receiver.
    pub at: HostId,
    /// The proven sender.
    pub from: HostId,
    /// The message.
    pub body: Bytes,
}

/// A message that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The content of the message.
    pub content: Content,
    /// The sender.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// Without a reply.
    pub is_one_way: bool,
    /// With a deadline, or to be given up.
    pub may_be_given_up: bool,
    /// The messages of it that come in parts.
    pub parts: InParts,
}

/// How a message ended for its sender.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A reply came.
    Replied(Bytes),
    /// No reply came.
    Failed(Execution),
    /// No reply came, since its receiver does not keep it any longer: it may have run.
    Forgotten,
    /// The end of a one-way message.
    OneWay(OneWayOutcome),
}

/// All messages of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    messages: BTreeMap<u64, Entry>,
    /// Messages that do not name themselves, by sender, receiver and bytes.
    tiny: BTreeMap<(HostId, HostId, Bytes), Tiny>,
    /// The parts of all calls.
    parts: PartStreams,
    /// How many calls were begun in parts.
    calls_in_parts: u64,
    failures: Vec<Failure>,
    /// Between these hosts sessions may end. Between others only an application ends a message
    /// without success.
    may_end: HostPairs,
    /// Hosts that may give up replies of which nothing gets through for long.
    may_forget: BTreeSet<HostId>,
    /// Hosts that accept messages some time after they have come: what the senders of one-way
    /// messages hear of is their coming.
    accept_late: BTreeSet<HostId>,
    /// Hosts whose clocks step or drift.
    odd_clocks: BTreeSet<HostId>,
    /// How many were delivered, and how many ended well.
    delivered: u64,
    succeeded: u64,
}

/// How many messages of the same bytes, which nobody can tell apart, ...
#[derive(Clone, Copy, Debug, Default)]
struct Tiny {
    sent: u32,
    delivered: u32,
    /// ... the receiving application has refused, or dropped.
    refused: u32,
    dropped: u32,
    /// ... ended well.
    succeeded: u32,
    /// ... ended as such that did not run and will not.
    void: u32,
    /// ... failed although nothing hindered them but perhaps the application.
    failed: u32,
}

impl Tiny {
    /// One more has ended; it may fail if something hinders it.
    fn end(&mut self, outcome: &Outcome, is_hindered: bool) {
        match outcome {
            Outcome::Replied(_) | Outcome::OneWay(OneWayOutcome::Delivered) => self.succeeded += 1,
            Outcome::Failed(Execution::DidNotRun)
            | Outcome::OneWay(OneWayOutcome::NotDelivered(_)) => {
                self.void += 1;
                self.failed += u32::from(!is_hindered);
            }
            Outcome::Failed(Execution::MayHaveRun) | Outcome::Forgotten => {
                self.failed += u32::from(!is_hindered);
            }
            // The message was delivered so many ids ago that only "seen" is known of it (SPEC
            // §4.2).
            Outcome::OneWay(OneWayOutcome::MayHaveBeenDelivered(_)) => {}
        }
    }

    /// A contradiction between the counts, whichever of the messages is which.
    fn problem(&self) -> Option<(Checker, &'static str)> {
        if self.delivered > self.sent {
            return Some((Checker::AtMostOnce, "was delivered more often than sent"));
        }
        if self.delivered + self.void > self.sent + self.refused {
            return Some((Checker::AtMostOnce, "ran but was reported as not run"));
        }
        if self.succeeded > self.delivered {
            return Some((Checker::Content, "succeeded though it was not delivered"));
        }
        let is_hindered = self.failed <= self.refused + self.dropped;
        (!is_hindered).then_some((Checker::Liveness, "failed though nothing hindered it"))
    }
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
    /// The ledger of a run in which sessions last except between some hosts, and replies are kept
    /// except by some.
    pub fn new(may_end: HostPairs, may_forget: BTreeSet<HostId>) -> Self {
        Self { may_end, may_forget, ..Self::default() }
    }

    /// These hosts accept messages some time after they have come.
    pub fn set_accept_late(&mut self, hosts: BTreeSet<HostId>) {
        self.accept_late = hosts;
    }

    /// The clocks of these hosts step or drift: a message may be too late for its receiver by the
    /// receiver's clock, though its sender hears of it in time (SPEC §9.5).
    pub fn set_odd_clocks(&mut self, hosts: BTreeSet<HostId>) {
        self.odd_clocks = hosts;
    }

    /// Takes a report.
    pub fn take(&mut self, report: Report) {
        match report {
            Report::Sent(sent) => self.sent(sent),
            Report::Delivered(received) => self.delivered(received),
            Report::RefusedByApplication(received) => match self.claimed(&received.body) {
                Some(entry) => entry.was_refused = true,
                None => self.tiny(received).refused += 1,
            },
            Report::DroppedByApplication(received) => match self.claimed(&received.body) {
                Some(entry) => entry.was_dropped = true,
                None => self.tiny(received).dropped += 1,
            },
            Report::Found(failure) => self.failures.push(failure),
            Report::Part(stream, report) => {
                self.failures.extend(self.parts.take(stream, report));
            }
            Report::Ended { number, outcome, is_early } => self.ended(number, &outcome, is_early),
            Report::Impostor { at, expected, proved } => {
                let text = format!("{at:?} has a session with {expected:?}, who proved {proved:?}");
                self.fail(Checker::Provenance, text);
            }
            Report::Crashed(host) => {
                let of_host = self.messages.values_mut().filter(|e| e.sent.from == host);
                of_host.for_each(|entry| entry.has_ended = true);
            }
        }
    }

    /// Returns the failures that were found so far.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Messages delivered, and those of several records (given the largest first record).
    pub fn delivered_counts(&self, first_record: u32) -> (u64, u64) {
        let is_long = |entry: &&Entry| entry.sent.content.length > first_record;
        let several = self.messages.values().filter(is_long);
        let several = several.filter(|entry| entry.delivered > 0);
        (self.delivered, several.count() as u64)
    }

    /// Messages that were replied to, or delivered if they are one-way.
    pub fn succeeded_count(&self) -> u64 {
        self.succeeded
    }

    /// Calls that were begun in parts, and the parts of all of them that were taken.
    pub fn part_counts(&self) -> (u64, u64) {
        (self.calls_in_parts, self.parts.taken_count())
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
            let text =
                format!("{} messages never ended; the first is {:?}", open.len(), entry.sent);
            self.fail(Checker::Liveness, text);
        }
    }

    fn claimed(&mut self, body: &Bytes) -> Option<&mut Entry> {
        let content = Content::claimed(body)?;
        self.messages.get_mut(&content.number)
    }

    fn sent(&mut self, sent: Sent) {
        self.calls_in_parts += u64::from(sent.parts.has_parts());
        if sent.content.length < super::TINY {
            self.tiny.entry(name_of(sent)).or_default().sent += 1;
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

    fn tiny(&mut self, received: Received) -> &mut Tiny {
        let name = (received.from, received.at, received.body);
        self.tiny.entry(name).or_default()
    }

    fn delivered(&mut self, received: Received) {
        self.delivered += 1;
        let Received { at, from, ref body } = received;
        let Some(claimed) = Content::claimed(body) else {
            let tiny = self.tiny(received);
            tiny.delivered += 1;
            if let Some((checker, problem)) = tiny.problem() {
                let text = format!("{at:?} got a tiny message from {from:?} that {problem}");
                self.fail(checker, text);
            }
            return;
        };
        let Some(entry) = self.messages.get_mut(&claimed.number) else {
            let text = format!("{at:?} got {} bytes that nobody sent", body.len());
            self.fail(Checker::Content, text);
            return;
        };
        entry.delivered += 1;
        let (sent, times, is_void) = (entry.sent, entry.delivered, entry.is_void);
        if sent.content.body() != *body {
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

    fn ended(&mut self, number: u64, outcome: &Outcome, is_early: bool) {
        let Some(entry) = self.messages.get_mut(&number) else {
            return;
        };
        let sent = entry.sent;
        let had_ended = std::mem::replace(&mut entry.has_ended, true);
        let mut problems = Vec::new();
        let is_given_up = sent.may_be_given_up && !is_early;
        let is_forgotten =
            matches!(outcome, Outcome::Forgotten) && self.may_forget.contains(&sent.to);
        let is_hindered = is_given_up || is_forgotten || self.may_end.contains(sent.from, sent.to);
        // Deliveries of tiny messages are not told apart, nor what their receivers have done with
        // them.
        let delivered = (sent.content.length >= super::TINY).then_some(entry.delivered);
        let is_sure = delivered.is_some() && !is_hindered;
        let is_late_there =
            is_given_up && [sent.from, sent.to].iter().any(|host| self.odd_clocks.contains(host));
        let may_be_missed = self.accept_late.contains(&sent.to) || is_late_there;
        let was_missed = delivered == Some(0) && !may_be_missed;
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
                if was_missed {
                    problems.push((Checker::Content, "was not delivered but reported as such"));
                }
            }
            Outcome::Failed(Execution::MayHaveRun) | Outcome::Forgotten => {
                if is_sure && !entry.was_dropped {
                    problems.push((Checker::Liveness, "failed though nothing hindered it"));
                }
            }
            Outcome::OneWay(OneWayOutcome::MayHaveBeenDelivered(_)) => {
                // The message was delivered so many ids ago that only "seen" is known of it (SPEC
                // §4.2).
                if is_sure && was_missed {
                    problems.push((Checker::Liveness, "was lost though nothing hindered it"));
                }
            }
        }
        if had_ended {
            problems.push((Checker::AtMostOnce, "ended twice"));
        }
        if delivered.is_none() {
            let tiny = self.tiny.entry(name_of(sent)).or_default();
            let may_wait =
                matches!(outcome, Outcome::OneWay(OneWayOutcome::Delivered)) && may_be_missed;
            if !may_wait {
                tiny.end(outcome, is_hindered);
            }
            problems.extend(tiny.problem());
        }
        for (checker, problem) in problems {
            self.fail(checker, format!("{sent:?} {problem}"));
        }
    }

    fn fail(&mut self, checker: Checker, text: String) {
        self.failures.push(Failure::new(checker, text));
    }
}

/// The name of a message that does not name itself.
fn name_of(sent: Sent) -> (HostId, HostId, Bytes) {
    (sent.from, sent.to, sent.content.body())
}

#[cfg(test)]
mod tests;
