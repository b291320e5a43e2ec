// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The access log of a server: a line of JSON for each request.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Files, Serving, command, eventually};

/// The lines of a log.
fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn each_request_is_a_line_with_its_caller_and_its_outcome() {
    let files = Files::new();
    files.write("inside/file", "content");
    let (log, authority) = (files.path("log"), files.path("ca.pem"));
    let inside = files.path("inside");
    let words = ["--dir", &inside, "--client-ca", &authority, "--access-log", &log];
    let serving = Serving::start(&files, &words);
    let (cert, key) = (files.path("alice.pem"), files.path("alice.key"));
    let alice = ["--cert", &cert, "--key", &key];
    let one_way = [&alice[..], &["--one-way"]].concat();
    files.run_call(serving.address(), &alice, b"file").text();
    files.run_call(serving.address(), &alice, b"missing\n");
    files.run_call(serving.address(), &one_way, b"file").text();
    assert!(serving.end().0.success());
    let lines = lines(&log);
    for (line, request, outcome, bytes) in [
        (&lines[0], "file", "replied", (4, 7)),
        (&lines[1], "missing\\n", "refused", (8, 0)),
        (&lines[2], "file", "done", (4, 0)),
    ] {
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(line["duration_us"].is_u64(), "{line}");
        for (field, value) in [
            ("name", json!("alice")),
            ("handler", json!("dir")),
            ("request", json!(request)),
            ("outcome", json!(outcome)),
            ("bytes_in", json!(bytes.0)),
            ("bytes_out", json!(bytes.1)),
        ] {
            assert_eq!(line[field], value, "{field}: {line}");
        }
    }
    assert_eq!(lines.len(), 3);
    let why = lines[1]["reason"].as_str().unwrap();
    assert!(why.contains("No such file"), "{why}");
}

#[test]
fn a_command_that_fails_and_a_reply_that_is_too_large_are_told() {
    let files = Files::new();
    let log = files.path("log");
    let script = "read word; test \"$word\" = large || exit 3; head -c 5000 /dev/zero";
    let words = ["--access-log", &log, "--anyone", "--exec", "sh", "-c", script];
    let serving = Serving::start(&files, &words);
    for request in ["no\n", "large\n"] {
        let limit = ["--message-limit", "1K"];
        files.run_call(serving.address(), &limit, request.as_bytes());
    }
    serving.end();
    let outcomes: Vec<_> =
        lines(&log).iter().map(|line| (line["request"].clone(), line["outcome"].clone())).collect();
    assert_eq!(outcomes, [(json!("sh"), json!("failed")), (json!("sh"), json!("not_sent"))]);
}

#[test]
fn sigusr1_opens_the_log_again_by_its_name() {
    let files = Files::new();
    let (log, renamed) = (files.path("log"), files.path("log.1"));
    let serving = Serving::start(&files, &["--echo", "--access-log", &log]);
    let call = || drop(files.run_call(serving.address(), &[], b"hi"));
    call();
    fs::rename(&log, &renamed).unwrap();
    call();
    serving.signal(Signal::USR1);
    eventually("the log is there again", || Path::new(&log).exists());
    call();
    assert!(serving.end().0.success());
    assert_eq!((lines(&renamed).len(), lines(&log).len()), (2, 1));
}

#[test]
fn sigusr1_does_not_end_a_server_without_a_log() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &["--echo"]);
    serving.signal(Signal::USR1);
    let line = serving.next_words();
    assert!(line.contains("SIGUSR1: there is no --access-log"), "{line}");
    assert_eq!(files.run_call(serving.address(), &[], b"hi").text(), "hi");
}

#[test]
fn the_log_may_go_to_standard_output() {
    let files = Files::new();
    let output = files.path("output");
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &cert, "--key", &key];
    let words = [&words[..], &["--until-input-ends", "--access-log", "-"]].concat();
    let mut serving = command(&words)
        .stdin(Stdio::piped())
        .stdout(File::create(&output).unwrap())
        .spawn()
        .unwrap();
    let text = || fs::read_to_string(&output).unwrap();
    eventually("it listens", || text().ends_with('\n'));
    let first = text();
    let address = first.trim_end().strip_prefix("listening on ").unwrap();
    files.run_call(address, &[], b"hi").text();
    drop(serving.stdin.take());
    assert!(serving.wait().unwrap().success());
    let text = text();
    let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(line["handler"], "echo");
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn a_log_that_cannot_be_opened_is_said_before_the_server_listens() {
    let files = Files::new();
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let directory = files.path("");
    let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &cert, "--key", &key];
    let words = [&words[..], &["--access-log", &directory]].concat();
    crate::program::smt(&words).fails_with(&[&directory, "Is a directory"]);
}
