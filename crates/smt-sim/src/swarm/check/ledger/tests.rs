// SPDX-License-Identifier: Apache-2.0 OR MIT

use std::collections::BTreeSet;

use super::*;

const A: HostId = HostId(0);
const B: HostId = HostId(1);

fn sent(number: u64, length: u32) -> Sent {
    Sent {
        content: Content { number, length, reply_length: 20 },
        from: A,
        to: B,
        is_one_way: false,
        may_be_given_up: false,
        parts: InParts::default(),
    }
}

fn delivered(sent: Sent) -> Report {
    received(sent.content.body())
}

fn received(body: Bytes) -> Report {
    Report::Delivered(at_b(body))
}

fn at_b(body: Bytes) -> Received {
    Received { at: B, from: A, body }
}

/// The ledger of a run in which the sessions of these two may end.
fn lenient() -> Ledger {
    let mut may_end = HostPairs::default();
    may_end.add(A, B);
    Ledger::new(may_end, BTreeSet::new())
}

fn ended(number: u64, outcome: Outcome) -> Report {
    Report::Ended { number, outcome, is_early: false }
}

/// The checkers that find something after these reports of a message that was sent.
fn found(length: u32, reports: impl FnOnce(Sent) -> Vec<Report>) -> Vec<Checker> {
    let (mut ledger, sent) = (lenient(), sent(7, length));
    ledger.take(Report::Sent(sent));
    reports(sent).into_iter().for_each(|report| ledger.take(report));
    ledger.failures().iter().map(|failure| failure.checker).collect()
}

#[test]
fn a_good_run_is_good() {
    let replied = |sent: Sent| ended(7, Outcome::Replied(sent.content.reply()));
    for length in [0, 5, 12, 5_000] {
        assert_eq!(found(length, |sent| vec![delivered(sent), replied(sent)]), []);
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
        vec![received(body)]
    });
    assert_eq!(changed, [Checker::Content]);
}

#[test]
fn a_cut_message_is_caught() {
    let cut = found(500, |sent| {
        let body = sent.content.body().slice(..499);
        vec![received(body)]
    });
    assert_eq!(cut, [Checker::Content]);
}

#[test]
fn message_that_nobody_sent_is_caught() {
    let invented = found(500, |_| {
        let body = Bytes::from(vec![9; 50]);
        vec![received(body)]
    });
    assert_eq!(invented, [Checker::Content]);
}

#[test]
fn another_sender_or_receiver_is_caught() {
    for (at, from) in [(A, A), (B, B)] {
        let wrong = found(500, |sent| {
            let body = sent.content.body();
            vec![Report::Delivered(Received { at, from, body })]
        });
        assert_eq!(wrong, [Checker::Provenance]);
    }
}

#[test]
fn request_that_ran_and_was_reported_as_not_run_is_caught() {
    let not_run = || ended(7, Outcome::Failed(Execution::DidNotRun));
    let before = found(500, |sent| vec![delivered(sent), not_run()]);
    let after = found(500, |sent| vec![not_run(), delivered(sent)]);
    assert_eq!((before, after), (vec![Checker::AtMostOnce], vec![Checker::AtMostOnce]));
    let refused = found(500, |sent| {
        let refusal = Report::RefusedByApplication(at_b(sent.content.body()));
        vec![delivered(sent), refusal, not_run()]
    });
    assert_eq!(refused, []);
}

/// The checkers that find something if this message ends so, in a run whose sessions last.
fn found_at_the_end(sent: Sent, before: Vec<Report>, execution: Execution) -> Vec<Checker> {
    let mut ledger = Ledger::default();
    let reports = std::iter::once(Report::Sent(sent)).chain(before);
    let ends = ended(7, Outcome::Failed(execution));
    reports.chain([ends]).for_each(|report| ledger.take(report));
    let failures = ledger.failures().iter();
    failures.map(|failure| failure.checker).collect()
}

#[test]
fn a_failure_that_nothing_explains_is_caught() {
    for length in [0, 5, 500] {
        for execution in [Execution::MayHaveRun, Execution::DidNotRun] {
            let found = found_at_the_end(sent(7, length), vec![], execution);
            assert_eq!(found, [Checker::Liveness]);
        }
    }
}

#[test]
fn one_between_other_hosts_explains_nothing() {
    let mut may_end = HostPairs::default();
    may_end.add_all_of(HostId(2), 4);
    let mut ledger = Ledger::new(may_end, BTreeSet::new());
    ledger.take(Report::Sent(sent(7, 500)));
    ledger.take(ended(7, Outcome::Failed(Execution::MayHaveRun)));
    assert_eq!(ledger.failures()[0].checker, Checker::Liveness);
}

#[test]
fn a_host_with_little_memory_beside_an_attacker_may_forget_a_reply_and_no_other() {
    for (forgetful, failures) in [(1, 0), (2, 1)] {
        let forgetful = BTreeSet::from([HostId(forgetful)]);
        let mut ledger = Ledger::new(HostPairs::default(), forgetful);
        ledger.take(Report::Sent(sent(7, 500)));
        ledger.take(ended(7, Outcome::Forgotten));
        assert_eq!(ledger.failures().len(), failures);
    }
}

#[test]
fn message_does_not_end_before_it_is_given_up() {
    for is_early in [true, false] {
        let mut ledger = Ledger::default();
        ledger.take(Report::Sent(Sent { may_be_given_up: true, ..sent(7, 500) }));
        ledger.take(Report::Ended {
            number: 7,
            outcome: Outcome::Failed(Execution::MayHaveRun),
            is_early,
        });
        assert_eq!(ledger.failures().len(), usize::from(is_early));
    }
}

#[test]
fn a_second_end_is_caught() {
    let twice = found(500, |sent| {
        let replied = || ended(7, Outcome::Replied(sent.content.reply()));
        vec![delivered(sent), replied(), replied()]
    });
    assert_eq!(twice, [Checker::AtMostOnce]);
}

/// One of two empty messages was delivered: at most one has succeeded, and at most one has not run.
#[test]
fn messages_that_do_not_name_themselves_are_counted() {
    let replied = |number| ended(number, Outcome::Replied(sent(7, 0).content.reply()));
    let not_run = |number| ended(number, Outcome::Failed(Execution::DidNotRun));
    let found = |ends: [Report; 2]| {
        let mut ledger = lenient();
        for number in [7, 8] {
            ledger.take(Report::Sent(sent(number, 0)));
        }
        ledger.take(delivered(sent(7, 0)));
        ends.into_iter().for_each(|end| ledger.take(end));
        let failures = ledger.failures().iter();
        failures.map(|failure| failure.checker).collect::<Vec<_>>()
    };
    assert_eq!(found([replied(7), not_run(8)]), []);
    assert_eq!(found([replied(7), replied(8)]), [Checker::Content]);
    assert_eq!(found([not_run(7), not_run(8)]), [Checker::AtMostOnce]);
}

#[test]
fn one_that_an_application_explains_is_not() {
    let (message, body) = (sent(7, 500), sent(7, 500).content.body());
    let dropped = vec![delivered(message), Report::DroppedByApplication(at_b(body.clone()))];
    let refused = vec![delivered(message), Report::RefusedByApplication(at_b(body))];
    let given_up = Sent { may_be_given_up: true, ..message };
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

#[test]
fn a_one_way_message_with_a_deadline_may_be_missed_where_a_clock_jumps_and_nowhere_else() {
    for (length, may_be_given_up, odd, is_found) in
        [(5_000, true, vec![B], false), (5_000, true, vec![], true), (5_000, false, vec![B], true)]
    {
        let mut ledger = lenient();
        ledger.set_odd_clocks(odd.into_iter().collect());
        let sent = Sent { is_one_way: true, may_be_given_up, ..sent(7, length) };
        ledger.take(Report::Sent(sent));
        ledger.take(ended(7, Outcome::OneWay(OneWayOutcome::Delivered)));
        assert_eq!(!ledger.failures().is_empty(), is_found);
    }
}
