// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explores a system to the end, with each of its nodes as the liar: `explore SYSTEM [LIES]`, where
//! SYSTEM is `bft`, `restarts`, `chain`, `transform` or `peer-review`.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use smt_trusted_models::{Cluster, NODES, System, bft, chain, explore, peer_review, transform};

const THREADS: usize = 2;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let system = arguments.next().unwrap_or_default();
    let lies = arguments.next().map_or(2, |it| it.parse().unwrap());
    match system.as_str() {
        "bft" | "restarts" => each_liar(|| {
            let restarts = system == "restarts";
            let bounds = bft::Bounds { requests: 1, views: 1, lies, restarts, orders: true };
            bft::Bft::new(bounds, None)
        }),
        "chain" => each_liar(|| {
            let bounds = chain::Bounds { requests: 1, configurations: 1, lies };
            chain::Chain::new(bounds, None)
        }),
        "transform" => each_liar(|| {
            let bounds = transform::Bounds { requests: 1, views: 1, lies };
            transform::Transform::new(bounds, None)
        }),
        "peer-review" => {
            let bounds = peer_review::Bounds { ticks: 3, child_ticks: 3, entries: lies };
            let report = explore(peer_review::PeerReview::new(bounds, None), THREADS);
            println!("node 1 lies: {report}");
            report.assert();
        }
        _ => panic!("which system? bft, restarts, chain, transform or peer-review"),
    }
}

fn each_liar<S: System>(system: impl Fn() -> S) {
    for liar in 0..NODES {
        let report = explore(Cluster::new(system(), &[liar]), THREADS);
        println!("node {liar} lies: {report}");
        report.assert();
    }
}
