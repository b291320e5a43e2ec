// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream through a tree whose nodes are killed.

use std::fs;
use std::time::Duration;

use crate::processes::{NODES, Tree};

const ALL: [usize; NODES] = [0, 1, 2, 3];

fn of_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |it| it.parse().unwrap())
}

#[test]
fn a_stream_reaches_all_nodes_though_they_are_killed_and_nobody_is_exposed() {
    let (kills, seed) = (of_environment("SMT_KILLS", 10), seed());
    println!("SMT_KILLS={kills} SMT_REVIEW_SEED={seed}");
    let mut random = seed;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (random >> 33) % limit
    };
    let mut tree = Tree::of_files(1_000 * 1_000);
    // Journals are begun anew again and again.
    for number in ALL {
        let config = format!("node-{number}.toml");
        tree.edit(&config, |text| format!("{text}journal_bytes = 200000\n"));
        tree.start(number);
    }
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(below(400)));
        let first = below(NODES as u64) as usize;
        // Sometimes all of them at once.
        let of = if below(4) == 0 { NODES } else { 1 };
        let killed: Vec<usize> = (0..of).map(|it| (first + it) % NODES).collect();
        killed.iter().for_each(|it| tree.kill(*it));
        killed.iter().for_each(|it| tree.start(*it));
    }
    tree.wait_for_stream(&ALL);
    tree.wait_for_words(1, &["log begun anew"]);
    for number in ALL {
        let metrics = tree.end(number);
        assert_eq!(metrics["bytes"], 1_000_000);
        assert!(metrics["exposed"].as_array().unwrap().is_empty(), "{metrics}");
    }
}

fn seed() -> u64 {
    let chosen = u64::from(std::process::id());
    of_environment("SMT_REVIEW_SEED", chosen)
}

#[test]
fn a_node_that_is_gone_is_suspected_and_trusted_again_once_it_is_back() {
    let mut tree = Tree::of_files(20_000);
    ALL.into_iter().for_each(|it| tree.start(it));
    tree.wait_for_stream(&ALL);
    tree.kill(1);
    // The witnesses of node 1 are 2 and 3.
    let shown = ["suspected", "node=1", "it does not show its log"];
    tree.wait_for_words(2, &shown);
    tree.wait_for_words(3, &shown);
    tree.start(1);
    // On a busy machine it may have been suspected, and trusted again, before it was killed.
    for witness in [2, 3] {
        tree.wait_for_last_of(witness, "node=1", "trusted again");
    }
}

#[test]
fn bytes_that_are_appended_to_the_input_of_a_source_that_was_killed_are_sent_once() {
    let mut tree = Tree::of_files(5_500);
    ALL.into_iter().for_each(|it| tree.start(it));
    tree.wait_for_stream(&ALL);
    tree.kill(0);
    let mut stream = fs::read(tree.path("stream")).unwrap();
    stream.extend(vec![9; 3_300]);
    fs::write(tree.path("stream"), stream).unwrap();
    tree.start(0);
    tree.wait_for_stream(&ALL);
    assert_eq!(tree.end(3)["bytes"], 8_800);
}
