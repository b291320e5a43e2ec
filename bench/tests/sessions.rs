// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions that begin: many at once, from addresses that are not the sender's, and by certificates
//! that are replaced all the time.

use std::process::Command;

/// Runs the program, which must succeed. Returns its output.
fn run(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-bench"));
    let output = command.args(words).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn honest_clients_connect_before_a_flood_during_it_and_after_it() {
    let words = ["--rate", "5000", "--seconds", "0.5", "--addresses", "50"];
    let text = run(&[&["flood", "--flights", "20"][..], &words].concat());
    assert!(text.contains("| flood |"), "{text}");
}

#[test]
fn sessions_begin_beside_calls_by_smt_and_by_tls() {
    let words = ["--rate", "50", "--seconds", "0.3", "--repeat", "1"];
    let text = run(&[&["churn", "--peers", "smt,tls-blocking"][..], &words].concat());
    for peer in ["| smt |", "| tls-blocking |"] {
        assert!(text.contains(peer), "{text}");
    }
}

#[test]
fn no_call_fails_while_certificates_are_replaced() {
    let text = run(&["rotate", "--rotations", "3", "--clients", "2"]);
    assert!(text.contains("none failed"), "{text}");
}
