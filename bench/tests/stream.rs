// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams through calls in parts, longer than the memory that they may take.

use std::process::Command;

#[test]
fn streams_of_200_mb_arrive_as_they_were_in_both_directions_in_bounded_memory() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-bench"));
    let output = command.args(["stream", "--megabytes", "200"]).output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    for direction in ["| download |", "| upload |"] {
        assert!(text.lines().any(|line| line.starts_with(direction)), "{text}");
    }
}

#[test]
fn a_stream_that_takes_more_memory_than_it_may_has_failed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-bench"));
    let output = command
        .args(["stream", "--megabytes", "1", "--directions", "download"])
        .args(["--memory-max", "0.001"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("are allowed"), "{errors}");
}
