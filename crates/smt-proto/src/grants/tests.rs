// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::shortest_remaining::ShortestRemainingFirst;
use smt_wire::{MessageId, SessionIndex};

fn rpc(id: u64) -> RpcId {
    rpc_of(1, id)
}

/// Messages of these lengths begin one after the other, with 60,000 bytes that need no grant and of which nothing
/// arrives but 1,000; each is granted what the policy says. The end of what each may send.
fn begin_one_after_the_other(
    policy: &mut dyn GrantPolicy,
    lengths: impl IntoIterator<Item = u32>,
) -> Vec<u32> {
    let mut grants = Grants::default();
    let mut ends = BTreeMap::new();
    for (id, length) in lengths.into_iter().enumerate() {
        let rpc = rpc(id as u64);
        grants.update(rpc, length, 1_000, FREE);
        ends.insert(rpc, (length, FREE));
        for granted in grants.decide(Time::default(), policy, (LIMIT, false), |_| true) {
            let (length, end) = ends.get_mut(&granted.rpc).unwrap();
            assert!(granted.end > *end && granted.end <= *length);
            *end = granted.end;
            grants.update(granted.rpc, *length, 1_000, granted.end);
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

/// What was overtaken keeps what it has: the budget is used up, and who comes first still has a little.
#[test]
fn what_overtakes_when_the_budget_is_used_up_has_the_least_window() {
    let mut policy = ShortestRemainingFirst::new(8, 100_000..=200_000);
    let ends = begin_one_after_the_other(&mut policy, (0..50).map(|at| 4_000_000 - at));
    assert_eq!(ends.last(), Some(&101_000));
    let sum = outstanding(&ends);
    assert!(sum <= LIMIT + 50 * (101_000 - FREE), "{sum}");
    assert!(ends.first() > ends.last());
}

#[test]
fn a_policy_grants_as_many_at_once_as_it_wants() {
    let mut grants = Grants::default();
    for id in 0..200 {
        grants.update(rpc(id), 400_000, FREE, FREE);
    }
    let mut policy = ShortestRemainingFirst::new(100, 1_000..=100_000);
    assert_eq!(
        grants
            .decide(Time::default(), &mut policy, (LIMIT, false), |_| true)
            .len(),
        100
    );
    assert!(
        grants
            .decide(Time::default(), &mut policy, (LIMIT, false), |_| true)
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
    let mut grants = Grants::default();
    for id in 0..100u64 {
        let rpc = rpc(id);
        grants.update(rpc, 4_000_000 - id as u32, 1_000, FREE);
    }
    let mut shown = Vec::new();
    grants.show(8, &mut shown);
    let ids: Vec<u64> = shown.iter().map(|message| message.rpc.id.0).collect();
    assert_eq!(ids, [99, 98, 97, 96, 95, 94, 93, 92, 0]);
}

#[test]
fn what_ends_gives_its_part_of_the_budget_back() {
    let mut grants = Grants::default();
    let rpc = rpc(1);
    grants.update(rpc, 400_000, 1_000, FREE);
    grants.update(rpc, 400_000, 1_000, 400_000);
    assert_eq!(grants.outstanding, u64::from(400_000 - FREE));
    grants.update(rpc, 400_000, 300_000, 400_000);
    assert_eq!(grants.outstanding, 100_000);
    grants.remove(rpc);
    assert_eq!(grants.outstanding, 0);
    assert!(grants.by_left.is_empty() && grants.by_age.is_empty());
}

#[test]
fn a_policy_that_pulls_is_shown_the_hungry_in_turn() {
    let mut grants = Grants::default();
    let pulling = |order| Pulling {
        window: 10_000,
        order,
    };
    grants.set_pulling(Some(pulling(PullOrder::RoundRobin)));
    for id in 0..4u64 {
        let length = 400_000 - 10 * id as u32;
        grants.update(rpc(id), length, 60_000, FREE);
    }
    let shown = |grants: &Grants| {
        let mut shown = Vec::new();
        grants.show(8, &mut shown);
        let ids = shown.iter().map(|message| message.rpc.id.0);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(shown(&grants), [0, 1, 2, 3]);
    // Whoever was granted goes behind the others, whoever has enough is gone (but the oldest, which is always
    // shown), and what merely arrives keeps its place.
    grants.update(rpc(1), 400_000 - 10, 60_000, FREE + 1_000);
    grants.update(rpc(2), 400_000 - 20, 61_000, FREE);
    grants.update(rpc(0), 400_000, 60_000, FREE + 10_000);
    assert_eq!(shown(&grants), [2, 3, 1, 0]);
    grants.set_pulling(Some(pulling(PullOrder::ShortestFirst)));
    assert_eq!(shown(&grants), [2, 3, 1, 0]);
    grants.update(rpc(1), 400_000 - 10, 63_000, FREE + 1_000);
    assert_eq!(shown(&grants), [1, 2, 3, 0]);
    grants.set_pulling(None);
    assert!(grants.hungry.is_empty());
    (0..4).for_each(|id| grants.remove(rpc(id)));
    assert!(grants.hungry.is_empty() && grants.by_left.is_empty());
}

/// The default of `incoming_max`.
const LIMIT: u32 = 512 * 1024;
/// What each message may send without a grant.
const FREE: u32 = 60_000;

fn rpc_of(session: u32, id: u64) -> RpcId {
    RpcId {
        session: SessionIndex(session.into()),
        id: MessageId(id),
    }
}

/// Who may get on at a time while memory is full, if anybody.
fn turn(grants: &mut Grants, at: u64) -> Option<u64> {
    let now = Time::from_nanos(at * 1_000_000);
    let next = grants.one_at_a_time(now, |_| true);
    next.map(|message| message.rpc.id.0)
}

/// Of session 1 messages 1 to 3, of session 2 message 4, in the order of their lengths.
fn four_of_two_sessions() -> Grants {
    let mut grants = Grants::default();
    for (session, id) in [(1, 1), (1, 2), (1, 3), (2, 4)] {
        let length = 300_000 + id as u32;
        grants.update(rpc_of(session, id), length, 1_000, FREE);
    }
    grants
}

#[test]
fn while_memory_is_full_only_what_helps_gets_on() {
    let mut grants = four_of_two_sessions();
    let next = grants.one_at_a_time(Time::default(), |rpc| rpc.id.0 > 2);
    assert_eq!(next.map(|message| message.rpc.id.0), Some(3));
}

#[test]
fn who_was_granted_all_is_waited_for() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
    assert_eq!(turn(&mut grants, 1), None);
    grants.update(rpc_of(1, 1), 300_001, 250_000, 300_001);
    assert_eq!(turn(&mut grants, 4), None);
    grants.remove(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 4), Some(2));
}

#[test]
fn but_not_for_ever_and_then_another_session_gets_on() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
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
fn nor_does_one_of_the_session_that_waits_when_nobody_expects_the_rest() {
    let mut grants = four_of_two_sessions();
    assert_eq!(turn(&mut grants, 0), Some(1));
    grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
    grants.pass_over(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 1), Some(4));
    grants.remove(rpc_of(2, 4));
    assert_eq!(turn(&mut grants, 2), None);
    grants.remove(rpc_of(1, 1));
    assert_eq!(turn(&mut grants, 3), Some(2));
}

#[test]
fn who_stops_half_way_is_overtaken_until_more_comes() {
    let mut grants = four_of_two_sessions();
    grants.update(rpc_of(1, 1), 300_001, 100_000, 200_000);
    assert_eq!(turn(&mut grants, 0), Some(1), "its window is the policy's");
    assert_eq!(turn(&mut grants, 5), Some(4));
    grants.update(rpc_of(1, 1), 300_001, 101_000, 200_000);
    grants.remove(rpc_of(2, 4));
    assert_eq!(turn(&mut grants, 6), Some(1));
}
