// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt adopt call` without a session: what may go by itself is waited for, and told once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::program::{Files, Serving, command};

/// Killed on drop.
struct Process(Child);

impl Process {
    fn start(words: &[&str]) -> Self {
        Self(command(words).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or never would.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_caller_waits_for_its_key_daemon_and_ends_with_an_error_that_stays() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let (socket, authority) = (files.path("socket"), files.path("ca.pem"));
    let mut caller = Process::start(&["adopt", "call", "--socket", &socket]);
    let mut errors = BufReader::new(caller.0.stderr.take().unwrap());
    let mut told = String::new();
    errors.read_line(&mut told).unwrap();
    let missing = format!("smt: environment: no key daemon answers at {socket}: No such file");
    assert!(told.starts_with(&missing), "{told}");
    let address = serving.address();
    let words = ["keyd", "hand-over", "connect", address, "--ca", &authority, "--name", "db7"];
    let _key_daemon = Process::start(&[&words[..], &["--socket", &socket]].concat());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert_eq!(caller.0.wait().unwrap().code(), Some(1), "{rest}");
    assert!(!rest.contains("No such file"), "{rest}");
    let last = rest.lines().last().unwrap();
    assert!(last.contains("db7") && last.contains("connect to"), "{rest}");
    assert_eq!(rest.matches("db7").count(), last.matches("db7").count(), "{rest}");
}
