// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a chain and clients as processes on loopback, with an etcd of their own, killed under
//! load.
//!
//!     SMT_CHAIN_KILLS=200 SMT_CHAIN_SEED=1 cargo test -p smt-trusted --test chain_nodes
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A test that waits for longer hangs.
const HANG: Duration = Duration::from_secs(120);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-trusted"));
    command.args(arguments);
    command
}

/// Whether etcd is installed. If not, says that a test is left out.
fn has_etcd(test: &str) -> bool {
    let found = Command::new("etcd").arg("--version").stdout(Stdio::null()).status();
    let is_there = found.is_ok_and(|it| it.success());
    if !is_there {
        println!("{test} is left out: etcd is not installed");
    }
    is_there
}

/// A chain of three nodes in a directory, removed at the end.
struct Chain {
    directory: PathBuf,
    nodes: Vec<Option<Child>>,
    etcd: Option<Child>,
    etcd_url: String,
}

impl Chain {
    /// The files of a group.
    fn of_files(service: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-chain-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // All are bound at once, so that the system gives three ports.
        let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(sockets);
        // Its gateway asks etcd at the port that it was told: 0 would be another one.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let etcd_url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let mut init = command(&["chain", "init", "--clients", "2", "--service", service]);
        init.args(["--etcd", &etcd_url]).arg(&directory);
        for address in &addresses {
            init.args(["--node", address]);
        }
        assert!(init.status().unwrap().success());
        let chain = Self { directory, nodes: vec![None, None, None], etcd: None, etcd_url };
        // Short ticks: a test waits for less.
        let options = "[options]\ntick_ms = 20\npoll_ms = 20\n";
        chain.edit("group.toml", |text| format!("{text}\n{options}"));
        chain
    }

    /// A chain whose nodes run, without etcd.
    fn new(service: &str) -> Self {
        let mut chain = Self::of_files(service);
        (0..3).for_each(|it| chain.start(it));
        chain
    }

    /// A chain whose nodes run, and their etcd.
    fn with_etcd(service: &str) -> Self {
        let mut chain = Self::of_files(service);
        chain.start_etcd();
        (0..3).for_each(|it| chain.start(it));
        chain
    }

    /// Starts etcd. Nodes ask for it until it answers.
    fn start_etcd(&mut self) {
        let (url, peers) = (self.etcd_url.as_str(), "http://127.0.0.1:0");
        let mut etcd = Command::new("etcd");
        etcd.args(["--data-dir", &self.path("etcd"), "--log-level", "error"])
            .args(["--listen-client-urls", url, "--advertise-client-urls", url])
            .args(["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.etcd = Some(etcd.spawn().unwrap());
    }

    fn stop_etcd(&mut self) {
        let mut etcd = self.etcd.take().unwrap();
        etcd.kill().unwrap();
        etcd.wait().unwrap();
    }

    /// Changes a file.
    fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(name), change(text)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    fn node(&self, number: usize) -> Command {
        let config = self.path(&format!("node-{number}.toml"));
        let metrics = self.metrics(number);
        let mut command = command(&["chain", "node", "--config", &config, "--metrics", &metrics]);
        command.stdout(Stdio::piped());
        command
    }

    fn metrics(&self, number: usize) -> String {
        self.path(&format!("metrics-{number}"))
    }

    /// Starts a node, and returns when it listens.
    fn start(&mut self, number: usize) {
        let mut child = self.node(number).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
        self.nodes[number] = Some(child);
    }

    /// kill -9, and returns when the processes are gone.
    fn kill(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.nodes[*number].as_mut().unwrap().kill().unwrap();
        }
        for number in numbers {
            self.nodes[*number].take().unwrap().wait().unwrap();
        }
    }

    /// Ends a node in good order, and returns its last line of metrics.
    fn end(&mut self, number: usize) -> serde_json::Value {
        let mut child = self.nodes[number].take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(child.wait().unwrap().success());
        let text = fs::read_to_string(self.metrics(number)).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    /// The text of a node that does not start.
    fn fails(&self, number: usize) -> String {
        let output = self.node(number).stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    fn client(&self, number: u32, arguments: &[&str]) -> Command {
        let config = self.path(&format!("client-{number}.toml"));
        let mut command = command(&["chain", "client", "--config", &config]);
        command.args(arguments);
        command
    }

    fn call(&self, arguments: &[&str]) -> String {
        said(&self.client(2, arguments).output().unwrap())
    }
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().trim_end().to_owned()
}

impl Drop for Chain {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten().chain(&mut self.etcd) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A client that makes requests all the time, and the answers that it prints.
struct Load {
    child: Child,
    answers: Receiver<String>,
    seen: Vec<u64>,
}

impl Load {
    fn start(chain: &Chain) -> Self {
        let mut command = chain.client(1, &["--deadline-s", "120", "load", "--count", "1000000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines: Lines<BufReader<ChildStdout>> =
            BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, answers, seen: Vec::new() }
    }

    /// Waits for some more answers.
    fn wait_for(&mut self, count: usize) {
        for _ in 0..count {
            let answer =
                self.answers.recv_timeout(HANG).expect("no answer: the chain stands still");
            self.seen.push(answer.parse().unwrap());
        }
    }

    /// Ends the client, and returns all answers that it has printed.
    fn end(mut self) -> Vec<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.seen.extend(self.answers.iter().map(|it| it.parse::<u64>().unwrap()));
        self.seen
    }
}

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
    while chain.end(1)["configuration"] == 0 {
        chain.start(1);
        chain.call(&["add", "0"]);
    }
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
    let kills = variable("SMT_CHAIN_KILLS").unwrap_or(6);
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
fn a_node_without_its_log_is_refused_since_it_would_use_a_counter_twice() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "(none)");
    chain.kill(&[2]);
    fs::remove_file(chain.path("node-2.state/log-1")).unwrap();
    let text = chain.fails(2);
    assert!(text.contains("your files: ") && text.contains("no log of this node"), "{text}");
    fs::remove_dir_all(chain.path("node-2.state")).unwrap();
    assert!(chain.fails(2).contains("no log of this node"));
    // Another service gives other answers: the log is of the one that it was written under.
    chain.kill(&[1]);
    chain.edit("group.toml", |text| text.replace("key-value", "counter"));
    let text = chain.fails(1);
    assert!(text.contains("written under another configuration"), "{text}");
}

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
