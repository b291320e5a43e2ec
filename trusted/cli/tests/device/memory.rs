// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted a2m --device` over device processes that remember logs: what a host gains that
//! kills processes and restores files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smt_a2m::{A2m, A2mError, LogId, Memory};
use smt_device_client::{AppendOnly, Device, DeviceError, LogMisuse};
use smt_simulation::Random;

use crate::process::{Directory, Process, Tpm, connect, fails, start, succeeds};

const MEMORY: [&str; 2] = ["memory.0", "memory.1"];

/// A device that remembers logs, and a memory over it.
struct Host {
    directory: Directory,
    has_tpm: bool,
    key: String,
    /// The device's process, and that of its TPM.
    running: Option<(Process, Option<Tpm>)>,
}

impl Host {
    /// Nothing if a TPM is wanted, and there is no swtpm.
    fn new(has_tpm: bool) -> Option<Self> {
        let (directory, key) = (Directory::new(), String::new());
        let mut host = Self { directory, has_tpm, key, running: None };
        let tpm = host.tpm();
        if has_tpm && tpm.is_none() {
            return None;
        }
        let socket = tpm.as_ref().map(|tpm| tpm.socket.clone());
        let mut arguments = vec!["init".to_owned(), host.device(), "--number".into(), "1".into()];
        arguments.extend(socket.iter().flat_map(|it| ["--tpm".to_owned(), it.clone()]));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let text = succeeds(&arguments, "");
        host.key = text.split_whitespace().last().unwrap().to_owned();
        drop(tpm);
        Some(host)
    }

    fn tpm(&self) -> Option<Tpm> {
        self.has_tpm.then(|| Tpm::start(&self.directory.0.join("tpm"))).flatten()
    }

    fn device(&self) -> String {
        self.directory.path("device")
    }

    /// Starts the device in its next epoch, after the one before was killed.
    fn start(&mut self) {
        self.kill();
        let tpm = self.tpm();
        let mut options = vec!["--memory"];
        options.extend(tpm.iter().flat_map(|it| ["--tpm", &it.socket]));
        let process = start(&self.device(), &options);
        self.running = Some((process, tpm));
    }

    fn kill(&mut self) {
        self.running = None;
    }

    /// The text of a device that does not start.
    fn refused(&mut self) -> String {
        self.kill();
        let tpm = self.tpm();
        let device = self.device();
        let mut arguments = vec!["run", &device, "--memory"];
        arguments.extend(tpm.iter().flat_map(|it| ["--tpm", &it.socket]));
        fails(&arguments)
    }

    fn socket(&self) -> String {
        format!("{}/socket", self.device())
    }

    fn a2m(&self, arguments: &[&str]) -> Output {
        let (socket, memory) = (self.socket(), self.directory.path("memory"));
        let mut all: Vec<&str> = arguments.to_vec();
        all.insert(1, &memory);
        all.extend(["--device", &socket]);
        a2m(&all, "")
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.a2m(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A tail that a client verifies against what it knows, and what it knows then.
    fn verified_tail(&self, nonce: &str, known: Option<&str>) -> String {
        let tail = self.succeeds(&["tail", "1", "--nonce", nonce]);
        let mut arguments = vec!["verify-tail", "1", "--key", &self.key, "--nonce", nonce];
        arguments.extend(known.iter().flat_map(|known| ["--known", known]));
        let output = a2m(&arguments, &tail);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().strip_prefix("known ").unwrap().to_owned()
    }

    fn save(&self, name: &str) {
        for part in ["memory", "device"] {
            let (from, to) = (self.directory.0.join(part), self.saved(name).join(part));
            std::fs::create_dir_all(&to).unwrap();
            copy(&from, &to, |_| true);
        }
    }

    /// Restores the files of a part, those that are named.
    fn restore(&self, name: &str, part: &str, files: &[&str]) {
        let from = self.saved(name).join(part);
        copy(&from, &self.directory.0.join(part), |file| files.contains(&file));
    }

    fn saved(&self, name: &str) -> PathBuf {
        self.directory.0.join("saved").join(name)
    }
}

fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(from).into_iter().flatten().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_file() && is_wanted(&name) {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

fn a2m(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
        .arg("a2m")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_host_that_restarts_a_device_with_a_tpm_cannot_roll_its_memory_back() {
    let Some(mut host) = Host::new(true) else {
        return;
    };
    host.start();
    host.succeeds(&["append", "1", "balance 100"]);
    host.save("old");
    host.succeeds(&["append", "1", "paid 100 to Bob"]);
    let known = host.verified_tail("nonce-1", None);
    host.kill();
    host.save("new");
    // The memory's files alone, in a new and honest epoch: the device knows better.
    host.start();
    let files: &[&[&str]] = &[&["log", "anchor"], &["log"]];
    for files in files {
        host.restore("old", "memory", files);
        let output = host.a2m(&["append", "1", "paid 100 to Eve"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text.starts_with("smt-trusted: the host or its disk: "), "{text}");
        host.restore("new", "memory", &["log", "anchor"]);
    }
    host.kill();
    host.save("newest");
    // The device's files with them: the TPM knows better.
    host.restore("old", "memory", &["log", "anchor"]);
    host.restore("old", "device", &MEMORY);
    let text = host.refused();
    assert!(text.contains("the host: the files memory.0 and memory.1"), "{text}");
    for name in MEMORY {
        std::fs::remove_file(host.directory.0.join("device").join(name)).unwrap();
    }
    let text = host.refused();
    assert!(text.contains("the host: the files memory.0 and memory.1"), "{text}");
    // All of it as it was last goes on.
    host.restore("newest", "device", &["memory.0", "memory.1"]);
    host.restore("new", "memory", &["log", "anchor"]);
    // The refused starts have taken epochs, so `state` stays as it is.
    host.start();
    host.verified_tail("nonce-2", Some(&known));
    host.succeeds(&["append", "1", "more"]);
    assert!(host.succeeds(&["verify"]).contains("log 1: 1 to "));
}

/// The documents say so.
#[test]
fn restored_files_of_a_device_without_a_tpm_win_and_those_of_its_memory_do_not() {
    let mut host = Host::new(false).unwrap();
    host.start();
    host.succeeds(&["append", "1", "balance 100"]);
    host.kill();
    host.save("old");
    host.start();
    host.succeeds(&["append", "1", "paid 100 to Bob"]);
    host.start();
    host.restore("old", "memory", &["log", "anchor"]);
    let output = host.a2m(&["append", "1", "paid 100 to Eve"]);
    assert!(!output.status.success());
    host.kill();
    host.restore("old", "device", &MEMORY);
    host.start();
    host.succeeds(&["append", "1", "paid 100 to Eve"]);
}

#[test]
fn a_device_that_was_started_without_memory_says_how_to_start_it() {
    let host = Host::new(false).unwrap();
    let _process = start(&host.device(), &[]);
    let output = host.a2m(&["append", "1", "text"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("start it with `smt-trusted device run --memory`"), "{text}");
    let mut device = connect(&host.device());
    let refused = device.open_log(LogId(1));
    assert!(matches!(refused, Err(DeviceError::Log(LogMisuse::NoMemory))));
}

#[test]
fn a_memory_goes_on_in_the_epoch_of_a_device_that_still_runs() {
    let mut host = Host::new(false).unwrap();
    host.start();
    let log = LogId(7);
    let mut memory = A2m::open_with(connect(&host.device()), Memory::default()).unwrap();
    memory.append(log, b"a").unwrap();
    let entries = memory.append_all(log, &[b"b", b"c", b"d"]).unwrap();
    memory.commit().unwrap();
    for entry in &entries {
        assert_eq!(memory.verified_lookup(log, entry.statement.sequence).unwrap(), *entry);
    }
    let storage = std::mem::take(memory.storage_mut());
    let mut again = A2m::open_with(connect(&host.device()), storage).unwrap();
    assert_eq!(again.tail(log, b"nonce").unwrap().entry.statement.sequence, 6);
    // The host keeps nothing of it.
    let rolled_back = A2m::open_with(connect(&host.device()), Memory::default()).err().unwrap();
    assert!(matches!(rolled_back, A2mError::NotSealed { log: 7, sealed: 6, stored: 0 }));
}

#[test]
fn two_processes_with_one_memory_lose_no_entry_of_each_other() {
    let mut host = Host::new(false).unwrap();
    host.start();
    let log = LogId(7);
    let open = |storage| A2m::open_with(connect(&host.device()), storage).unwrap();
    let mut one = open(Memory::default());
    one.append(log, b"a").unwrap();
    // Another process, with a copy of the storage, discards that and appends its own.
    let mut other = open(Memory::default());
    other.append(log, b"b").unwrap();
    other.commit().unwrap();
    let refused = one.commit().unwrap_err();
    let is_refused =
        |error: &A2mError| matches!(error, A2mError::Device(DeviceError::Log(LogMisuse::NotNext)));
    assert!(is_refused(&refused), "{refused}");
    assert!(matches!(one.append(log, b"c"), Err(A2mError::Stopped)));
    other.tail(log, b"nonce").unwrap();
}

/// Kills of the device at any moment of a row of commits, each followed by a start and an audit.
#[test]
fn kill_9_of_the_device_loses_nothing_that_was_acknowledged() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seed = number("SMT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills = number("SMT_KILLS").unwrap_or(6);
    println!("SMT_SEED={seed}");
    let mut random = Random::new(seed);
    for has_tpm in [false, true] {
        let Some(mut host) = Host::new(has_tpm) else {
            return;
        };
        let (log, mut acknowledged) = (LogId(1), Vec::new());
        let mut storage = Memory::default();
        for _ in 0..kills {
            host.start();
            let mut memory = A2m::open_with(connect(&host.device()), storage).unwrap();
            for (sequence, text) in &acknowledged {
                let found: &String = text;
                let entry = memory.verified_lookup(log, *sequence).unwrap();
                assert_eq!(entry.context, found.as_bytes(), "an acknowledged entry is lost");
            }
            // The kill comes while commits are under way, at any place of one.
            let (process, _tpm) = host.running.take().unwrap();
            let (commits, spins) = (random.below(30), random.below(1_000_000));
            let round = Arc::new(AtomicU64::new(0));
            let killer = std::thread::spawn({
                let round = round.clone();
                move || {
                    while round.load(Ordering::Relaxed) < commits {
                        std::thread::yield_now();
                    }
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    drop(process);
                }
            });
            loop {
                let round = round.fetch_add(1, Ordering::Relaxed);
                let text = format!("{} {round}", acknowledged.len());
                let Ok(entry) = memory.append(log, text.as_bytes()) else {
                    break;
                };
                if memory.commit().is_err() {
                    break;
                }
                acknowledged.push((entry.statement.sequence, text));
            }
            killer.join().unwrap();
            storage = std::mem::take(memory.storage_mut());
        }
        assert!(!acknowledged.is_empty());
        host.start();
        let memory = A2m::open_with(connect(&host.device()), storage).unwrap();
        let (_, _, last) = memory.logs().find(|it| it.0 == log).unwrap();
        assert!(last >= acknowledged.last().unwrap().0);
        assert!(connect(&host.device()).own().epoch.0 > kills);
    }
}

/// Kills of the memory's command at any moment, over a device that runs on. Another command then
/// finds all that the killed ones have printed.
#[test]
fn kill_9_of_the_memory_loses_nothing_that_was_acknowledged() {
    let number = |name| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seed = number("SMT_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("SMT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut host = Host::new(false).unwrap();
    host.start();
    let (socket, memory) = (host.socket(), host.directory.path("memory"));
    let (mut acknowledged, mut killed) = (Vec::new(), 0);
    for round in 0..number("SMT_KILLS").unwrap_or(20) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
            .args(["a2m", "append", &memory, "1", &format!("text {round}"), "--device", &socket])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        (0..random.below(2_000_000)).for_each(|_| std::hint::spin_loop());
        child.kill().unwrap();
        let is_whole = child.wait().unwrap().success();
        let text = std::io::read_to_string(output).unwrap();
        killed += u32::from(!is_whole);
        if let Ok(sequence) = text.trim().parse::<u64>() {
            acknowledged.push((sequence.to_string(), format!("text {round}\n")));
        }
    }
    println!("{killed} killed, {} acknowledged", acknowledged.len());
    host.succeeds(&["append", "1", "after all"]);
    for (sequence, text) in acknowledged {
        assert_eq!(host.succeeds(&["lookup", "1", &sequence]), text);
    }
    host.verified_tail("nonce", None);
}
