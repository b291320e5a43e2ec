// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explores a system to the end, with each of its nodes as the liar, or up to a broken property,
//! and counts the actions: `explore SYSTEM [NAME=VALUE]...`, where SYSTEM is one of these.
//!
//! - `bft`, `chain`, `transform`, `peer-review`: short runs of three nodes.
//! - `bft-states`: checkpoints, and states that are given or made up. `bft-recoveries`: restarts of
//!   correct replicas. `bft-logs`: kills as well. `bft-cut-off`: one missed more than is kept.
//! - `chain-logs`: nodes are killed, and leave entries out of their logs.
//! - `bft-openings`: five replicas, of which two lie. `bft-newcomer`: one of five has restarted.
//!   `bft-recovery`: the same beside a liar.
//!
//! - Bounds: `lies`, `requests`, of bft `restarts=true` as well and `closings=N`, of peer-review
//!   `ticks`.
//! - `liar=N`: this node alone lies. `property=NAME`: up to a state that breaks it. `states=N`: no
//!   further than about so many ways to states.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;

use smt_trusted_models::{
    Cluster, Limited, NODES, System, bft, chain, explore_some, first_violation, peer_review,
    transform,
};
use stateright::Model;

const THREADS: usize = 2;

/// The words after the system.
struct Asked(BTreeMap<String, String>);

impl Asked {
    fn known(&self, name: &str) -> Option<usize> {
        self.0.get(name).map(|it| it.parse().unwrap())
    }

    fn number(&self, name: &str, usual: usize) -> usize {
        self.known(name).unwrap_or(usual)
    }

    fn is(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|it| it == "true")
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let system = words.next().unwrap_or_default();
    let named = |it: String| it.split_once('=').map(|(name, value)| (name.into(), value.into()));
    let asked = Asked(words.map(|it| named(it).expect("NAME=VALUE")).collect());
    let (requests, lies) = (asked.number("requests", 1), asked.number("lies", 2));
    let each = (0..NODES).map(|it| vec![it]).collect::<Vec<_>>();
    let holds = match system.as_str() {
        "bft" => {
            let restarts = asked.is("restarts");
            let bounds = bft::Bounds { requests, lies, restarts, ..<_>::default() };
            all_hold(&asked, &each, || bft::Bft::new(bounds))
        }
        "chain" => all_hold(&asked, &each, || {
            chain::Chain::new(chain::Bounds { requests, configurations: 1, lies, ..<_>::default() })
        }),
        "chain-logs" => {
            let lies = asked.number("lies", 1);
            let closings = asked.number("closings", 64) as u64;
            let bounds = chain::Bounds { requests, lies, closings, ..chain::Bounds::logs() };
            let all = [vec![], vec![0], vec![1], vec![2]];
            all_hold(&asked, &all, || chain::Chain::new(bounds))
        }
        "transform" => all_hold(&asked, &each, || {
            transform::Transform::new(transform::Bounds { requests, views: 1, lies })
        }),
        "peer-review" => {
            let ticks = asked.number("ticks", 3) as u32;
            let bounds = peer_review::Bounds { ticks, child_ticks: ticks, entries: lies };
            holds(&asked, &[1], peer_review::PeerReview::new(bounds))
        }
        other => {
            let (bounds, liars) = long_run(other).expect("a system");
            let bounds = bft::Bounds {
                requests: asked.number("requests", bounds.requests),
                lies: asked.number("lies", bounds.lies),
                closings: asked.number("closings", bounds.closings as usize) as u64,
                ..bounds
            };
            all_hold(&asked, &liars, || bft::Bft::new(bounds))
        }
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A model that begins with a script, and the liars of each of its explorations.
fn long_run(name: &str) -> Option<(bft::Bounds, Vec<Vec<u32>>)> {
    let correct = vec![Vec::new()];
    Some(match name {
        "bft-states" => (bft::Bounds::states(), vec![vec![], vec![0], vec![1], vec![2]]),
        "bft-recoveries" => (bft::Bounds::recoveries(), correct),
        "bft-recovery" => (bft::Bounds::recovery_beside_a_liar(), vec![vec![2]]),
        "bft-logs" => (bft::Bounds::logs(), correct),
        "bft-cut-off" => (bft::Bounds::cut_off(), correct),
        "bft-openings" => (bft::Bounds::two_openings(), vec![vec![1, 2]]),
        "bft-newcomer" => (bft::Bounds::newcomer(), correct),
        _ => return None,
    })
}

fn all_hold<S: System>(asked: &Asked, all: &[Vec<u32>], system: impl Fn() -> S) -> bool {
    let asked_for = |liars: &&Vec<u32>| {
        asked.known("liar").is_none_or(|it| liars.as_slice() == [u32::try_from(it).unwrap()])
    };
    all.iter().filter(asked_for).all(|liars| {
        let cluster = Cluster::new(system(), liars);
        let counts = cluster.counts();
        let holds = holds(asked, liars, cluster);
        println!("{counts}");
        holds
    })
}

/// Whether a property holds, or all of them do and each situation is reached that tests one.
fn holds<M>(asked: &Asked, liars: &[u32], model: M) -> bool
where
    M: Model + Limited + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + Debug,
{
    let ways = asked.known("states");
    let who = match liars {
        [] => "nobody lies".into(),
        [one] => format!("node {one} lies"),
        several => format!("nodes {several:?} lie"),
    };
    let Some(name) = asked.0.get("property") else {
        let report = explore_some(model, THREADS, ways);
        println!("{who}: {report}");
        report.assert();
        return true;
    };
    let property = model.properties().into_iter().find(|it| it.name == name);
    let property = property.expect("a property of this name").name;
    match first_violation(model, property, THREADS, ways) {
        Some(way) => println!("{who}, {property} is broken:\n{way}"),
        None => {
            println!("{who}, {property} holds");
            return true;
        }
    }
    false
}
