// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chains that need no etcd.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::load::Load;
use crate::processes::Chain;

#[test]
fn a_chain_serves_without_etcd_and_also_without_its_last_node() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "(none)");
    assert_eq!(chain.call(&["get", "city"]), "Bonn");
    assert_eq!(chain.end(2)["etcd_answers"], false);
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "Bonn");
    assert_eq!(chain.call(&["delete", "city"]), "Ulm");
    chain.start(2);
    assert_eq!(chain.call(&["get", "city"]), "(none)");
    assert_eq!(chain.end(0)["configuration"], 0);
}

#[test]
fn all_nodes_that_are_killed_at_once_have_what_was_acknowledged_without_etcd() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "(none)");
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "Ulm");
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    assert_eq!(chain.call(&["get", "city"]), "Bonn");
}

#[test]
fn nodes_whose_logs_were_begun_anew_are_killed_and_lose_nothing() {
    let mut chain = Chain::of_files("counter");
    let log = |chain: &Chain, number: usize| {
        fs::metadata(chain.path(&format!("node-{number}.state/log-1"))).unwrap().ino()
    };
    (0..3).for_each(|it| chain.start(it));
    let mut load = Load::start(&chain);
    let first = [0, 1, 2].map(|it| log(&chain, it));
    while (0..3).any(|it| log(&chain, it) == first[it]) {
        load.wait_for(20);
    }
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    load.wait_for(5);
    let answers = load.end();
    let expected: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, expected);
    let sum: u64 = chain.call(&["add", "0"]).parse().unwrap();
    assert!(sum == expected.len() as u64 || sum == expected.len() as u64 + 1, "{sum}");
    assert!(chain.end(0)["left_out"].as_u64().unwrap() > 0);
}
