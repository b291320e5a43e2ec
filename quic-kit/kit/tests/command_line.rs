// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program by itself; tests of `kit-offload` put its emulator between two ends.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

#[test]
fn an_emulator_to_no_address_is_refused_in_words() {
    let run = Command::new(env!("CARGO_BIN_EXE_quic-kit"))
        .args(["emulator", "--to", "nowhere"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    let text = String::from_utf8(run.stderr).unwrap();
    assert!(text.contains("invalid value 'nowhere'"), "{text}");
}
