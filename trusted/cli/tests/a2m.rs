// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted a2m` as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory with keys, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-trusted-{}-{number}", std::process::id());
        let directory = Self(std::env::temp_dir().join(name));
        directory.succeeds(&["init", "DIR"]);
        directory
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let directory = self.0.to_str().unwrap();
        let replaced = arguments.iter().map(|it| if *it == "DIR" { directory } else { it });
        let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
            .arg("a2m")
            .args(replaced)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Verifies a tail by the key in its last line.
    fn verifies(&self, tail: &str, nonce: &str, known: Option<&str>) -> String {
        let output = self.verify(tail, nonce, known);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn verify(&self, tail: &str, nonce: &str, known: Option<&str>) -> Output {
        let key = tail.trim().rsplit_once(' ').unwrap().1;
        let mut arguments = vec!["verify-tail", "1", "--key", key, "--nonce", nonce];
        arguments.extend(known.iter().flat_map(|known| ["--known", known]));
        self.run(&arguments, tail)
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments, "");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn entries_are_appended_looked_up_truncated_and_verified() {
    let directory = Directory::new();
    assert_eq!(directory.succeeds(&["append", "DIR", "1", "hello"]), "2\n");
    let output = directory.run(&["append", "DIR", "1"], "a\nb\nc\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "4\n5\n6\n");
    assert_eq!(directory.succeeds(&["lookup", "DIR", "1", "5"]), "b\n");
    assert_eq!(directory.succeeds(&["lookup", "DIR", "1", "2", "--unverified"]), "hello\n");
    let tail = directory.succeeds(&["tail", "DIR", "1", "--nonce", "fresh"]);
    assert!(tail.starts_with("log 1\nnumber 8\n"), "{tail}");
    let verified = directory.verifies(&tail, "fresh", None);
    assert!(verified.starts_with("log 1 ends with entry 8\nepoch 3\nknown 8:"), "{verified}");
    let text = directory.succeeds(&["truncate", "DIR", "1", "5", "--nonce", "fresh"]);
    assert_eq!(text, "log 1 begins at 5\nmanifest entry 2\n");
    let text = directory.succeeds(&["verify", "DIR"]);
    assert_eq!(text, "log 0: 1 to 2\nlog 1: 5 to 10\n");
}

#[test]
fn an_error_says_whose_fault_it_is() {
    let directory = Directory::new();
    directory.succeeds(&["append", "DIR", "1", "hello"]);
    let older = fs::read(directory.0.join("log")).unwrap();
    directory.succeeds(&["append", "DIR", "1", "again"]);
    let text = directory.fails(&["lookup", "DIR", "1", "9"]);
    assert!(text.starts_with("smt-trusted: your request: log 1 has no entry 9"), "{text}");
    let text = directory.fails(&["append", "DIR", "0", "x"]);
    assert!(text.starts_with("smt-trusted: your request: log 0 is the manifest"), "{text}");
    let text = directory.fails(&["init", "DIR"]);
    assert!(text.starts_with("smt-trusted: your request: "), "{text}");
    fs::write(directory.0.join("log"), older).unwrap();
    let text = directory.fails(&["verify", "DIR"]);
    let expected = "smt-trusted: the host or its disk: the log was rolled back";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_tail_that_proves_nothing_says_why() {
    let directory = Directory::new();
    directory.succeeds(&["append", "DIR", "1", "hello"]);
    let tail = directory.succeeds(&["tail", "DIR", "1", "--nonce", "fresh"]);
    let known = directory.verifies(&tail, "fresh", None);
    let known = known.lines().last().unwrap().strip_prefix("known ").unwrap().to_owned();
    let refused = |tail: &str, nonce: &str, known: Option<&str>| {
        let output = directory.verify(tail, nonce, known);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = refused(&tail, "other", None);
    assert!(text.starts_with("smt-trusted: the tail or its sender: the tail has another nonce"));
    let text = refused(&tail.replace("number 4", "number 5"), "fresh", None);
    assert!(text.starts_with("smt-trusted: the tail or its sender: the signature"), "{text}");
    let text = refused(&tail.replace("log 1", "log one"), "fresh", None);
    assert!(text.starts_with("smt-trusted: your files: standard input is not what"), "{text}");
    // It is a tail, and the client has seen it before.
    let text = refused(&tail, "fresh", Some(&known));
    assert!(
        text.starts_with("smt-trusted: the host of the log: the log was rolled back"),
        "{text}"
    );
    // A later tail goes on from there, in another epoch of the device.
    let next = directory.succeeds(&["tail", "DIR", "1", "--nonce", "next"]);
    directory.verifies(&next, "next", Some(&known));
}
