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
mod tests {
    use super::*;

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);

    fn sent(number: u64, length: u32) -> Sent {
        Sent {
            content: Content {
                number,
                length,
                reply_length: 20,
            },
            from: A,
            to: B,
            is_one_way: false,
            may_be_given_up: false,
        }
    }

    fn delivered(sent: Sent) -> Report {
        Report::Delivered {
            at: B,
            from: A,
            body: sent.content.body(),
        }
    }

    fn ended(number: u64, outcome: Outcome) -> Report {
        Report::Ended { number, outcome }
    }

    /// What is found after these reports of a message that was sent.
    fn found(length: u32, reports: impl FnOnce(Sent) -> Vec<Report>) -> Vec<Checker> {
        let (mut ledger, sent) = (Ledger::default(), sent(7, length));
        ledger.take(Report::Sent(sent));
        reports(sent)
            .into_iter()
            .for_each(|report| ledger.take(report));
        ledger
            .failures()
            .iter()
            .map(|failure| failure.checker)
            .collect()
    }

    #[test]
    fn a_good_run_is_good() {
        let replied = |sent: Sent| ended(7, Outcome::Replied(sent.content.reply()));
        for length in [0, 5, 12, 5_000] {
            assert_eq!(
                found(length, |sent| vec![delivered(sent), replied(sent)]),
                []
            );
        }
    }

    #[test]
    fn a_second_delivery_is_caught() {
        for length in [5, 500] {
            let twice = found(length, |sent| vec![delivered(sent), delivered(sent)]);
            assert_eq!(twice, [Checker::AtMostOnce]);
        }
    }

    #[test]
    fn one_changed_byte_is_caught() {
        let changed = found(500, |sent| {
            let mut body = sent.content.body().to_vec();
            body[400] ^= 1;
            let body = Bytes::from(body);
            vec![Report::Delivered {
                at: B,
                from: A,
                body,
            }]
        });
        assert_eq!(changed, [Checker::Content]);
    }

    #[test]
    fn a_cut_message_is_caught() {
        let cut = found(500, |sent| {
            let body = sent.content.body().slice(..499);
            vec![Report::Delivered {
                at: B,
                from: A,
                body,
            }]
        });
        assert_eq!(cut, [Checker::Content]);
    }

    #[test]
    fn what_nobody_sent_is_caught() {
        let invented = found(500, |_| {
            let body = Bytes::from(vec![9; 50]);
            vec![Report::Delivered {
                at: B,
                from: A,
                body,
            }]
        });
        assert_eq!(invented, [Checker::Content]);
    }

    #[test]
    fn another_sender_or_receiver_is_caught() {
        for (at, from) in [(A, A), (B, B)] {
            let wrong = found(500, |sent| {
                let body = sent.content.body();
                vec![Report::Delivered { at, from, body }]
            });
            assert_eq!(wrong, [Checker::Provenance]);
        }
    }

    #[test]
    fn what_ran_was_not_reported_as_not_run() {
        let not_run = || ended(7, Outcome::Failed(Execution::DidNotRun));
        let before = found(500, |sent| vec![delivered(sent), not_run()]);
        let after = found(500, |sent| vec![not_run(), delivered(sent)]);
        assert_eq!(
            (before, after),
            (vec![Checker::AtMostOnce], vec![Checker::AtMostOnce])
        );
        let refused = found(500, |sent| {
            let refusal = Report::RefusedByApplication(sent.content.body());
            vec![delivered(sent), refusal, not_run()]
        });
        assert_eq!(refused, []);
    }

    /// What is found if this ends so, in a run whose sessions last.
    fn found_at_the_end(sent: Sent, before: Vec<Report>, execution: Execution) -> Vec<Checker> {
        let mut ledger = Ledger::new(true);
        let reports = std::iter::once(Report::Sent(sent)).chain(before);
        let ends = ended(7, Outcome::Failed(execution));
        reports.chain([ends]).for_each(|report| ledger.take(report));
        let failures = ledger.failures().iter();
        failures.map(|failure| failure.checker).collect()
    }

    #[test]
    fn a_failure_that_nothing_explains_is_caught() {
        let message = sent(7, 500);
        for execution in [Execution::MayHaveRun, Execution::DidNotRun] {
            let found = found_at_the_end(message, vec![], execution);
            assert_eq!(found, [Checker::Liveness]);
        }
    }

    #[test]
    fn one_that_an_application_explains_is_not() {
        let (message, body) = (sent(7, 500), sent(7, 500).content.body());
        let dropped = vec![
            delivered(message),
            Report::DroppedByApplication(body.clone()),
        ];
        let refused = vec![delivered(message), Report::RefusedByApplication(body)];
        let given_up = Sent {
            may_be_given_up: true,
            ..message
        };
        let (may, did_not) = (Execution::MayHaveRun, Execution::DidNotRun);
        assert_eq!(found_at_the_end(message, dropped, may), []);
        assert_eq!(found_at_the_end(message, refused, did_not), []);
        assert_eq!(found_at_the_end(given_up, vec![], may), []);
    }

    #[test]
    fn a_wrong_reply_is_caught() {
        let wrong = found(500, |sent| {
            let reply = Bytes::from(vec![1; 20]);
            vec![delivered(sent), ended(7, Outcome::Replied(reply))]
        });
        assert_eq!(wrong, [Checker::Content]);
    }

    #[test]
    fn a_message_that_never_ends_is_caught() {
        let mut ledger = Ledger::default();
        ledger.take(Report::Sent(sent(7, 500)));
        ledger.take(Report::Sent(sent(8, 500)));
        ledger.take(ended(8, Outcome::Failed(Execution::MayHaveRun)));
        ledger.check_all_ended();
        assert_eq!(ledger.failures()[0].checker, Checker::Liveness);
        let mut ledger = Ledger::default();
        ledger.take(Report::Sent(sent(7, 500)));
        ledger.take(Report::Crashed(A));
        ledger.check_all_ended();
        assert!(ledger.failures().is_empty());
    }
}
