// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::collections::step_count::steps_of;
use crate::grant::ndp::pull::PullOrder;
use crate::grant::srpt::ShortestRemainingFirst;
use crate::limits::{GRANT_WINDOW_MIN, INCOMING_MAX};
use smt_wire::{MessageId, SessionIndex};

fn rpc(id: u64) -> RpcId {
    rpc_of(1, id)
}

/// Tells at time 0 that `arrived` of these bytes have arrived and `granted` may be sent.
fn update(grants: &mut GrantScheduler, rpc: RpcId, length: u32, arrived: u32, granted: u32) {
    update_at(0, grants, rpc, progress(length, arrived, granted));
}

/// Tells the same at `at` milliseconds.
fn update_at(at: u64, grants: &mut GrantScheduler, rpc: RpcId, progress: Progress) {
    grants.update(milli(at), rpc, progress);
}

fn progress(length: u32, arrived: u32, granted: u32) -> Progress {
    Progress {
        length,
        arrived,
        granted,
    }
}

fn milli(at: u64) -> Time {
    Time::from_nanos(at * 1_000_000)
}

/// Messages of these lengths begin one after the other, with 60,000 bytes that need no grant and of
/// which nothing arrives but 1,000; each is granted what the policy says. The end of what each may
/// send.
fn begin_one_after_the_other(
    policy: &mut dyn GrantPolicy,
    lengths: impl IntoIterator<Item = u32>,
) -> Vec<u32> {
    let mut grants = GrantScheduler::default();
    let mut ends = BTreeMap::new();
    for (id, length) in lengths.into_iter().enumerate() {
        let rpc = rpc(id as u64);
        update(&mut grants, rpc, length, 1_000, FREE);
        ends.insert(rpc, (length, FREE));
        for granted in grants.decide(Time::default(), policy, LIMIT, None) {
            let (length, end) = ends.get_mut(&granted.rpc).unwrap();
            assert!(granted.end > *end && granted.end <= *length);
            *end = granted.end;
            update(&mut grants, granted.rpc, *length, 1_000, granted.end);
        }
    }
    ends.values().map(|(_, end)| *end).collect()
}

fn outstanding(ends: &[u32]) -> u32 {
    ends.iter().map(|end| end - FREE).sum()
}

#[test]
fn granted_and_not_arrived_stays_within_the_budget() {
    let mut policy = ShortestRemainingFirst::default();
    let ends = begin_one_after_the_other(&mut policy, [400_000; 50]);
    let sum = outstanding(&ends);
    assert!((LIMIT / 2..=LIMIT).contains(&sum), "{sum}");
}

/// An overtaken message keeps its grants. The budget is used up, and the first message still has a
/// little.
#[test]
fn a_message_that_overtakes_when_the_budget_is_used_up_has_the_least_window() {
    let mut policy = ShortestRemainingFirst::new(8, 100_000..=200_000);
    let ends = begin_one_after_the_other(&mut policy, (0..50).map(|at| 4_000_000 - at));
    assert_eq!(ends.last(), Some(&101_000));
    let sum = outstanding(&ends);
    assert!(sum <= LIMIT + 50 * (101_000 - FREE), "{sum}");
    assert!(ends.first() > ends.last());
}

#[test]
fn a_policy_grants_as_many_at_once_as_it_wants() {
    let mut grants = GrantScheduler::default();
    for id in 0..200 {
        update(&mut grants, rpc(id), 400_000, FREE, FREE);
    }
    let mut policy = ShortestRemainingFirst::new(100, 1_000..=100_000);
    assert_eq!(
        grants
            .decide(Time::default(), &mut policy, LIMIT, None)
            .len(),
        100
    );
    assert!(
        grants
            .decide(Time::default(), &mut policy, LIMIT, None)
            .is_empty()
    );
}

/// Grants nothing; notes how many messages it was shown.
#[derive(Default)]
struct Shown(Vec<usize>);

impl GrantPolicy for Shown {
    fn grant(&mut self, _: Time, messages: &[Grantable], _: GrantBudget, _: &mut Vec<Granted>) {
        self.0.push(messages.len());
    }
}

#[test]
fn a_decision_looks_at_few_messages_however_many_wait() {
    let mut policy = Shown::default();
    begin_one_after_the_other(&mut policy, [2_000_000; 10_000]);
    assert_eq!(policy.0.len(), 10_000);
    let most = policy.0.iter().max().copied().unwrap();
    assert_eq!(most, policy.candidates());
}

#[test]
fn the_oldest_is_shown_although_it_is_the_longest() {
    let mut grants = GrantScheduler::default();
    for id in 0..100u64 {
        let rpc = rpc(id);
        update(&mut grants, rpc, 4_000_000 - id as u32, 1_000, FREE);
    }
    let mut shown = Vec::new();
    grants.show(8, PLENTY, &mut shown);
    let ids: Vec<u64> = shown.iter().map(|message| message.rpc.id.0).collect();
    assert_eq!(ids, [99, 98, 97, 96, 95, 94, 93, 92, 0]);
}

#[test]
fn a_message_that_ends_gives_its_part_of_the_budget_back() {
    let mut grants = GrantScheduler::default();
    let rpc = rpc(1);
    update(&mut grants, rpc, 400_000, 1_000, FREE);
    update(&mut grants, rpc, 400_000, 1_000, 400_000);
    assert_eq!(grants.outstanding, u64::from(400_000 - FREE));
    update(&mut grants, rpc, 400_000, 300_000, 400_000);
    assert_eq!(grants.outstanding, 100_000);
    grants.remove(rpc);
    assert_eq!(grants.outstanding, 0);
    assert!(grants.by_left.is_empty() && grants.by_age.is_empty());
}

/// With the path out for a while all are passed over, and when it is back all go on: beyond the
/// budget, but it is known.
#[test]
fn a_message_that_was_passed_over_and_comes_back_counts_again_and_is_as_old_as_before() {
    let mut grants = GrantScheduler::default();
    for id in [1, 2] {
        update(&mut grants, rpc(id), 400_000, 1_000, FREE);
        update(&mut grants, rpc(id), 400_000, 1_000, FREE + 100_000);
    }
    grants.pass_over(rpc(1));
    update(&mut grants, rpc(1), 400_000, 1_000, FREE + 100_000);
    assert_eq!(grants.outstanding, 100_000, "nothing has come");
    update(&mut grants, rpc(1), 400_000, 70_000, FREE + 100_000);
    assert_eq!(grants.outstanding, 190_000);
    assert_eq!(grants.by_age.values().next(), Some(&rpc(1)));
    grants.pass_over(rpc(2));
    grants.remove(rpc(2));
    assert!(grants.passed_over.is_empty());
}

#[test]
fn a_policy_that_pulls_is_shown_the_pending_messages_in_turn() {
    let mut grants = GrantScheduler::default();
    let pulling = |order| Pulling {
        window: 10_000,
        order,
    };
    grants.set_pulling(Some(pulling(PullOrder::RoundRobin)));
    for id in 0..4u64 {
        let length = 400_000 - 10 * id as u32;
        update(&mut grants, rpc(id), length, 60_000, FREE);
    }
    let shown = |grants: &mut GrantScheduler| {
        let mut shown = Vec::new();
        grants.show(8, PLENTY, &mut shown);
        let ids = shown.iter().map(|message| message.rpc.id.0);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut grants), [0, 1, 2, 3]);
    // A message that was granted goes behind the others. One that has enough is gone, but for the
    // oldest, which is always shown. One that merely gets bytes keeps its place.
    update(&mut grants, rpc(1), 400_000 - 10, 60_000, FREE + 1_000);
    update(&mut grants, rpc(2), 400_000 - 20, 61_000, FREE);
    update(&mut grants, rpc(0), 400_000, 60_000, FREE + 10_000);
    assert_eq!(shown(&mut grants), [2, 3, 1, 0]);
    grants.set_pulling(Some(pulling(PullOrder::ShortestFirst)));
    assert_eq!(shown(&mut grants), [2, 3, 1, 0]);
    update(&mut grants, rpc(1), 400_000 - 10, 63_000, FREE + 1_000);
    assert_eq!(shown(&mut grants), [1, 2, 3, 0]);
    grants.set_pulling(None);
    assert!(grants.pull_queue.is_empty());
    (0..4).for_each(|id| grants.remove(rpc(id)));
    assert!(grants.pull_queue.is_empty() && grants.by_left.is_empty());
}

const LIMIT: u32 = INCOMING_MAX;
const PLENTY: GrantBudget = GrantBudget {
    limit: LIMIT,
    outstanding: 0,
    sender_limited: 0,
};
/// The bytes that each message may send without a grant.
const FREE: u32 = 60_000;

fn rpc_of(session: u32, id: u64) -> RpcId {
    RpcId {
        session: SessionIndex(session.into()),
        id: MessageId(id),
    }
}

/// The id of the message that may get on at a time while memory is full, if any.
fn turn(grants: &mut GrantScheduler, at: u64) -> Option<u64> {
    let next = grants.under_memory_pressure(milli(at), &|_| true);
    next.map(|message| message.rpc.id.0)
}

/// Eight that hold all that there is do not hide the others.
#[test]
fn a_policy_that_pulls_is_shown_starved_messages_beyond_the_budget() {
    let mut grants = GrantScheduler::default();
    grants.set_pulling(Some(Pulling {
        window: 100_000,
        order: PullOrder::RoundRobin,
    }));
    for id in 0..12 {
        update(&mut grants, rpc(id), 400_000, FREE, FREE);
    }
    let granted = 40_000;
    (0..8).for_each(|id| update(&mut grants, rpc(id), 400_000, FREE, FREE + granted));
    // All of the others come to the end of their grants before.
    (8..12).for_each(|id| update(&mut grants, rpc(id), 400_000, FREE, FREE + 1));
    let mut policy = crate::grant::ndp::pull::Pull::new(10_000_000_000, 100_000);
    let mut pulled = |grants: &mut GrantScheduler| {
        let limit = 8 * granted;
        let decisions = grants.decide(Time::default(), &mut policy, limit, None);
        decisions.first().map(|granted| granted.rpc.id.0)
    };
    assert_eq!(pulled(&mut grants), None);
    update(&mut grants, rpc(10), 400_000, FREE + 1, FREE + 1);
    assert_eq!(pulled(&mut grants), Some(10));
}

/// Messages 1 to 3 of session 1 and message 4 of session 2, in the order of their lengths.
fn four_of_two_sessions() -> GrantScheduler {
    let mut grants = GrantScheduler::default();
    for (session, id) in [(1, 1), (1, 2), (1, 3), (2, 4)] {
        let length = 300_000 + id as u32;
        update(&mut grants, rpc_of(session, id), length, 1_000, FREE);
    }
    grants
}

#[test]
fn only_a_message_that_frees_memory_gets_on_while_memory_is_full() {
    let mut grants = four_of_two_sessions();
    let next = grants.under_memory_pressure(Time::default(), &|rpc| rpc.id.0 > 2);
    assert_eq!(next.map(|message| message.rpc.id.0), Some(3));
}

#[test]
fn a_message_that_was_granted_all_is_waited_for() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    update(&mut grants, rpc_of(1, 1), 300_001, 1_000, 300_001);
    assert_eq!(turn(&mut grants, 1), None);
    update(&mut grants, rpc_of(1, 1), 300_001, 250_000, 300_001);
    assert_eq!(turn(&mut grants, 4), None);
    grants.remove(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 4), Some(2));
}

/// Else each of several would have a part, and none would be whole.
#[test]
fn a_message_that_was_granted_a_part_keeps_its_turn_though_a_shorter_one_begins() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    update(&mut grants, rpc_of(1, 1), 300_001, 1_000, 200_000);
    update(&mut grants, rpc_of(2, 5), 100_000, 1_000, FREE);
    assert_eq!(turn(&mut grants, 1), Some(1));
}

#[test]
fn a_message_that_does_not_come_is_overtaken_by_one_of_another_session() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    update(&mut grants, rpc_of(1, 1), 300_001, 1_000, 300_001);
    assert_eq!(turn(&mut grants, 4), None);
    assert_eq!(grants.next_timeout(), Some(Time::from_nanos(5_000_000)));
    assert_eq!(turn(&mut grants, 5), Some(4));
    grants.remove(rpc_of(2, 4));
    assert_eq!(
        turn(&mut grants, 6),
        None,
        "all are of the session that waits"
    );
    assert_eq!(grants.next_timeout(), None);
    grants.remove(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 6), Some(2));
}

#[test]
fn a_message_that_is_passed_over_is_overtaken_by_one_of_another_session() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    update(&mut grants, rpc_of(1, 1), 300_001, 1_000, 300_001);
    grants.pass_over(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 1), Some(4));
    grants.remove(rpc_of(2, 4));
    assert_eq!(turn(&mut grants, 2), None);
    grants.remove(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 3), Some(2));
}

#[test]
fn a_message_that_stops_half_way_is_overtaken_until_more_comes() {
    let mut grants = four_of_two_sessions();
    update(&mut grants, rpc_of(1, 1), 300_001, 100_000, 200_000);
    assert_eq!(turn(&mut grants, 0), Some(1), "its window is the policy's");
    assert_eq!(turn(&mut grants, 5), Some(4));
    update(&mut grants, rpc_of(1, 1), 300_001, 101_000, 200_000);
    grants.remove(rpc_of(2, 4));
    assert_eq!(turn(&mut grants, 6), Some(1));
}

/// A peer that begins thousands, and stops, is walked by to find the next one of others: not with
/// every look.
#[test]
fn a_long_walk_is_not_made_again_at_once() {
    let mut grants = GrantScheduler::default();
    for id in 0..10_000 {
        update(&mut grants, rpc_of(1, id), 300_000 + id as u32, 1_000, FREE);
    }
    update(&mut grants, rpc_of(2, 0), 2_000_000, 1_000, FREE);
    assert_eq!(turn(&mut grants, 0), Some(0));
    update(&mut grants, rpc_of(1, 0), 300_000, 1_000, 300_000);
    let looks = |grants: &mut GrantScheduler, at| steps_of(|| turn(grants, at));
    assert_eq!(looks(&mut grants, 5), (10_000, Some(0)));
    // Message 4 is granted all, and ends; the others are of the session that waits.
    grants.remove(rpc_of(2, 0));
    let (steps, next) = steps_of(|| (0..1_000).find_map(|_| turn(&mut grants, 6)));
    assert_eq!((steps, next), (0, None));
    let due = grants.next_timeout().unwrap();
    assert_eq!(due, Time::from_nanos(15_000_000));
    assert_eq!(looks(&mut grants, 16), (9_999, None));
    grants.remove(rpc_of(1, 0));
    let next = (17..).find(|at| turn(&mut grants, *at).is_some());
    assert_eq!(next, Some(26));
    let full = |grants: &mut GrantScheduler| steps_of(|| turn(grants, 27)).0;
    assert!(full(&mut grants) <= 1, "short walks are made at any time");
}

/// Messages of one session with a least window each, of which nothing comes for a resend interval;
/// they are limited by their senders then, and hold nothing of the budget.
fn stalled(count: u64) -> GrantScheduler {
    let mut grants = GrantScheduler::default();
    for id in 0..count {
        let granted = FREE + GRANT_WINDOW_MIN;
        update(&mut grants, rpc(id), 1_000_000, FREE, FREE);
        update(&mut grants, rpc(id), 1_000_000, FREE, granted);
    }
    assert_eq!(decide(&mut grants), [], "the budget is used up");
    assert_eq!(grants.outstanding, count * u64::from(GRANT_WINDOW_MIN));
    assert_eq!(grants.next_timeout(), Some(milli(5)));
    grants.measure(milli(4));
    assert_eq!(grants.outstanding, count * u64::from(GRANT_WINDOW_MIN));
    grants.measure(milli(5));
    grants
}

#[test]
fn grants_that_are_not_used_for_a_resend_interval_are_given_to_others() {
    let mut grants = stalled(20);
    assert_eq!(grants.outstanding, 0);
    assert_eq!(grants.next_timeout(), None);
    update_at(
        5,
        &mut grants,
        rpc_of(2, 99),
        progress(8_000_000, FREE, FREE),
    );
    let decisions = decide(&mut grants);
    assert_eq!(decisions, [(99, FREE + LIMIT)], "all of the budget");
}

#[test]
fn a_message_that_its_sender_limits_has_a_least_window_and_no_more() {
    let mut grants = stalled(20);
    let arrived = FREE + 16_406;
    update_at(
        20,
        &mut grants,
        rpc(3),
        progress(1_000_000, arrived, FREE + GRANT_WINDOW_MIN),
    );
    assert_eq!(decide(&mut grants), [(3, arrived + GRANT_WINDOW_MIN)]);
    assert_eq!(grants.outstanding, 0);
}

#[test]
fn a_sender_that_uses_a_least_window_in_time_is_limited_no_longer() {
    let mut grants = stalled(10);
    let (half, granted) = (FREE + 16_406, FREE + GRANT_WINDOW_MIN);
    update_at(20, &mut grants, rpc(1), progress(1_000_000, half, granted));
    let more = granted + 16_406;
    update_at(20, &mut grants, rpc(1), progress(1_000_000, half, more));
    update_at(25, &mut grants, rpc(1), progress(1_000_000, granted, more));
    assert_eq!(
        decide(&mut grants),
        [(1, granted + GRANT_WINDOW_MIN)],
        "too late"
    );
    update_at(29, &mut grants, rpc(1), progress(1_000_000, more, more));
    assert_eq!(decide(&mut grants), [(1, more + LIMIT)]);
}

#[test]
fn a_message_that_ends_or_is_passed_over_is_not_measured_any_longer() {
    let mut grants = stalled(10);
    for id in [17, 18] {
        update(&mut grants, rpc(id), 1_000_000, FREE, FREE);
        update(&mut grants, rpc(id), 1_000_000, FREE, FREE + 200_000);
    }
    grants.pass_over(rpc(17));
    (0..10).chain([18]).for_each(|id| grants.remove(rpc(id)));
    assert!(grants.measured.is_empty() && grants.by_left.is_empty());
    assert_eq!(grants.outstanding, 0);
}

/// The present decisions of Homa's policy: the ids, and the ends of what they may send.
fn decide(grants: &mut GrantScheduler) -> Vec<(u64, u32)> {
    let mut policy = ShortestRemainingFirst::default();
    let decisions = grants.decide(Time::default(), &mut policy, LIMIT, None);
    let of = |granted: &Granted| (granted.rpc.id.0, granted.end);
    decisions.iter().map(of).collect()
}

#[test]
fn a_window_that_comes_at_once_is_used_in_time_on_a_path_with_a_longer_round_trip() {
    let mut grants = stalled(10);
    let granted = FREE + GRANT_WINDOW_MIN;
    update_at(
        20,
        &mut grants,
        rpc(1),
        progress(1_000_000, FREE + 16_406, granted),
    );
    assert_eq!(decide(&mut grants), [(1, granted + 16_406)]);
    update_at(
        21,
        &mut grants,
        rpc(1),
        progress(1_000_000, granted, granted + 16_406),
    );
    assert_eq!(decide(&mut grants), [(1, granted + LIMIT)]);
}

/// Bytes that have arrived of messages that their senders limit: of each a record is on its way.
const HALF: u32 = FREE + 16_406;

/// A number of messages of one session, all of which their senders limit.
fn limited(count: u64) -> GrantScheduler {
    let mut grants = stalled(10);
    for id in 0..10 {
        let granted = FREE + GRANT_WINDOW_MIN;
        update_at(20, &mut grants, rpc(id), progress(1_000_000, HALF, granted));
    }
    (count..10).for_each(|id| grants.remove(rpc(id)));
    grants
}

#[test]
fn messages_that_their_senders_limit_share_the_budget_while_nobody_else_wants_grants() {
    let mut grants = limited(3);
    let end = HALF + LIMIT / 3;
    assert_eq!(decide(&mut grants), [(0, end), (1, end), (2, end)]);
}

#[test]
fn sender_limited_messages_share_a_budget_that_includes_what_they_hold() {
    let mut grants = limited(3);
    update_at(
        20,
        &mut grants,
        rpc(0),
        progress(1_000_000, HALF, HALF + LIMIT),
    );
    let end = HALF + GRANT_WINDOW_MIN;
    assert_eq!(decide(&mut grants), [(1, end), (2, end)]);
}

#[test]
fn another_message_takes_over_and_has_all_of_the_budget_at_the_next_decision() {
    let mut grants = limited(2);
    update_at(
        20,
        &mut grants,
        rpc(0),
        progress(1_000_000, HALF, HALF + LIMIT),
    );
    update_at(
        20,
        &mut grants,
        rpc_of(2, 9),
        progress(8_000_000, FREE, FREE),
    );
    let least = (1, HALF + GRANT_WINDOW_MIN);
    assert_eq!(decide(&mut grants), [(9, FREE + LIMIT), least]);
}

#[test]
fn a_message_that_comes_back_under_a_policy_that_pulls_is_in_the_budget() {
    let mut grants = limited(1);
    grants.pass_over(rpc(0));
    grants.set_pulling(Some(Pulling {
        window: 100_000,
        order: PullOrder::RoundRobin,
    }));
    let granted = FREE + GRANT_WINDOW_MIN;
    update_at(
        40,
        &mut grants,
        rpc(0),
        progress(1_000_000, HALF + 1, granted),
    );
    assert_eq!(grants.outstanding, u64::from(granted - HALF - 1));
    assert_eq!(grants.outstanding_limited, 0);
}
