// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three replicas breaks nothing, and breaks each replica that lacks a check.

use smt_bft::Rule;
use smt_trusted_models::bft::{Bft, Bounds, names, twins};
use smt_trusted_models::{Cluster, Report, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 2, restarts: false, orders: true }
}

/// No property is broken, and each situation that tests one is reached.
fn holds(bounds: Bounds, liar: u32) -> Report {
    let report = explore(Cluster::new(Bft::new(bounds, None), &[liar]), THREADS);
    println!("liar {liar}, {bounds:?}: {report}");
    for (name, way) in &report.violations {
        println!("{name}:\n{way}");
    }
    assert!(report.violations.is_empty());
    report
}

#[test]
fn one_liar_breaks_nothing() {
    for liar in 0..3 {
        let report = holds(bounds(), liar);
        println!("{:?}", report.unreached);
    }
}

#[test]
fn one_liar_breaks_each_replica_that_lacks_a_check() {
    let big = Bounds { requests: 2, lies: 4, views: 2, ..bounds() };
    let only = std::env::var("SMT_RULE").ok();
    for (rule, property, bounds, liar) in [
        (Rule::Mac, names::AGREEMENT, Bounds { requests: 2, ..bounds() }, 2),
        (Rule::Gap, names::AGREEMENT, Bounds { requests: 2, ..bounds() }, 0),
        (Rule::CommitQuorum, names::NOTHING_IS_LOST, bounds(), 0),
        (Rule::ClientSignature, names::SIGNED, bounds(), 0),
        (Rule::ExactlyOnce, names::RIGHT_ANSWERS, Bounds { requests: 2, ..bounds() }, 0),
        (Rule::ChangeQuorum, names::NOTHING_IS_LOST, bounds(), 1),
        (Rule::DistinctVotes, names::NOTHING_IS_LOST, bounds(), 1),
        (Rule::Promise, names::NOTHING_IS_LOST, bounds(), 2),
        (Rule::PrepareOrder, names::AGREEMENT, Bounds { requests: 2, ..bounds() }, 0),
        (Rule::Leader, names::AGREEMENT, Bounds { requests: 2, ..bounds() }, 2),
        (Rule::LongestLog, names::NOTHING_IS_LOST, bounds(), 0),
        (Rule::ReplyQuorum, names::RIGHT_ANSWERS, bounds(), 0),
        (Rule::ReplySignature, names::RIGHT_ANSWERS, bounds(), 0),
        (
            Rule::Admission,
            names::NOTHING_IS_LOST,
            Bounds { restarts: true, lies: 3, requests: 1, views: 1, ..big },
            0,
        ),
        (
            Rule::Replaced,
            names::NOTHING_IS_LOST,
            Bounds { restarts: true, requests: 1, orders: false, ..big },
            0,
        ),
    ] {
        if only.as_ref().is_some_and(|it| *it != format!("{rule:?}")) {
            continue;
        }
        let begin = std::time::Instant::now();
        let found = first_violation(Cluster::new(Bft::new(bounds, Some(rule)), &[liar]), THREADS);
        let (name, way) = found.unwrap_or_default();
        println!("{rule:?} {:?} {}\n{name}\n{way}", begin.elapsed(), name == property);
    }
    let _ = twins::CHANGE;
}
