// SPDX-License-Identifier: Apache-2.0 OR MIT
mod memory_pressure;
mod sender_limited;

use super::*;
use crate::collections::step_count::steps_of;
use crate::grant::ndp::pull::PullOrder;
use crate::grant::srpt::ShortestRemainingFirst;
use crate::limits::{GRANT_WINDOW_MIN, INCOMING_MAX};
use smt_wire::{MessageId, SessionIndex};

const LIMIT: u32 = INCOMING_MAX;

const PLENTY: GrantBudget = GrantBudget { limit: LIMIT, outstanding: 0, sender_limited: 0 };

/// The bytes that each message may send without a grant.
const FREE: u32 = 60_000;

fn rpc(id: u64) -> RpcId {
    rpc_of(1, id)
}

fn rpc_of(session: u32, id: u64) -> RpcId {
    RpcId { session: SessionIndex(session.into()), id: MessageId(id) }
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
    Progress { length, arrived, granted }
}

fn milli(at: u64) -> Time {
    Time::from_nanos(at * 1_000_000)
}

/// Messages of these lengths begin one after the other, with 60,000 bytes that need no grant and of
/// which nothing arrives but 1,000; each is granted what the policy says. The end of what each may
/// send.
fn start_one_after_the_other(
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
    let ends = start_one_after_the_other(&mut policy, [400_000; 50]);
    let sum = outstanding(&ends);
    assert!((LIMIT / 2..=LIMIT).contains(&sum), "{sum}");
}

/// An overtaken message keeps its grants. The budget is used up, and the first message still has a
/// little.
#[test]
fn a_message_that_overtakes_when_the_budget_is_used_up_has_the_least_window() {
    let mut policy = ShortestRemainingFirst::new(8, 100_000..=200_000);
    let ends = start_one_after_the_other(&mut policy, (0..50).map(|at| 4_000_000 - at));
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
    assert_eq!(grants.decide(Time::default(), &mut policy, LIMIT, None).len(), 100);
    assert!(grants.decide(Time::default(), &mut policy, LIMIT, None).is_empty());
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
    start_one_after_the_other(&mut policy, [2_000_000; 10_000]);
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
    let pulling = |order| Pulling { window: 10_000, order };
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

/// Eight that hold all that there is do not hide the others.
#[test]
fn a_policy_that_pulls_is_shown_starved_messages_beyond_the_budget() {
    let mut grants = GrantScheduler::default();
    grants.set_pulling(Some(Pulling { window: 100_000, order: PullOrder::RoundRobin }));
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
