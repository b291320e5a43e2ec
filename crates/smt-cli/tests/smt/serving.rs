// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that do more than echo, and how they end.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Files, Serving, command};

#[test]
fn a_directory_hands_out_its_files_and_no_others() {
    let files = Files::new();
    files.write("inside/deep/file", "content");
    files.write("secret", "secret");
    symlink("../secret", files.path("inside/out")).unwrap();
    symlink(files.path("secret"), files.path("inside/far-out")).unwrap();
    let serving = Serving::start(&files, &["--dir", &files.path("inside")]);
    let read = |path: &str| files.run_call(serving.address(), &[], path.as_bytes());
    assert_eq!(read("deep/file").text(), "content");
    let absolute = files.path("inside/deep/file");
    for path in [
        "../secret",
        "deep/../../secret",
        "out",
        "far-out",
        "/etc/passwd",
        &absolute,
        "deep",
        "",
        "missing",
    ] {
        read(path).fails(5, &["the server's application refused the request", "did not run"]);
    }
    // The request before does not keep the server from the next.
    assert_eq!(read("deep/file").text(), "content");
    let (_, words) = serving.end();
    assert!(words.contains("9 dropped"), "{words}");
    assert!(words.contains("missing: No such file"), "{words}");
}

#[test]
fn nobody_reading_its_errors_ends_no_server() {
    let files = Files::new();
    files.write("inside/file", "content");
    let words = ["--dir", &files.path("inside"), "--workers", "1"];
    let mut serving = Serving::start(&files, &words);
    serving.close_errors();
    let read = |path: &str| files.run_call(serving.address(), &[], path.as_bytes());
    for _ in 0..3 {
        read("missing").fails(5, &["the server's application refused the request"]);
        assert_eq!(read("file").text(), "content");
    }
    let (status, _) = serving.end();
    assert!(status.success());
}

#[test]
fn shards_serve_together_and_are_summed_up() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--shards", "4"]);
    for text in ["a", "b", "c", "d", "e", "f"] {
        let outcome = files.run_call(serving.address(), &[], text.as_bytes());
        assert_eq!(outcome.text(), text);
    }
    let (status, words) = serving.end();
    assert!(status.success());
    assert!(words.contains("served 6 requests"), "{words}");
    assert!(words.contains("6 sessions"), "{words}");
}

#[test]
fn a_command_makes_the_reply() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--anyone", "--exec", "tr", "a-z", "A-Z"]);
    let request = b"hello\n".repeat(50_000);
    let outcome = files.run_call(serving.address(), &[], &request);
    assert_eq!(outcome.text(), "HELLO\n".repeat(50_000));
}

#[test]
fn a_command_that_fails_drops_its_request_and_is_logged() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--anyone", "--exec", "sh", "-c", "exit 3"]);
    files
        .run_call(serving.address(), &[], b"")
        .fails(4, &["the server's application failed the request", "may have run"]);
    let (_, words) = serving.end();
    assert!(words.contains("sh ended with exit status: 3"), "{words}");
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_its_caller_told() {
    let files = Files::new();
    let words = ["--anyone", "--exec-timeout", "50ms", "--exec", "sh", "-c"];
    let script = "tail -f /dev/null; true";
    let serving = Serving::start(&files, &[&words[..], &[script]].concat());
    files
        .run_call(serving.address(), &[], b"")
        .fails(4, &["the server's application failed the request", "may have run"]);
    let (_, words) = serving.end();
    let why = "sh: it ran for longer than --exec-timeout, 50.0 ms";
    assert!(words.contains(why), "{words}");
}

/// No caller waits for the message, and its worker is needed.
#[test]
fn a_command_of_a_one_way_message_is_killed_at_the_limit() {
    let files = Files::new();
    let script = "read word; test \"$word\" = call || exec tail -f /dev/null; echo done";
    let words = ["--anyone", "--workers", "1", "--exec-timeout", "2s", "--exec"];
    let serving = Serving::start(&files, &[&words[..], &["sh", "-c", script]].concat());
    let send = files.run_call(serving.address(), &["--one-way"], b"send\n");
    assert_eq!(send.text(), "");
    let call = files.run_call(serving.address(), &[], b"call\n");
    assert_eq!(call.text(), "done\n");
}

#[test]
fn a_command_that_is_gone_refuses_its_requests_since_nothing_ran() {
    let files = Files::new();
    let program = files.path("program");
    symlink("/bin/cat", &program).unwrap();
    let serving = Serving::start(&files, &["--anyone", "--exec", &program]);
    let call = || files.run_call(serving.address(), &[], b"hi");
    assert_eq!(call().text(), "hi");
    fs::remove_file(&program).unwrap();
    call().fails(5, &["the server's application refused the request", "did not run"]);
    let (_, words) = serving.end();
    assert!(words.contains(&program), "{words}");
}

#[test]
fn only_clients_of_its_authority_make_a_command_run() {
    let files = Files::new();
    let authority = files.path("ca.pem");
    let words = ["--client-ca", &authority, "--exec", "cat"];
    let serving = Serving::start(&files, &words);
    files.run_call(serving.address(), &[], b"hi").fails(3, &["requires a certificate"]);
    let (cert, key) = (files.path("alice.pem"), files.path("alice.key"));
    let alice = ["--cert", &cert, "--key", &key];
    assert_eq!(files.run_call(serving.address(), &alice, b"hi").text(), "hi");
}

#[test]
fn sigterm_ends_it_gracefully_with_a_summary() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files.run_call(serving.address(), &[], b"hi").text();
    let process = Pid::from_raw(serving.id().try_into().unwrap()).unwrap();
    kill_process(process, Signal::TERM).unwrap();
    let (status, words) = serving.wait();
    assert!(status.success());
    assert!(words.contains("served 1 requests"), "{words}");
}

#[test]
fn a_second_signal_ends_its_commands_with_it() {
    let files = Files::new();
    let script = "echo begun >&2; tail -f /dev/null; true";
    let mut serving = Serving::start(&files, &["--anyone", "--exec", "sh", "-c", script]);
    let call = files.call(serving.address(), &["--deadline", "60s"]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let caller = command(&call).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(serving.next_words(), "begun\n");
    let process = Pid::from_raw(serving.id().try_into().unwrap()).unwrap();
    // Two threads may take them, so either may be the second, whose number the exit code has.
    for signal in [Signal::INT, Signal::TERM] {
        kill_process(process, signal).unwrap();
    }
    // Its standard error ends when no process writes to it any more: the commands have it too.
    let (status, _) = serving.wait();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
    // The caller need not find out by itself that no answer comes.
    let outcome = caller.wait_with_output().unwrap();
    let words = String::from_utf8(outcome.stderr).unwrap();
    assert!(words.contains("may have run"), "{words}");
    assert!(!words.contains("no answer"), "{words}");
}

#[test]
fn an_interrupted_demonstration_leaves_no_keys_behind() {
    let files = Files::empty();
    let mut demo =
        command(&["demo"]).env("TMPDIR", files.path("")).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let output = demo.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut first).unwrap();
    assert!(first.contains(&files.path("")), "{first}");
    let process = Pid::from_child(&demo);
    kill_process(process, Signal::INT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(files.path("")).unwrap().count(), 0);
}

/// A demonstration that is killed leaves such a directory.
#[test]
fn keys_that_a_killed_demonstration_has_left_are_removed_by_the_next_one() {
    let files = Files::empty();
    let temporary = files.path("");
    let mut gone = Command::new("true").spawn().unwrap();
    let left = format!("{temporary}/smt-{}-0", gone.id());
    gone.wait().unwrap();
    DirBuilder::new().mode(0o700).create(&left).unwrap();
    fs::write(format!("{left}/server.key"), "a key").unwrap();
    let demo = command(&["demo"]).env("TMPDIR", &temporary).output().unwrap();
    assert!(demo.status.success());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn secrets_go_to_files_for_their_owner_alone() {
    let files = Files::new();
    let (log, state) = (files.path("key-log"), files.path("state"));
    // Others could read these: a log of somebody who did not think of it, and what a crash has
    // left.
    for path in [&log, &format!("{state}.new")] {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let serving = Serving::start(&files, &["--echo", "--key-log", &log, "--state", &state]);
    files.run_call(serving.address(), &[], b"hi").text();
    assert!(serving.end().0.success());
    assert!(fs::read_to_string(&log).unwrap().starts_with("SMT_SECRET "));
    for path in [log, state] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn a_server_that_ends_in_order_leaves_its_state_and_no_lock() {
    let files = Files::new();
    let state = files.path("state");
    for shards in ["1", "2"] {
        let serving = Serving::start(&files, &["--echo", "--state", &state, "--shards", shards]);
        let lock = std::path::PathBuf::from(format!("{state}.lock"));
        assert!(lock.exists());
        assert!(serving.end().0.success());
        assert!(std::path::Path::new(&state).exists() && !lock.exists());
    }
}
