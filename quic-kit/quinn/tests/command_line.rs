// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program by itself; tests of `kit-offload` transfer with it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

#[test]
fn a_client_without_a_server_is_refused_in_words() {
    let run = Command::new(env!("CARGO_BIN_EXE_kit-quinn")).arg("client").output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    let text = String::from_utf8(run.stderr).unwrap();
    assert!(text.contains("--connect <CONNECT>"), "{text}");
}
