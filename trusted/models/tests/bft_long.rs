// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs that make checkpoints, give states and restart break nothing, within so many ways to states
//! after a script.

use smt_trusted_models::bft::{Bft, Bounds};
use smt_trusted_models::{Cluster, explore_some};

/// With one thread the same states are explored each time.
const THREADS: usize = 1;

/// Larger bounds have so many times the ways of smaller ones.
const MORE: usize = 20;

/// No property is broken, each situation that tests one is reached, and each of these kinds of
/// actions has changed a correct replica.
fn holds(bounds: Bounds, liars: &[u32], ways: usize, kinds: &[&str]) {
    let are_all = std::env::var("SMT_MODELS").is_ok_and(|it| it == "all");
    let ways = if are_all { MORE * ways } else { ways };
    let cluster = Cluster::new(Bft::new(bounds), liars);
    let counts = cluster.counts();
    let report = explore_some(cluster, THREADS, Some(ways));
    println!("{liars:?} lie, {bounds:?}: {report}\n{counts}");
    report.assert();
    let actions = counts.actions();
    let without = kinds.iter().filter(|it| actions.get(**it).is_none_or(|it| it.changed == 0));
    assert_eq!(without.collect::<Vec<_>>(), Vec::<&&str>::new(), "these changed nothing");
    assert!(bounds.closings == 0 || counts.closings() > 0);
}

#[test]
fn states_that_are_given_or_made_up_break_nothing() {
    for liars in [&[][..], &[0], &[1], &[2]] {
        holds(Bounds::states(), liars, 8000, &["give", "deliver", "request", "event Timeout"]);
    }
}

#[test]
fn devices_that_restart_one_after_the_other_break_nothing() {
    holds(Bounds::recoveries(), &[], 8000, &["give", "deliver", "event Restart"]);
}

#[test]
fn a_device_of_five_that_restarts_beside_a_liar_breaks_nothing() {
    holds(Bounds::recovery_beside_a_liar(), &[2], 4000, &["give", "deliver", "lie ViewChange"]);
}

#[test]
fn replicas_that_are_killed_are_what_they_were() {
    holds(Bounds::logs(), &[], 8000, &["give", "deliver", "event Restart", "event Tick"]);
}

#[test]
fn a_replica_that_missed_more_than_is_kept_catches_up() {
    holds(Bounds::cut_off(), &[], 1000, &["give", "deliver"]);
}

#[test]
fn two_liars_of_five_break_nothing_where_two_views_are_open() {
    holds(Bounds::two_openings(), &[1, 2], 4000, &["show StateOfEnters", "lie Commit"]);
}

#[test]
fn a_replica_of_five_that_has_restarted_stands_in_for_any_other() {
    holds(Bounds::newcomer(), &[], 2000, &["deliver", "request", "event Timeout"]);
}
