// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A chain of three nodes, its etcd and its clients as processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use data_encoding::BASE64;

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-trusted"));
    command.args(arguments);
    command
}

/// Whether etcd is installed. If not, says that a test is left out, and fails where
/// `trusted/test` has found or installed it.
pub(crate) fn has_etcd(test: &str) -> bool {
    let found = Command::new("etcd").arg("--version").stdout(Stdio::null()).status();
    let is_there = found.is_ok_and(|it| it.success());
    if !is_there {
        assert!(std::env::var_os("SMT_HAS_ETCD").is_none(), "{test}: etcd does not run");
        println!("{test} is left out: etcd is not installed");
    }
    is_there
}

/// A chain of three nodes in a directory, removed at the end.
pub(crate) struct Chain {
    directory: PathBuf,
    nodes: Vec<Option<Child>>,
    etcd: Option<Child>,
    etcd_url: String,
}

impl Chain {
    /// The files of a group.
    pub(crate) fn of_files(service: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-chain-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // All are bound at once, so that the system gives three ports.
        let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(sockets);
        let etcd_url = format!("http://127.0.0.1:{}", port_of_etcd(number));
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
        // Logs are begun anew often.
        for number in 0..3 {
            chain.edit(&format!("node-{number}.toml"), |text| format!("{text}log_bytes = 65536\n"));
        }
        chain
    }

    /// A chain whose nodes run, without etcd.
    pub(crate) fn new(service: &str) -> Self {
        let mut chain = Self::of_files(service);
        (0..3).for_each(|it| chain.start(it));
        chain
    }

    /// A chain whose nodes run, and their etcd.
    pub(crate) fn with_etcd(service: &str) -> Self {
        let mut chain = Self::of_files(service);
        chain.start_etcd();
        (0..3).for_each(|it| chain.start(it));
        chain
    }

    /// Starts etcd. Nodes ask for it until it answers.
    pub(crate) fn start_etcd(&mut self) {
        let (url, peers) = (self.etcd_url.as_str(), "http://127.0.0.1:0");
        let mut etcd = Command::new("etcd");
        etcd.args(["--data-dir", &self.path("etcd"), "--log-level", "error"])
            .args(["--listen-client-urls", url, "--advertise-client-urls", url])
            .args(["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            .stdout(Stdio::null())
            .stderr(self.stderr("etcd"));
        self.etcd = Some(etcd.spawn().unwrap());
    }

    /// Kills etcd, when it has been up: an etcd that is killed in its first moments does not know
    /// itself as a member of its cluster, and answers nothing any more.
    pub(crate) fn stop_etcd(&mut self) {
        wait_until("etcd is up", || self.is_etcd_healthy());
        let mut etcd = self.etcd.take().unwrap();
        etcd.kill().unwrap();
        etcd.wait().unwrap();
    }

    /// Writes a key of the group in etcd, as a node that lies may.
    pub(crate) fn write_to_etcd(&self, name: &str, value: &str) {
        let value = BASE64.encode(value.as_bytes());
        self.ask_etcd("put", name, &format!(",\"value\":\"{value}\""));
    }

    /// Whether etcd has a key of the group.
    pub(crate) fn is_in_etcd(&self, name: &str) -> bool {
        self.ask_etcd("range", name, "").contains("\"kvs\"")
    }

    fn is_etcd_healthy(&self) -> bool {
        let address = self.etcd_url.strip_prefix("http://").unwrap();
        let Ok(mut stream) = TcpStream::connect(address) else {
            return false;
        };
        let mut answer = String::new();
        let asked =
            write!(stream, "GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n");
        asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.contains("\"true\"")
    }

    fn ask_etcd(&self, what: &str, name: &str, rest: &str) -> String {
        let group = fs::read_to_string(self.path("group.toml")).unwrap();
        let prefix = group.split("prefix = \"").nth(1).unwrap().split('"').next().unwrap();
        let key = BASE64.encode(format!("{prefix}/{name}").as_bytes());
        let body = format!("{{\"key\":\"{key}\"{rest}}}");
        let address = self.etcd_url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST /v3/kv/{what} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// Changes a file.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(name), change(text)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> String {
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

    /// A file for the errors of a process, which are told when a test fails.
    fn stderr(&self, name: &str) -> Stdio {
        let path = self.path(&format!("{name}.stderr"));
        fs::File::options().create(true).append(true).open(path).unwrap().into()
    }

    fn tell_errors(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().ends_with(".stderr") {
                let text = fs::read(entry.path()).unwrap_or_default();
                eprintln!("{}:\n{}", name.display(), String::from_utf8_lossy(&text));
            }
        }
    }

    /// Starts a node, and returns when it listens.
    pub(crate) fn start(&mut self, number: usize) {
        let stderr = self.stderr(&format!("node-{number}"));
        let mut child = self.node(number).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
        self.nodes[number] = Some(child);
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

    /// The text of a node that does not start.
    pub(crate) fn fails(&self, number: usize) -> String {
        let output = self.node(number).stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn client(&self, number: u32, arguments: &[&str]) -> Command {
        let config = self.path(&format!("client-{number}.toml"));
        let mut command = command(&["chain", "client", "--config", &config]);
        command.args(arguments);
        command
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> String {
        said(&self.client(2, arguments).output().unwrap())
    }
}

/// Waits until something holds, for a minute at most.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let is_there = (0..1200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        holds()
    });
    assert!(is_there, "{what}");
}

/// A port that is free. Its gateway asks etcd at the port that it was told, and 0 would be another
/// one. Connections get no such low port: one to an etcd that is down could meet itself.
fn port_of_etcd(number: u32) -> u32 {
    let first = std::process::id().wrapping_mul(131).wrapping_add(number);
    let mut ports = (0..12_000).map(|it| 20_000 + first.wrapping_add(it * 17) % 12_000);
    ports.find(|it| TcpListener::bind(format!("127.0.0.1:{it}")).is_ok()).unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().trim_end().to_owned()
}

impl Drop for Chain {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten().chain(&mut self.etcd) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            self.tell_errors();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
