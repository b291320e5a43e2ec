// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which message gets on while memory is full.

use super::*;

/// The id of the message that may get on at a time while memory is full, if any.
fn turn(grants: &mut GrantScheduler, at: u64) -> Option<u64> {
    let next = grants.under_memory_pressure(milli(at), &|_| true);
    next.map(|message| message.rpc.id.0)
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
    assert_eq!(turn(&mut grants, 6), None, "all are of the session that waits");
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
