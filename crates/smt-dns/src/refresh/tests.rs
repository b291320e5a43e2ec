// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::ttl::{kept_for, published_ttl};

fn server(number: usize) -> Server {
    Server::new(&format!("s{number}.example"), 17_379).unwrap()
}

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_name_is_due_at_once_and_again_when_its_time_is_over() {
    let mut plan = RefreshPlan::default();
    assert!(plan.add(server(1), at(5)));
    assert_eq!(plan.next_due(), Some(at(5)));
    assert_eq!(plan.begin(at(4)), []);
    assert_eq!(plan.begin(at(5)), [server(1)]);
    assert_eq!(plan.begin(at(5)), [], "it is being looked up");
    plan.found(&server(1), at(6), at(900), 0);
    assert_eq!(plan.next_due(), Some(at(906)));
}

#[test]
fn random_numbers_bring_a_lookup_forward_by_a_tenth_at_most() {
    let mut plan = RefreshPlan::default();
    plan.add(server(1), at(0));
    for (random, due) in [(0, 900), (u32::MAX, 810)] {
        plan.found(&server(1), at(0), at(900), random);
        assert_eq!(plan.next_due(), Some(at(due)));
    }
    plan.found(&server(1), at(0), LOOKUP_PAUSE_MIN, u32::MAX);
    assert_eq!(plan.next_due(), Some(LOOKUP_PAUSE_MIN));
}

#[test]
fn pauses_after_failures_double_up_to_their_bound_and_a_ticket_ends_them() {
    let mut plan = RefreshPlan::default();
    plan.add(server(1), at(0));
    let mut pause = || {
        plan.begin(Duration::MAX);
        plan.failed(&server(1), at(0));
        plan.next_due().unwrap().as_secs()
    };
    let pauses: Vec<u64> = (0..8).map(|_| pause()).collect();
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300]);
    plan.found(&server(1), at(0), at(60), 0);
    plan.failed(&server(1), at(0));
    assert_eq!(plan.next_due(), Some(at(5)));
}

#[test]
fn a_burst_of_names_is_looked_up_a_few_at_a_time() {
    let mut plan = RefreshPlan::default();
    for number in 0..20 {
        plan.add(server(number), at(0));
    }
    let first = plan.begin(at(0));
    assert_eq!(first.len(), LOOKUPS_AT_ONCE);
    assert_eq!(plan.next_due(), None, "a lookup must end first");
    plan.failed(&first[0], at(1));
    assert_eq!(plan.begin(at(1)).len(), 1);
}

#[test]
fn a_name_that_was_removed_does_not_come_back_by_its_last_lookup() {
    let mut plan = RefreshPlan::default();
    plan.add(server(1), at(0));
    plan.begin(at(0));
    plan.remove(&server(1));
    plan.found(&server(1), at(1), at(60), 0);
    plan.failed(&server(1), at(1));
    assert_eq!(plan.next_due(), None);
}

#[test]
fn names_are_bounded() {
    let mut plan = RefreshPlan::default();
    assert!((0..NAMES_MAX).all(|number| plan.add(server(number), at(0))));
    assert!(!plan.add(server(NAMES_MAX), at(0)));
    assert!(plan.add(server(0), at(0)), "it is there already");
}

/// A server that renews at half of its tickets' life, a resolver between that keeps each record as
/// long as its TTL says, and a client: at no second is it without a ticket.
#[test]
fn a_client_is_never_without_a_ticket_while_the_server_renews() {
    for life in [60, 600, 3_600] {
        for phase in [0, life / 4 - 1, life / 3, life / 2 - 1] {
            let mut plan = RefreshPlan::default();
            plan.add(server(1), at(phase));
            // The record of the resolver: when it came, and when its ticket ends.
            let mut cached: Option<(u64, u64)> = None;
            let ttl = u64::from(published_ttl(life));
            let mut ends = None;
            for now in phase..10 * life {
                for server in plan.begin(at(now)) {
                    let (since, end) = match cached {
                        Some((since, end)) if now < since + ttl => (since, end),
                        _ => (now, now / (life / 2) * (life / 2) + life),
                    };
                    cached = Some((since, end));
                    let left = u32::try_from(since + ttl - now).unwrap();
                    plan.found(&server, at(now), kept_for(left, end - now), 0);
                    ends = Some(end);
                }
                assert!(ends.is_some_and(|end| now < end), "life {life}, second {now}");
            }
        }
    }
}
