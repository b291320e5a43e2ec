// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that cannot be used, and members that they do not name.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::processes::{Chain, command, said};

#[test]
fn a_mistake_in_the_files_of_a_chain_is_told_in_one_line() {
    let chain = Chain::of_files("counter");
    let refuses = |name: &str, (old, new): (&str, &str), expected: &[&str]| {
        let before = fs::read_to_string(chain.path(name)).unwrap();
        assert!(before.contains(old), "{before}");
        chain.edit(name, |text| text.replacen(old, new, 1));
        let text = chain.fails(1);
        fs::write(chain.path(name), before).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        expected.iter().for_each(|it| assert!(text.contains(it), "{it}: {text}"));
    };
    let member = "node-1.toml";
    refuses(member, ("node = 1", "node = 3"), &[member, "line 1: node: ", "nodes 0 to 2"]);
    refuses(member, ("node = 1", "node = 2"), &[member, "line 1: node: ", "signing_key"]);
    refuses(member, ("node = 1", "client = 1"), &[member, "node: is missing"]);
    refuses(member, ("node-1.pem", "node-2.pem"), &["node-1.key", "node-2.pem"]);
    refuses(member, ("node-1.signing", "nowhere"), &["nowhere cannot be read"]);
    refuses(
        member,
        ("group_secret = \"group.secret\"\n", ""),
        &[member, "group_secret: is missing"],
    );
    let group = "group.toml";
    refuses(group, ("tick_ms = 20", "tick_ms = 0"), &[group, "line 29", "tick_ms: 0 is not 1"]);
    refuses(group, ("[\"http://", "[\"https://"), &[group, "line 5", "endpoints: \"https://"]);
    refuses(group, ("prefix = \"", "prefix = \"\" #"), &[group, "line 6", "prefix: "]);
    let secret = chain.path("group.secret");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let text = chain.fails(1);
    assert!(text.contains("group.secret") && text.contains("chmod 600"), "{text}");
}

#[test]
fn a_chain_of_an_even_number_of_nodes_is_not_made() {
    let directory = std::env::temp_dir().join(format!("smt-chain-even-{}", std::process::id()));
    let mut init = command(&["chain", "init", "--node", "h0:1", "--node", "h1:1"]);
    let output = init.arg(&directory).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("your request: 2 nodes"), "{text}");
    let nodes = ["--node", "h0:1", "--node", "h1:1", "--node", "h2:1"];
    let mut init = command(&["chain", "init", "--etcd", "localhost:2379"]);
    let output = init.args(nodes).arg(&directory).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("--etcd: \"localhost:2379\""), "{text}");
    let mut init = command(&["chain", "init", "--etcd-prefix", ""]);
    let output = init.args(nodes).arg(&directory).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("--etcd-prefix: a prefix has"), "{text}");
    assert!(!directory.exists());
}

#[test]
fn a_client_that_the_nodes_do_not_know_is_not_served() {
    let (chain, other) = (Chain::new("counter"), Chain::of_files("counter"));
    assert_eq!(chain.call(&["add", "1"]), "1");
    for name in ["client-2.pem", "client-2.key"] {
        fs::copy(other.path(name), chain.path(name)).unwrap();
    }
    let output = chain.client(2, &["--deadline-s", "1", "add", "1"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("no answer of f + 1"), "{text}");
    // The files of a client that is in no list: it has a number and a key, and is told at once.
    fs::copy(other.path("client-2.signing"), chain.path("client-2.signing")).unwrap();
    let output = chain.client(2, &["add", "1"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("line 1: client: the group has no"),
        "{text}"
    );
    let sum = chain.client(1, &["add", "0"]).output().unwrap();
    assert_eq!(said(&sum), "1");
}

#[test]
fn a_client_that_is_in_no_list_of_the_nodes_is_refused_and_counted() {
    let mut chain = Chain::of_files("counter");
    let all = fs::read_to_string(chain.path("group.toml")).unwrap();
    chain.edit("group.toml", |text| {
        let (before, from) = text.split_once("[[clients]]\nnumber = 2\n").unwrap();
        let (_, after) = from.split_once("[options]").unwrap();
        format!("{before}[options]{after}")
    });
    (0..3).for_each(|it| chain.start(it));
    fs::write(chain.path("group.toml"), all).unwrap();
    // Its certificate is good: the authority is the group's.
    let output = chain.client(2, &["--deadline-s", "1", "add", "1"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("no answer of f + 1"), "{text}");
    assert_eq!(said(&chain.client(1, &["add", "1"]).output().unwrap()), "1");
    let last = chain.end(0);
    assert!(last["refused"].as_u64().unwrap() > 0, "{last}");
}

#[test]
fn a_node_without_its_log_is_refused_since_it_would_use_a_counter_twice() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "(none)");
    chain.kill(&[2]);
    fs::remove_file(chain.path("node-2.state/log-1")).unwrap();
    let text = chain.fails(2);
    assert!(text.contains("your files: ") && text.contains("no log of this node"), "{text}");
    // A directory that is not there may be on another disk: it is not made.
    fs::remove_dir_all(chain.path("node-2.state")).unwrap();
    let text = chain.fails(2);
    assert!(text.contains("node-2.state is not the directory") && text.contains("mounted?"));
    assert!(!text.contains("form a new group"), "{text}");
    assert!(!fs::exists(chain.path("node-2.state")).unwrap());
    // Another service gives other answers: the log is of the one that it was written under.
    chain.kill(&[1]);
    chain.edit("group.toml", |text| text.replace("key-value", "counter"));
    let text = chain.fails(1);
    assert!(text.contains("node-1.state/log-1 was written under another configuration"), "{text}");
    assert!(text.contains("`timeout_ticks` must be as they were"), "{text}");
}
