// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files and arguments that are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::cluster::{Cluster, command, fails};

#[test]
fn a_mistake_in_the_configuration_is_told_in_one_line() {
    let cluster = Cluster::of_files();
    let refuses = |name: &str, (old, new): (&str, &str), expected: &[&str]| {
        let before = fs::read_to_string(cluster.path(name)).unwrap();
        assert!(before.contains(old), "{before}");
        cluster.edit(name, |text| text.replacen(old, new, 1));
        let text = fails(cluster.node(1));
        fs::write(cluster.path(name), before).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("transform-counter: your files: "), "{text}");
        expected.iter().for_each(|it| assert!(text.contains(it), "{it}: {text}"));
    };
    let member = "node-1.toml";
    refuses(member, ("node = 1", "node = 3"), &[member, "line 1", "nodes 0 to 2"]);
    refuses(member, ("node = 1", "node = 2"), &[member, "line 1", "signing_key"]);
    refuses(member, ("node = 1", "client = 1"), &[member, "node: is missing"]);
    refuses(member, ("node = 1", "node = 1\nclient = 1"), &[member, "line 2: client: "]);
    refuses(member, ("node = 1", "node = 1\nlog_bytes = 65536"), &["log_bytes: nodes of this"]);
    refuses(member, ("node-1.pem", "node-2.pem"), &["node-1.key", "node-2.pem"]);
    refuses(member, ("node-1.signing", "nowhere"), &["nowhere cannot be read"]);
    refuses(member, ("group_secret = \"group.secret\"\n", ""), &[member, "group_secret"]);
    let group = "group.toml";
    refuses(group, ("tick_ms = 20", "tick_ms = 0"), &[group, "tick_ms: 0 is not 1 to 10000"]);
    refuses(group, ("tick_ms = 20", "retained_bytes = 1"), &[group, "retained_bytes: 1 is not"]);
    refuses(group, ("tick_ms = 20", "step_bytes = 1"), &[group, "step_bytes: 1 is not"]);
    refuses(group, (&cluster.addresses[1], &cluster.addresses[0]), &[group, "another node"]);
    let secret = cluster.path("group.secret");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let text = fails(cluster.node(1));
    assert!(text.contains("group.secret") && text.contains("chmod 600"), "{text}");
}

#[test]
fn groups_and_requests_that_cannot_be_are_refused() {
    let text = fails(command(&["init", "/nonexistent/group", "--node", "h:1", "--node", "h:2"]));
    assert!(text.contains("your request: 2 nodes: a group has 2f + 1 of them"), "{text}");
    let cluster = Cluster::of_files();
    let text = fails(cluster.client(1, &["--deadline-s", "0", "1"]));
    assert!(text.contains("the nodes: no answer of f + 1 of them in 0 seconds"), "{text}");
    cluster.edit("client-2.toml", |text| format!("state = \"s\"\n{text}"));
    let text = fails(cluster.client(2, &["1"]));
    assert!(text.contains("client-2.toml, line 1: state: clients have none"), "{text}");
    cluster.edit("group.toml", |text| text.replace("tick_ms = 20", "operation_bytes = 7"));
    let text = fails(cluster.client(1, &["1"]));
    assert!(text.contains("8 bytes are more than the group's operation_bytes, 7"), "{text}");
}

#[test]
fn a_node_whose_files_are_lost_or_of_another_group_does_not_start() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.add(5), 5);
    cluster.kill(&[0, 1, 2]);
    cluster.edit("group.toml", |text| text.replace("tick_ms = 20", "operation_bytes = 9"));
    assert!(fails(cluster.node(0)).contains("was written under another configuration"));
    cluster.edit("group.toml", |text| text.replace("operation_bytes = 9", "tick_ms = 20"));
    // Its device would give other attestations.
    let secret = fs::read_to_string(cluster.path("group.secret")).unwrap();
    fs::write(cluster.path("group.secret"), "0".repeat(64)).unwrap();
    let text = fails(cluster.node(0));
    assert!(
        text.contains("the program: on the inputs of its log it makes other statements"),
        "{text}"
    );
    fs::write(cluster.path("group.secret"), secret).unwrap();
    fs::write(cluster.path("node-1.state/log-1"), "").unwrap();
    assert!(fails(cluster.node(1)).contains("has no log of this node any more"));
    fs::remove_dir_all(cluster.path("node-2.state")).unwrap();
    assert!(fails(cluster.node(2)).contains("is not the directory that `init` has made"));
    cluster.start(0);
}

// Once, signals did nothing until a log was read, which may take minutes.
#[test]
fn a_signal_ends_a_node_that_does_not_listen_yet() {
    let cluster = Cluster::of_files();
    let epoch = cluster.path("node-0.state/epoch");
    fs::remove_file(&epoch).unwrap();
    assert!(Command::new("mkfifo").arg(&epoch).status().unwrap().success());
    let mut child = cluster.node(0).stdout(Stdio::piped()).spawn().unwrap();
    // It is opened when the node reads it, and the node waits for the number.
    let _writer = fs::OpenOptions::new().write(true).open(&epoch).unwrap();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait().unwrap()));
    let status = ended.recv_timeout(Duration::from_secs(60)).expect("the node goes on");
    assert_eq!(status.code(), Some(128 + 15));
}

#[test]
fn the_guide_shows_this_program() {
    let page = include_str!("../../../../docs/guide/src/transformation.md");
    let program = include_str!("../../src/main.rs");
    let shown = &program[program.find("use std").unwrap()..];
    assert!(page.contains(&format!("\n```text\n{shown}```\n")));
}
