// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A tree of four nodes as processes: node 0 is the source, 1 and 2 are its children, and 3 is that
//! of 1.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const NODES: usize = 4;

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-trusted"));
    command.args(arguments);
    command
}

/// A tree in a directory, removed at the end.
pub(crate) struct Tree {
    directory: PathBuf,
    pub(crate) addresses: Vec<String>,
    nodes: Vec<Option<Child>>,
}

impl Tree {
    /// The files of a group, and of a stream of so many bytes.
    pub(crate) fn of_files(stream: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-review-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // All are bound at once, so that the system gives as many ports.
        let sockets: Vec<_> = (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(sockets);
        let mut init = command(&["peer-review", "init"]);
        init.arg(&directory);
        for address in &addresses {
            init.args(["--node", address]);
        }
        assert!(init.status().unwrap().success());
        let tree = Self { directory, addresses, nodes: (0..NODES).map(|_| None).collect() };
        // Short ticks: a test waits for less.
        tree.edit("group.toml", |text| format!("{text}\n[options]\ntick_ms = 20\n"));
        let bytes: Vec<u8> = (0..stream).map(|it| (it % 251) as u8).collect();
        fs::write(tree.path("stream"), bytes).unwrap();
        tree
    }

    /// Changes a file.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(name), change(text)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn node(&self, number: usize) -> Command {
        let config = self.path(&format!("node-{number}.toml"));
        let mut command = command(&["peer-review", "node", "--config", &config]);
        command.args(["--metrics", &self.metrics(number)]);
        command.args(["--output", &self.path(&format!("output-{number}"))]);
        if number == 0 {
            command.args(["--input", &self.path("stream"), "--part-bytes", "1000"]);
        }
        command.stdout(Stdio::piped()).env("SMT_LOG", "info");
        command
    }

    fn metrics(&self, number: usize) -> String {
        self.path(&format!("metrics-{number}"))
    }

    fn errors(&self, number: usize) -> String {
        self.path(&format!("node-{number}.stderr"))
    }

    /// Starts a node, and returns when it listens.
    pub(crate) fn start(&mut self, number: usize) {
        let errors = fs::File::options().create(true).append(true).open(self.errors(number));
        let mut child = self.node(number).stderr(errors.unwrap()).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
        self.nodes[number] = Some(child);
    }

    /// kill -9, and returns when the process is gone.
    pub(crate) fn kill(&mut self, number: usize) {
        let mut child = self.nodes[number].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends a node in good order, and returns its last line of metrics.
    pub(crate) fn end(&mut self, number: usize) -> serde_json::Value {
        let mut child = self.nodes[number].take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(child.wait().unwrap().success());
        let text = fs::read_to_string(self.metrics(number)).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    /// The text of a command that fails.
    pub(crate) fn fails(mut command: Command) -> String {
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    /// Waits until a node has told its log something.
    pub(crate) fn wait_for_words(&self, number: usize, words: &[&str]) {
        wait_until(&format!("node {number}: {words:?}"), || {
            let text = fs::read_to_string(self.errors(number)).unwrap_or_default();
            text.lines().any(|line| words.iter().all(|it| line.contains(it)))
        });
    }

    /// Waits until the last line of a node's log about this has these words.
    pub(crate) fn wait_for_last_of(&self, number: usize, about: &str, words: &str) {
        wait_until(&format!("node {number}: {words} as the last of {about}"), || {
            let text = fs::read_to_string(self.errors(number)).unwrap_or_default();
            let last = text.lines().rfind(|line| line.contains(about));
            last.is_some_and(|line| line.contains(words))
        });
    }

    /// Waits until these nodes have the whole stream.
    pub(crate) fn wait_for_stream(&self, nodes: &[usize]) {
        let stream = fs::read(self.path("stream")).unwrap();
        for number in nodes {
            let output = self.path(&format!("output-{number}"));
            wait_until(&format!("the stream at node {number}"), || {
                fs::read(&output).is_ok_and(|it| it == stream)
            });
        }
    }
}

/// Waits until something holds, for two minutes at most.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let is_there = (0..2400).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        holds()
    });
    assert!(is_there, "{what}");
}

pub(crate) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().trim_end().to_owned()
}

impl Drop for Tree {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            for number in 0..NODES {
                let text = fs::read(self.errors(number)).unwrap_or_default();
                eprintln!("node {number}:\n{}", String::from_utf8_lossy(&text));
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
