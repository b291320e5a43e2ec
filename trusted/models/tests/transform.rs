// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing, and breaks each group whose nodes lack a check.

use smt_transform::Rule;
use smt_trusted_models::transform::{Bounds, Transform, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 2 }
}

#[test]
fn one_liar_breaks_nothing() {
    for liar in 0..3 {
        let report = explore(Cluster::new(Transform::new(bounds(), None), &[liar]), THREADS);
        println!("liar {liar}, {:?}: {report} {:?}", bounds(), report.unreached);
        for (name, way) in &report.violations {
            println!("{name}:\n{way}");
        }
    }
}

#[test]
fn one_liar_breaks_each_group_whose_nodes_lack_a_check() {
    let only = std::env::var("SMT_RULE").ok();
    for (rule, property, bounds, liar) in [
        (Rule::Mac, names::NO_ACCUSATION, bounds(), 2),
        (Rule::Gap, names::PROTOCOL, bounds(), 0),
        (Rule::Sent, names::PROTOCOL, bounds(), 2),
        (Rule::Prefix, names::PROTOCOL, Bounds { requests: 2, ..bounds() }, 1),
        (Rule::Armed, names::PROTOCOL, bounds(), 1),
        (Rule::Effects, names::PROTOCOL, bounds(), 0),
        (Rule::RequestSignature, names::SIGNED, bounds(), 0),
        (Rule::EndorsementQuorum, names::RIGHT_ANSWERS, bounds(), 0),
        (Rule::EndorsementSignature, names::RIGHT_ANSWERS, bounds(), 0),
    ] {
        if only.as_ref().is_some_and(|it| *it != format!("{rule:?}")) {
            continue;
        }
        let begin = std::time::Instant::now();
        let system = Transform::new(bounds, Some(rule));
        let found = first_violation(Cluster::new(system, &[liar]), property, THREADS);
        let way = found.unwrap_or_default();
        println!("{rule:?} {:?} {property}\n{way}", begin.elapsed());
    }
}
