// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes that are replaced through etcd, and what an outage or a liar does to it.

use std::fs;
use std::process::Stdio;

use crate::load::Load;
use crate::processes::{Chain, has_etcd, said, wait_until};

#[test]
fn a_middle_node_and_then_a_head_that_are_killed_are_replaced_through_etcd() {
    if !has_etcd("the replacement of nodes") {
        return;
    }
    let mut chain = Chain::with_etcd("key-value");
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "(none)");
    chain.kill(&[1]);
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "Bonn");
    // The chain begins with nodes 0 and 2 now. Node 1 comes back from its log, and is needed.
    chain.start(1);
    chain.kill(&[0]);
    assert_eq!(chain.call(&["put", "city", "Rom"]), "Ulm");
    chain.start(0);
    assert_eq!(chain.call(&["get", "city"]), "Rom");
    let last = chain.end(2);
    assert!(last["configuration"].as_u64().unwrap() >= 2, "{last}");
    assert_eq!(last["faulty"], serde_json::json!([]));
}

#[test]
fn etcd_that_stops_holds_up_the_replacement_of_a_node_and_nothing_else() {
    if !has_etcd("the outage of etcd") {
        return;
    }
    let mut chain = Chain::with_etcd("counter");
    assert_eq!(chain.call(&["add", "1"]), "1");
    chain.stop_etcd();
    assert_eq!(chain.call(&["add", "1"]), "2");
    chain.kill(&[1]);
    // The request waits for another configuration, and that one for etcd.
    let waits = chain.client(1, &["add", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let given_up = chain.client(2, &["--deadline-s", "1", "add", "0"]).output().unwrap();
    let text = String::from_utf8(given_up.stderr).unwrap();
    assert!(text.contains("the nodes: no answer of f + 1 of them in 1 seconds"), "{text}");
    chain.start_etcd();
    assert_eq!(said(&waits.wait_with_output().unwrap()), "3");
    assert_eq!(chain.call(&["add", "0"]), "3");
    let last = chain.end(0);
    assert!(last["configuration"].as_u64().unwrap() >= 1, "{last}");
}

#[test]
fn a_node_that_was_away_learns_of_configurations_from_the_others_while_etcd_is_down() {
    if !has_etcd("what a node has missed") {
        return;
    }
    let mut chain = Chain::with_etcd("counter");
    chain.kill(&[1]);
    assert_eq!(chain.call(&["add", "1"]), "1");
    chain.stop_etcd();
    chain.start(1);
    // The others work on it meanwhile.
    let has_learned = (0..60).any(|_| {
        let is_behind = chain.end(1)["configuration"] == 0;
        chain.start(1);
        chain.call(&["add", "0"]);
        !is_behind
    });
    assert!(has_learned);
}

#[test]
fn made_up_configurations_and_accusations_in_etcd_are_refused_and_replaced() {
    if !has_etcd("the refusal of what a liar writes to etcd") {
        return;
    }
    let mut chain = Chain::with_etcd("key-value");
    chain.kill(&[1]);
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "(none)");
    let signature = "ab".repeat(64);
    let by = format!("{{\"node\":0,\"signature\":\"{signature}\"}}");
    let made_up = format!("{{\"number\":900,\"accusations\":[{by},{by}]}}");
    chain.write_to_etcd("configuration", &made_up);
    let accusation = format!("{{\"number\":900,\"signature\":\"{signature}\"}}");
    (0..3).for_each(|it| chain.write_to_etcd(&format!("accusations/{it}"), &accusation));
    chain.start(1);
    chain.kill(&[0]);
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "Bonn");
    chain.write_to_etcd("configuration", "no JSON");
    chain.start(0);
    chain.kill(&[2]);
    assert_eq!(chain.call(&["get", "city"]), "Ulm");
    let last = chain.end(1);
    let number = last["configuration"].as_u64().unwrap();
    assert!((3..900).contains(&number), "{last}");
}

#[test]
fn values_of_a_liar_that_are_too_long_to_read_hold_up_no_replacement() {
    if !has_etcd("long values in etcd") {
        return;
    }
    let mut chain = Chain::with_etcd("key-value");
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "(none)");
    chain.kill(&[1]);
    let long = "x".repeat(1_200_000);
    chain.write_to_etcd("accusations/1", &long);
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "Bonn");
    chain.start(1);
    chain.kill(&[0]);
    chain.write_to_etcd("configuration", &long);
    assert_eq!(chain.call(&["put", "city", "Rom"]), "Ulm");
}

#[test]
fn a_node_withdraws_its_accusation_when_it_waits_no_longer() {
    if !has_etcd("accusations that are withdrawn") {
        return;
    }
    let mut chain = Chain::with_etcd("counter");
    chain.kill(&[1, 2]);
    let waits = chain.client(1, &["add", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("node 0 accuses", || chain.is_in_etcd("accusations/0"));
    (1..3).for_each(|it| chain.start(it));
    assert_eq!(said(&waits.wait_with_output().unwrap()), "1");
    wait_until("the accusation goes", || !chain.is_in_etcd("accusations/0"));
}

#[test]
fn configurations_go_on_when_etcd_has_lost_its_data() {
    if !has_etcd("the loss of what etcd had") {
        return;
    }
    let mut chain = Chain::with_etcd("counter");
    chain.kill(&[1]);
    assert_eq!(chain.call(&["add", "1"]), "1");
    chain.stop_etcd();
    fs::remove_dir_all(chain.path("etcd")).unwrap();
    chain.start(1);
    chain.kill(&[2]);
    chain.start_etcd();
    assert_eq!(chain.call(&["add", "1"]), "2");
    let last = chain.end(0);
    assert!(last["configuration"].as_u64().unwrap() >= 2, "{last}");
}

#[test]
fn nodes_that_are_killed_under_load_lose_nothing_and_execute_nothing_twice() {
    if !has_etcd("the search by kills") {
        return;
    }
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let kills = variable("SMT_KILLS").unwrap_or(6);
    let mut random = variable("SMT_CHAIN_SEED").unwrap_or_else(|| std::process::id().into());
    println!("SMT_CHAIN_SEED={random}");
    let mut chain = Chain::with_etcd("counter");
    let mut load = Load::start(&chain);
    for kill in 0..kills {
        load.wait_for(5);
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 33) as usize % 5;
        let victims = if drawn < 3 { vec![drawn] } else { vec![0, 1, 2] };
        println!("kill {kill}: {victims:?}");
        chain.kill(&victims);
        victims.iter().for_each(|it| chain.start(*it));
    }
    load.wait_for(5);
    let answers = load.end();
    // One client adds 1 each time: any sum that is lost or counted twice shows.
    let expected: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, expected);
    let sum: u64 = chain.call(&["add", "0"]).parse().unwrap();
    // The last request may have run without its answer being printed.
    assert!(sum == expected.len() as u64 || sum == expected.len() as u64 + 1, "{sum}");
}
