// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing, and breaks each chain whose nodes lack a check.

use smt_chain::Rule;
use smt_trusted_models::chain::{Bounds, Chain, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, configurations: 1, lies: 2 }
}

#[test]
fn one_liar_breaks_nothing() {
    for liar in 0..3 {
        let report = explore(Cluster::new(Chain::new(bounds(), None), &[liar]), THREADS);
        println!("liar {liar}, {:?}: {report} {:?}", bounds(), report.unreached);
        for (name, way) in &report.violations {
            println!("{name}:\n{way}");
        }
    }
}

#[test]
fn one_liar_breaks_each_chain_whose_nodes_lack_a_check() {
    let two = Bounds { requests: 2, ..bounds() };
    let only = std::env::var("SMT_RULE").ok();
    for (rule, property, bounds, liar) in [
        (Rule::Mac, names::NO_ACCUSATION, bounds(), 2),
        (Rule::Gap, names::AGREEMENT, two, 0),
        (Rule::ProofQuorum, names::NOTHING_IS_LOST, bounds(), 0),
        (Rule::Output, names::PROOFS, bounds(), 0),
        (Rule::Link, names::PROOFS, bounds(), 1),
        (Rule::ClientSignature, names::SIGNED, bounds(), 0),
        (Rule::ExactlyOnce, names::RIGHT_ANSWERS, two, 0),
        (Rule::FreezeQuorum, names::NOTHING_IS_LOST, bounds(), 0),
        (Rule::DistinctFreezes, names::NOTHING_IS_LOST, bounds(), 0),
        (Rule::Promise, names::NOTHING_IS_LOST, bounds(), 2),
        (Rule::Head, names::AGREEMENT, two, 1),
        (Rule::LongestLog, names::NOTHING_IS_LOST, bounds(), 1),
        (Rule::ReplyQuorum, names::RIGHT_ANSWERS, bounds(), 0),
        (Rule::ReplySignature, names::RIGHT_ANSWERS, bounds(), 0),
    ] {
        if only.as_ref().is_some_and(|it| *it != format!("{rule:?}")) {
            continue;
        }
        let begin = std::time::Instant::now();
        let system = Chain::new(bounds, Some(rule));
        let found = first_violation(Cluster::new(system, &[liar]), THREADS);
        let (name, way) = found.unwrap_or_default();
        println!("{rule:?} {:?} {}\n{name}\n{way}", begin.elapsed(), name == property);
    }
}
