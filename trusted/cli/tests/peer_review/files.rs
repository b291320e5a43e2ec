// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files and arguments that are refused.

use std::fs;

use crate::processes::{Tree, command};

#[test]
fn groups_that_cannot_be_are_refused() {
    let init = |arguments: &[&str]| {
        let mut init = command(&["peer-review", "init", "/nonexistent/group"]);
        init.args(arguments);
        Tree::fails(init)
    };
    let few = init(&["--node", "h:1", "--node", "h:2"]);
    assert!(few.contains("--node: 2 nodes are not 3 to 9"), "{few}");
    let tree = Tree::of_files(0);
    for (from, to, expected) in [
        ("faults = 1", "faults = 3", "nodes: the group has 4 nodes, and with 3 that may lie"),
        ("degree = 2", "degree = 0", "degree: 0 is not 1 to 8"),
        ("tick_ms = 20", "audit_ticks = 1", "audit_ticks: 1 is not 2 to 100000"),
        ("tick_ms = 20", "tick = 20", "unknown field `tick`"),
        ("tick_ms = 20", "interval = 65536", "evidence would have up to"),
        ("key = \"", "key = \"0", "key: no Ed25519 public key"),
    ] {
        let before = fs::read_to_string(tree.path("group.toml")).unwrap();
        tree.edit("group.toml", |text| text.replacen(from, to, 1));
        let text = Tree::fails(tree.node(0));
        assert!(text.contains(expected), "{to}: {text}");
        fs::write(tree.path("group.toml"), before).unwrap();
    }
}

#[test]
fn arguments_that_a_node_cannot_have_are_refused() {
    let tree = Tree::of_files(10);
    let fails = |number: usize, arguments: &[&str]| {
        let mut node = tree.node(number);
        node.args(arguments);
        Tree::fails(node)
    };
    let stream = tree.path("stream");
    assert!(fails(1, &["--input", &stream]).contains("--input is for node 0"));
    assert!(fails(1, &["--part-bytes", "70000"]).contains("--part-bytes 70000 is not 1 to 65504"));
    fs::write(tree.path("output-1"), "of another stream").unwrap();
    assert!(fails(1, &[]).contains("has 17 bytes, and the node has 0 of the stream"));
}

#[test]
fn a_node_whose_files_are_lost_or_of_another_group_does_not_start() {
    let mut tree = Tree::of_files(10);
    (0..4).for_each(|it| tree.start(it));
    tree.wait_for_stream(&[0, 1, 2, 3]);
    (0..4).for_each(|it| tree.kill(it));
    tree.edit("group.toml", |text| text.replace("tick_ms = 20", "suspect_ticks = 20"));
    assert!(Tree::fails(tree.node(1)).contains("was written under another configuration"));
    fs::write(tree.path("node-2.state/log-1"), "").unwrap();
    assert!(Tree::fails(tree.node(2)).contains("has no journal of this node any more"));
    fs::remove_dir_all(tree.path("node-3.state")).unwrap();
    assert!(Tree::fails(tree.node(3)).contains("is not the directory that `peer-review init`"));
    fs::write(tree.path("stream"), "short").unwrap();
    tree.edit("group.toml", |text| text.replace("suspect_ticks = 20", "tick_ms = 20"));
    let text = Tree::fails(tree.node(0));
    assert!(text.contains("stream cannot be used") && text.contains("10 were sent"), "{text}");
}
