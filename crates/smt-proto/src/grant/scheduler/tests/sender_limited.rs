// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages whose senders do not use what was granted.

use super::*;

/// Bytes that have arrived of messages that their senders limit: of each a record is on its way.
const HALF: u32 = FREE + 16_406;

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

/// The present decisions of Homa's policy: the ids, and the ends of what they may send.
fn decide(grants: &mut GrantScheduler) -> Vec<(u64, u32)> {
    let mut policy = ShortestRemainingFirst::default();
    let decisions = grants.decide(Time::default(), &mut policy, LIMIT, None);
    let of = |granted: &Granted| (granted.rpc.id.0, granted.end);
    decisions.iter().map(of).collect()
}

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
fn grants_that_are_not_used_for_a_resend_interval_are_given_to_others() {
    let mut grants = stalled(20);
    assert_eq!(grants.outstanding, 0);
    assert_eq!(grants.next_timeout(), None);
    update_at(5, &mut grants, rpc_of(2, 99), progress(8_000_000, FREE, FREE));
    let decisions = decide(&mut grants);
    assert_eq!(decisions, [(99, FREE + LIMIT)], "all of the budget");
}

#[test]
fn a_message_that_its_sender_limits_has_a_least_window_and_no_more() {
    let mut grants = stalled(20);
    let arrived = FREE + 16_406;
    update_at(20, &mut grants, rpc(3), progress(1_000_000, arrived, FREE + GRANT_WINDOW_MIN));
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
    assert_eq!(decide(&mut grants), [(1, granted + GRANT_WINDOW_MIN)], "too late");
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

#[test]
fn a_window_that_comes_at_once_is_used_in_time_on_a_path_with_a_longer_round_trip() {
    let mut grants = stalled(10);
    let granted = FREE + GRANT_WINDOW_MIN;
    update_at(20, &mut grants, rpc(1), progress(1_000_000, FREE + 16_406, granted));
    assert_eq!(decide(&mut grants), [(1, granted + 16_406)]);
    update_at(21, &mut grants, rpc(1), progress(1_000_000, granted, granted + 16_406));
    assert_eq!(decide(&mut grants), [(1, granted + LIMIT)]);
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
    update_at(20, &mut grants, rpc(0), progress(1_000_000, HALF, HALF + LIMIT));
    let end = HALF + GRANT_WINDOW_MIN;
    assert_eq!(decide(&mut grants), [(1, end), (2, end)]);
}

#[test]
fn another_message_takes_over_and_has_all_of_the_budget_at_the_next_decision() {
    let mut grants = limited(2);
    update_at(20, &mut grants, rpc(0), progress(1_000_000, HALF, HALF + LIMIT));
    update_at(20, &mut grants, rpc_of(2, 9), progress(8_000_000, FREE, FREE));
    let least = (1, HALF + GRANT_WINDOW_MIN);
    assert_eq!(decide(&mut grants), [(9, FREE + LIMIT), least]);
}

#[test]
fn a_message_that_comes_back_under_a_policy_that_pulls_is_in_the_budget() {
    let mut grants = limited(1);
    grants.pass_over(rpc(0));
    grants.set_pulling(Some(Pulling { window: 100_000, order: PullOrder::RoundRobin }));
    let granted = FREE + GRANT_WINDOW_MIN;
    update_at(40, &mut grants, rpc(0), progress(1_000_000, HALF + 1, granted));
    assert_eq!(grants.outstanding, u64::from(granted - HALF - 1));
    assert_eq!(grants.outstanding_limited, 0);
}
