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
    assert!(tail.ends_with("verified\n") && tail.starts_with("number 8\n"), "{tail}");
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
