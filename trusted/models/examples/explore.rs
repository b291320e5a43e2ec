// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explores a system to the end, with each of its nodes as the liar, or up to a broken property:
//! `explore SYSTEM [NAME=VALUE]...`, where SYSTEM is `bft`, `chain`, `transform` or `peer-review`.
//!
//! - Bounds: `lies`, `requests`, of bft `restarts=true` as well, of peer-review `ticks`.
//! - `liar=N`: this node alone lies. `property=NAME`: up to a state that breaks it. `states=N`: no
//!   further than about so many states.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;

use smt_trusted_models::{
    Cluster, NODES, System, bft, chain, explore, first_violation, peer_review, transform,
};
use stateright::Model;

const THREADS: usize = 2;

/// The words after the system.
struct Asked(BTreeMap<String, String>);

impl Asked {
    fn number(&self, name: &str, usual: usize) -> usize {
        self.0.get(name).map_or(usual, |it| it.parse().unwrap())
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
    let holds = match system.as_str() {
        "bft" => each_liar(&asked, || {
            let restarts = asked.is("restarts");
            bft::Bft::new(bft::Bounds { requests, views: 1, lies, restarts, orders: true })
        }),
        "chain" => each_liar(&asked, || {
            chain::Chain::new(chain::Bounds { requests, configurations: 1, lies })
        }),
        "transform" => each_liar(&asked, || {
            transform::Transform::new(transform::Bounds { requests, views: 1, lies })
        }),
        "peer-review" => {
            let ticks = asked.number("ticks", 3) as u32;
            let bounds = peer_review::Bounds { ticks, child_ticks: ticks, entries: lies };
            holds(&asked, 1, peer_review::PeerReview::new(bounds))
        }
        _ => panic!("which system? bft, chain, transform or peer-review"),
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn each_liar<S: System>(asked: &Asked, system: impl Fn() -> S) -> bool {
    let liars = match asked.0.get("liar") {
        Some(liar) => vec![liar.parse().unwrap()],
        None => (0..NODES).collect(),
    };
    liars.into_iter().all(|liar| holds(asked, liar, Cluster::new(system(), &[liar])))
}

/// Whether a property holds, or all of them do and each situation is reached that tests one.
fn holds<M>(asked: &Asked, liar: u32, model: M) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + Debug,
{
    let Some(name) = asked.0.get("property") else {
        let report = explore(model, THREADS);
        println!("node {liar} lies: {report}");
        report.assert();
        return true;
    };
    let property = model.properties().into_iter().find(|it| it.name == name);
    let property = property.expect("a property of this name").name;
    let states = asked.0.get("states").map(|it| it.parse().unwrap());
    match first_violation(model, property, THREADS, states) {
        Some(way) => println!("node {liar} lies, {property} is broken:\n{way}"),
        None => {
            println!("node {liar} lies, {property} holds");
            return true;
        }
    }
    false
}
