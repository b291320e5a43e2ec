// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signals, and disks that are full: the fate of a request is told, and nothing is left that looks
//! like a reply.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Files, Serving, command, eventually, fifo, noise, smt};

/// Begins, and then waits for a line in this FIFO, which it echoes.
fn waiting_for(fifo: &str) -> [String; 4] {
    let script = format!("echo begun >&2; read line <{fifo}; echo $line");
    ["--exec", "sh", "-c", &script].map(str::to_owned)
}

fn serve(files: &Files, fifo: &str) -> Serving {
    let exec = waiting_for(fifo);
    let exec = exec.iter().map(String::as_str);
    let words: Vec<&str> = ["--anyone"].into_iter().chain(exec).collect();
    Serving::start(files, &words)
}

fn start_call(files: &Files, address: &str, more: &[&str]) -> Child {
    let words = files.call(address, more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    command(&words).stdin(Stdio::null()).spawn().unwrap()
}

/// Sends the signal to the child, and gives its exit code and output.
fn end(child: Child, signal: Signal) -> (Option<i32>, String) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let outcome = child.wait_with_output().unwrap();
    let words = String::from_utf8(outcome.stderr).unwrap();
    (outcome.status.code(), words)
}

#[test]
fn a_call_that_is_interrupted_ends_its_command_at_the_server() {
    let files = Files::new();
    let mut serving = serve(&files, &fifo(&files));
    let out = files.path("reply");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let call = start_call(&files, serving.address(), &["--out", &out]);
        assert_eq!(serving.next_words(), "begun\n");
        let (status, words) = end(call, signal);
        assert_eq!(status, Some(code), "{words}");
        assert_eq!(words, "smt: interrupted; the request may have run\n");
        assert!(!Path::new(&out).exists());
        let words = serving.next_words();
        assert!(words.contains("sh: nobody waits any more"), "{words}");
    }
}

/// It does not tell the server, which asks and hears nothing.
#[test]
fn a_call_that_is_killed_ends_its_command_at_the_server() {
    let files = Files::new();
    let mut serving = serve(&files, &fifo(&files));
    let call = start_call(&files, serving.address(), &[]);
    assert_eq!(serving.next_words(), "begun\n");
    let (status, _) = end(call, Signal::KILL);
    assert_eq!(status, None);
    let words = serving.next_words();
    assert!(words.contains("sh: nobody waits any more"), "{words}");
    assert!(serving.end().0.success());
}

#[test]
fn one_that_is_interrupted_before_it_is_connected_leaves_nothing_behind() {
    let files = Files::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let out = files.path("reply");
    let address = silent.local_addr().unwrap().to_string();
    let call = start_call(&files, &address, &["--out", &out]);
    // It tries to connect.
    silent.recv_from(&mut [0; 2048]).unwrap();
    let (status, words) = end(call, Signal::INT);
    assert_eq!(status, Some(130));
    assert_eq!(words, "smt: interrupted; the request did not run\n");
    assert!(!Path::new(&out).exists());
}

#[test]
fn one_that_waits_for_its_request_is_told_not_to_have_run() {
    let files = Files::new();
    for (signal, code, more, told) in [
        (Signal::INT, 130, &[][..], "the request did not run"),
        (Signal::TERM, 143, &[], "the request did not run"),
        (Signal::HUP, 129, &["--one-way"], "the message was not delivered"),
    ] {
        let words = files.call("127.0.0.1:9", more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut call = command(&words).stdin(Stdio::piped()).spawn().unwrap();
        let input = call.stdin.take();
        eventually("it waits", || waits_and_catches(call.id(), signal));
        let (status, words) = end(call, signal);
        assert_eq!(status, Some(code));
        assert_eq!(words, format!("smt: interrupted; {told}\n"));
        drop(input);
    }
}

/// Interrupts a call that is repeated for long, when its first attempt has failed; gives its last
/// words.
fn interrupted_when_repeated(files: &Files, address: &str, more: &[&str]) -> String {
    let more = [more, &["--retry", "1h", "-v"]].concat();
    let mut call = start_call(files, address, &more);
    let mut errors = BufReader::new(call.stderr.take().unwrap());
    let mut words = String::new();
    while !words.contains("attempt 1 failed") {
        assert_ne!(errors.read_line(&mut words).unwrap(), 0, "{words}");
    }
    kill_process(Pid::from_child(&call), Signal::INT).unwrap();
    errors.read_to_string(&mut words).unwrap();
    assert_eq!(call.wait().unwrap().code(), Some(130), "{words}");
    words.lines().last().unwrap().to_owned()
}

#[test]
fn one_that_is_interrupted_between_attempts_is_told_by_all_of_them() {
    let files = Files::new();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let told = interrupted_when_repeated(&files, &closed, &[]);
    assert_eq!(told, "smt: interrupted; the request did not run");
    let serving = Serving::start(&files, &["--anyone", "--exec", "false"]);
    let told = interrupted_when_repeated(&files, serving.address(), &["--idempotent"]);
    assert_eq!(told, "smt: interrupted; the request may have run");
}

#[test]
fn a_request_that_an_attempt_may_have_run_is_told_so_if_the_last_one_did_not() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &["--anyone", "--exec", "false"]);
    let more = ["--retry", "2", "--idempotent", "-v", "--deadline", "20s"];
    let mut call = start_call(&files, serving.address(), &more);
    let mut errors = BufReader::new(call.stderr.take().unwrap());
    let mut words = String::new();
    while !words.contains("attempt 1 failed") {
        assert_ne!(errors.read_line(&mut words).unwrap(), 0, "{words}");
    }
    serving.kill();
    errors.read_to_string(&mut words).unwrap();
    assert_eq!(call.wait().unwrap().code(), Some(4), "{words}");
}

/// Whether a process catches the signal and its first thread sleeps, as the system says.
fn waits_and_catches(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)).unwrap().trim()
    };
    let caught = u64::from_str_radix(field("SigCgt:"), 16).unwrap();
    field("State:").starts_with('S') && caught >> (signal.as_raw() - 1) & 1 == 1
}

/// Opening a FIFO blocks until a process reads it.
#[test]
fn one_that_waits_for_a_reader_of_its_output_ends_at_once() {
    let files = Files::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (out, address) = (fifo(&files), silent.local_addr().unwrap().to_string());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut call = start_call(&files, &address, &["--out", &out]);
        eventually("it waits", || waits_and_catches(call.id(), signal));
        kill_process(Pid::from_child(&call), signal).unwrap();
        let mut status = None;
        eventually("it has ended", || {
            status = call.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(code));
    }
    assert!(Path::new(&out).exists());
}

#[test]
fn a_terminal_that_goes_ends_no_server() {
    let files = Files::new();
    let fifo = fifo(&files);
    let mut serving = serve(&files, &fifo);
    let call = start_call(&files, serving.address(), &[]);
    assert_eq!(serving.next_words(), "begun\n");
    serving.signal(Signal::HUP);
    fs::write(&fifo, "done\n").unwrap();
    let outcome = call.wait_with_output().unwrap();
    assert_eq!(outcome.stdout, b"done\n");
    let (status, words) = serving.end();
    assert!(status.success());
    assert!(words.contains("served 1 requests"), "{words}");
}

#[test]
fn one_that_was_started_to_outlive_its_terminal_goes_on() {
    let files = Files::new();
    let serving = Serving::start_without_terminal(&files, &["--echo"]);
    serving.signal(Signal::HUP);
    for _ in 0..3 {
        let outcome = files.run_call(serving.address(), &[], b"hi");
        assert_eq!(outcome.text(), "hi");
    }
    assert!(serving.end().0.success());
}

#[test]
fn a_reply_that_finds_no_room_is_told_to_have_run() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let request = files.write("request", "hello");
    let mut full = command(&[]);
    full.args(files.call(serving.address(), &["--in", &request]))
        .stdout(File::options().write(true).open("/dev/full").unwrap());
    let outcome = full.output().unwrap();
    assert_eq!(outcome.status.code(), Some(7));
    let words = String::from_utf8(outcome.stderr).unwrap();
    let expected = "smt: environment: the request has run, but writing its reply to standard output failed: No space left";
    assert!(words.starts_with(expected), "{words}");
}

/// 8 blocks of 512 bytes are what the process may write to a file, or 8 KiB by other shells.
#[test]
fn a_file_stays_as_it_was_if_the_reply_finds_no_room() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let request = files.write("request", noise(100_000));
    let [old, new] = [files.write("old", "what was there"), files.path("new")];
    for out in [&old, &new] {
        let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
        let outcome = Command::new("sh")
            .args(["-c", limited, env!("CARGO_BIN_EXE_smt")])
            .args(files.call(serving.address(), &["--in", &request, "--out", out]))
            .output()
            .unwrap();
        assert_eq!(outcome.status.code(), Some(7));
        let words = String::from_utf8(outcome.stderr).unwrap();
        assert!(words.contains("the request has run, but"), "{words}");
    }
    assert_eq!(fs::read(&old).unwrap(), b"what was there");
    assert!(!Path::new(&new).exists());
    // Where there is room it is replaced, however long it was.
    let call = files.call(serving.address(), &["--in", &old, "--out", &request]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    smt(&call).text();
    assert_eq!(fs::read(&request).unwrap(), b"what was there");
}
