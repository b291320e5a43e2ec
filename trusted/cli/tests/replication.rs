// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas and clients as processes on loopback, killed under load.
//!
//!     SMT_KILLS=200 SMT_BFT_SEED=1 cargo test -p smt-trusted --test replication
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

#[path = "devices/mod.rs"]
mod devices;

use devices::DeviceProcess;

/// A test that waits for longer hangs.
const HANG: Duration = Duration::from_secs(120);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-trusted"));
    command.args(arguments);
    command
}

/// A group of three replicas in a directory, removed at the end.
struct Cluster {
    directory: PathBuf,
    replicas: Vec<Option<Child>>,
    devices: Vec<DeviceProcess>,
}

impl Cluster {
    /// The files of a group.
    fn of_files(service: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-replication-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // All are bound at once, so that the system gives three ports.
        let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> =
            sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(sockets);
        let mut init = command(&["bft", "init", "--clients", "2", "--service", service]);
        init.arg(&directory);
        for address in &addresses {
            init.args(["--replica", address]);
        }
        assert!(init.status().unwrap().success());
        // Short ticks: a test waits for less.
        let group = directory.join("group.toml");
        let text = fs::read_to_string(&group).unwrap();
        fs::write(&group, format!("{text}\n[options]\ntick_ms = 20\n")).unwrap();
        let cluster = Self { directory, replicas: vec![None, None, None], devices: Vec::new() };
        // Logs are begun anew often.
        for number in 0..3 {
            cluster.edit(&format!("replica-{number}.toml"), |text| {
                format!("{text}log_bytes = 65536\n")
            });
        }
        cluster
    }

    /// A group whose replicas run.
    fn new(service: &str) -> Self {
        let mut cluster = Self::of_files(service);
        (0..3).for_each(|it| cluster.start(it, &[]));
        cluster
    }

    /// A group whose replicas have devices in processes of their own.
    fn with_devices() -> Self {
        let mut cluster = Self::of_files("counter");
        for number in 0..3 {
            cluster.edit(&format!("replica-{number}.toml"), |text| {
                let text = text.replace("group_secret = \"group.secret\"\n", "");
                format!("{text}[device]\nsocket = \"device-{number}/socket\"\nsecret = 1\n")
            });
            let (directory, secret) = (format!("device-{number}"), cluster.path("group.secret"));
            let directory = PathBuf::from(cluster.path(&directory));
            let device = DeviceProcess::new(&directory, number, Some(Path::new(&secret)));
            cluster.devices.push(device);
            cluster.start(number, &[]);
        }
        cluster
    }

    /// Changes a file.
    fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.path(name)).unwrap();
        fs::write(self.path(name), change(text)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    fn replica(&self, number: usize, more: &[&str]) -> Command {
        let config = self.path(&format!("replica-{number}.toml"));
        let mut command = command(&["bft", "replica", "--config", &config]);
        command.args(more).stdout(Stdio::piped());
        command
    }

    /// Starts a replica, and returns when it listens.
    fn start(&mut self, number: usize, more: &[&str]) {
        let mut child = self.replica(number, more).spawn().unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
        self.replicas[number] = Some(child);
    }

    /// kill -9, and returns when the process is gone.
    fn kill(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.replicas[*number].as_mut().unwrap().kill().unwrap();
        }
        for number in numbers {
            self.replicas[*number].take().unwrap().wait().unwrap();
        }
    }

    /// Ends a replica in good order, and returns its last line of metrics.
    fn end(&mut self, number: usize, metrics: &str) -> serde_json::Value {
        let mut child = self.replicas[number].take().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(child.wait().unwrap().success());
        let text = fs::read_to_string(metrics).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    /// The text of a replica that does not start.
    fn fails(&self, number: usize, more: &[&str]) -> String {
        let output = self.replica(number, more).stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    /// Ends a replica in good order and starts it again, until it is a member of its view. It lives
    /// longer each time: one that is ended too soon has not heard enough of the others.
    fn wait_until_active(&mut self, number: usize, metrics: &str) {
        let mut calls = 1;
        while self.end(number, metrics)["is_active"] != true {
            self.start(number, &["--metrics", metrics]);
            // The others work on it meanwhile.
            (0..calls).for_each(|_| drop(self.call(&["add", "0"])));
            calls *= 2;
        }
        self.start(number, &["--metrics", metrics]);
    }

    fn client(&self, number: u32, arguments: &[&str]) -> Command {
        let config = self.path(&format!("client-{number}.toml"));
        let mut command = command(&["bft", "client", "--config", &config]);
        command.args(arguments);
        command
    }

    fn call(&self, arguments: &[&str]) -> String {
        let output = self.client(2, arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.replicas.iter_mut().flatten() {
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
    fn start(cluster: &Cluster) -> Self {
        Self::of(cluster, &["--count", "1000000"])
    }

    fn of(cluster: &Cluster, arguments: &[&str]) -> Self {
        let arguments = [&["--deadline-s", "120", "load"], arguments].concat();
        let mut command = cluster.client(1, &arguments);
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
                self.answers.recv_timeout(HANG).expect("no answer: the group stands still");
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
fn replicas_that_are_killed_under_load_lose_nothing_and_execute_nothing_twice() {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let kills = variable("SMT_KILLS").unwrap_or(6);
    let mut random = variable("SMT_BFT_SEED").unwrap_or_else(|| std::process::id().into());
    println!("SMT_BFT_SEED={random}");
    let mut cluster = Cluster::new("counter");
    let mut load = Load::start(&cluster);
    for kill in 0..kills {
        load.wait_for(5);
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 33) as usize % 5;
        let victims = if drawn < 3 { vec![drawn] } else { vec![0, 1, 2] };
        println!("kill {kill}: {victims:?}");
        cluster.kill(&victims);
        victims.iter().for_each(|it| cluster.start(*it, &[]));
    }
    load.wait_for(5);
    let answers = load.end();
    // One client adds 1 each time: any sum that is lost or counted twice shows.
    let expected: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, expected);
    let sum: u64 = cluster.call(&["add", "0"]).parse().unwrap();
    // The last request may have run without its answer being printed.
    assert!(sum == expected.len() as u64 || sum == expected.len() as u64 + 1, "{sum}");
}

#[test]
fn two_processes_of_one_client_with_several_requests_in_progress_lose_none_and_repeat_none() {
    let mut cluster = Cluster::new("counter");
    let arguments = ["--count", "300", "--in-progress", "8"];
    let mut loads = [Load::of(&cluster, &arguments), Load::of(&cluster, &arguments)];
    loads.iter_mut().for_each(|it| it.wait_for(100));
    cluster.kill(&[0]);
    cluster.start(0, &[]);
    loads.iter_mut().for_each(|it| it.wait_for(200));
    let mut answers: Vec<u64> = loads.into_iter().flat_map(Load::end).collect();
    answers.sort_unstable();
    assert_eq!(answers, (1..=600).collect::<Vec<u64>>());
}

#[test]
fn a_primary_that_is_killed_is_replaced_and_the_service_goes_on() {
    let mut cluster = Cluster::of_files("key-value");
    let metrics = cluster.path("metrics");
    cluster.start(0, &[]);
    cluster.start(1, &["--metrics", &metrics]);
    cluster.start(2, &[]);
    assert_eq!(cluster.call(&["put", "city", "Bonn"]), "(none)");
    cluster.kill(&[0]);
    assert_eq!(cluster.call(&["put", "city", "Ulm"]), "Bonn");
    assert_eq!(cluster.call(&["get", "city"]), "Ulm");
    let last = cluster.end(1, &metrics);
    assert!(last["view"].as_u64().unwrap() > 0, "{last}");
    // The old primary comes back from its log, and is needed now.
    cluster.start(0, &[]);
    assert_eq!(cluster.call(&["delete", "city"]), "Ulm");
    assert_eq!(cluster.call(&["get", "city"]), "(none)");
}

#[test]
fn a_replica_that_lost_its_disk_comes_back_in_a_new_epoch_and_counts_again() {
    let mut cluster = Cluster::new("counter");
    assert_eq!(cluster.call(&["add", "3"]), "3");
    cluster.kill(&[2]);
    assert_eq!(cluster.call(&["add", "4"]), "7");
    fs::remove_dir_all(cluster.path("replica-2.state")).unwrap();
    let text = cluster.fails(2, &[]);
    assert!(text.contains("your files: ") && text.contains("--epoch"), "{text}");
    let metrics = cluster.path("metrics");
    cluster.start(2, &["--epoch", "2", "--metrics", &metrics]);
    cluster.wait_until_active(2, &metrics);
    // Without replica 1, the group needs the one that has come back.
    cluster.kill(&[1]);
    assert_eq!(cluster.call(&["add", "1"]), "8");
}

#[test]
fn replicas_whose_logs_were_begun_anew_are_killed_and_lose_nothing() {
    let mut cluster = Cluster::of_files("counter");
    let log = |cluster: &Cluster, number: usize| {
        fs::metadata(cluster.path(&format!("replica-{number}.state/log-1"))).unwrap().ino()
    };
    (0..3).for_each(|it| cluster.start(it, &[]));
    let mut load = Load::start(&cluster);
    let first = [0, 1, 2].map(|it| log(&cluster, it));
    while (0..3).any(|it| log(&cluster, it) == first[it]) {
        load.wait_for(20);
    }
    cluster.kill(&[0, 1, 2]);
    (0..3).for_each(|it| cluster.start(it, &[]));
    load.wait_for(5);
    let answers = load.end();
    let expected: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, expected);
    let sum: u64 = cluster.call(&["add", "0"]).parse().unwrap();
    assert!(sum == expected.len() as u64 || sum == expected.len() as u64 + 1, "{sum}");
}

#[test]
fn a_replica_goes_on_with_the_device_that_outlived_it() {
    let mut cluster = Cluster::with_devices();
    assert_eq!(cluster.call(&["add", "3"]), "3");
    for number in 0..3 {
        cluster.kill(&[number]);
        cluster.start(number, &[]);
        cluster.call(&["add", "1"]);
    }
    cluster.kill(&[0, 1, 2]);
    (0..3).for_each(|it| cluster.start(it, &[]));
    assert_eq!(cluster.call(&["add", "0"]), "6");
}

#[test]
fn a_log_older_than_the_counter_of_its_device_is_refused() {
    let mut cluster = Cluster::with_devices();
    assert_eq!(cluster.call(&["add", "1"]), "1");
    cluster.kill(&[0]);
    let log = cluster.path("replica-0.state/log-1");
    let old = fs::read(&log).unwrap();
    cluster.start(0, &[]);
    // The primary speaks for each.
    assert_eq!(cluster.call(&["add", "1"]), "2");
    assert_eq!(cluster.call(&["add", "1"]), "3");
    cluster.kill(&[0]);
    fs::write(&log, old).unwrap();
    let text = cluster.fails(0, &[]);
    assert!(text.contains("the log is older than the device's counter"), "{text}");
    fs::remove_file(&log).unwrap();
    let text = cluster.fails(0, &[]);
    assert!(text.contains("the log of epoch 1 is gone"), "{text}");
}

#[test]
fn a_replica_whose_device_was_started_again_is_admitted_in_the_new_epoch() {
    let mut cluster = Cluster::with_devices();
    assert_eq!(cluster.call(&["add", "1"]), "1");
    cluster.devices[2].kill();
    // Its replica ends by itself when it asks the device for something.
    while cluster.replicas[2].as_mut().unwrap().try_wait().unwrap().is_none() {
        cluster.call(&["add", "0"]);
    }
    cluster.replicas[2] = None;
    cluster.devices[2].start();
    let text = cluster.fails(2, &["--epoch", "2"]);
    assert!(text.contains("leave out --epoch"), "{text}");
    let metrics = cluster.path("metrics");
    cluster.start(2, &["--metrics", &metrics]);
    cluster.wait_until_active(2, &metrics);
    cluster.kill(&[1]);
    assert_eq!(cluster.call(&["add", "1"]), "2");
}

#[test]
fn a_mistake_in_the_configuration_is_told_in_one_line() {
    let cluster = Cluster::of_files("counter");
    let refuses = |name: &str, (old, new): (&str, &str), expected: &[&str]| {
        let before = fs::read_to_string(cluster.path(name)).unwrap();
        assert!(before.contains(old), "{before}");
        cluster.edit(name, |text| text.replacen(old, new, 1));
        let text = cluster.fails(1, &[]);
        fs::write(cluster.path(name), before).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        expected.iter().for_each(|it| assert!(text.contains(it), "{it}: {text}"));
    };
    let member = "replica-1.toml";
    refuses(member, ("replica = 1", "replica = 3"), &[member, "line 1", "replicas 0 to 2"]);
    refuses(member, ("replica = 1", "replica = 2"), &[member, "line 1", "signing_key"]);
    refuses(member, ("replica-1.pem", "replica-2.pem"), &["replica-1.key", "replica-2.pem"]);
    refuses(member, ("replica-1.signing", "nowhere"), &["nowhere cannot be read"]);
    refuses(
        member,
        ("group_secret = \"group.secret\"\n", ""),
        &[member, "group_secret: is missing, and so is device"],
    );
    refuses("group.toml", ("tick_ms = 20", "tick_ms = 0"), &["group.toml", "tick_ms: 0 is not 1"]);
    let secret = cluster.path("group.secret");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let text = cluster.fails(1, &[]);
    assert!(text.contains("group.secret") && text.contains("chmod 600"), "{text}");
}

#[test]
fn a_client_of_another_group_is_not_served() {
    let (cluster, other) = (Cluster::new("counter"), Cluster::new("counter"));
    assert_eq!(cluster.call(&["add", "1"]), "1");
    for name in ["client-2.pem", "client-2.key"] {
        fs::copy(other.path(name), cluster.path(name)).unwrap();
    }
    let output = cluster.client(2, &["--deadline-s", "1", "add", "1"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("no answer of f + 1"), "{text}");
    let sum = cluster.client(1, &["add", "0"]).output().unwrap();
    assert_eq!(String::from_utf8(sum.stdout).unwrap(), "1\n");
}
