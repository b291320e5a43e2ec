// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A group of three nodes in a directory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const NODES: usize = 3;

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transform-counter"));
    command.args(arguments);
    command
}

/// The text of a command that fails.
pub(crate) fn fails(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// A group in a directory, removed at the end.
pub(crate) struct Cluster {
    directory: PathBuf,
    pub(crate) addresses: Vec<String>,
    nodes: Vec<Option<Child>>,
}

impl Cluster {
    /// The files of a group.
    pub(crate) fn of_files() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-transform-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // All are bound at once, so that the system gives as many ports.
        let sockets: Vec<_> = (0..NODES).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(sockets);
        let mut init = command(&["init", "--clients", "2"]);
        init.arg(&directory);
        for address in &addresses {
            init.args(["--node", address]);
        }
        assert!(init.status().unwrap().success());
        let cluster = Self { directory, addresses, nodes: (0..NODES).map(|_| None).collect() };
        // Short ticks: a test waits for less.
        cluster.edit("group.toml", |text| format!("{text}\n[options]\ntick_ms = 20\n"));
        cluster
    }

    /// A group whose nodes run.
    pub(crate) fn new() -> Self {
        let mut cluster = Self::of_files();
        (0..NODES).for_each(|it| cluster.start(it));
        cluster
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    /// Changes a file.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(name), change(text)).unwrap();
    }

    pub(crate) fn node(&self, number: usize) -> Command {
        let config = self.path(&format!("node-{number}.toml"));
        command(&["node", "--config", &config, "--metrics", &self.metrics(number)])
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
        let mut node = self.node(number);
        let mut child = node.stdout(Stdio::piped()).stderr(errors.unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        self.nodes[number] = Some(child);
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
    }

    /// kill -9, and returns when the processes are gone.
    pub(crate) fn kill(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.nodes[*number].as_mut().unwrap().kill().unwrap();
        }
        for number in numbers {
            self.nodes[*number].take().unwrap().wait().unwrap();
        }
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

    pub(crate) fn client(&self, number: u32, arguments: &[&str]) -> Command {
        let config = self.path(&format!("client-{number}.toml"));
        let mut command = command(&["add", "--config", &config]);
        command.args(arguments);
        command
    }

    /// Adds a number, and returns the sum.
    pub(crate) fn add(&self, number: u64) -> u64 {
        let output = self.client(2, &[&number.to_string()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().parse().unwrap()
    }
}

impl Drop for Cluster {
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
