// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page of docs/PERFORMANCE.md comes out of a run.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

fn is_successful(arguments: &[&str]) -> io::Result<bool> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-bench"));
    let status = command.args(arguments).stdout(Stdio::null()).status()?;
    Ok(status.success())
}

#[test]
fn a_page_is_written_from_the_json_of_a_run() {
    let directory = std::env::temp_dir().join(format!("smt-bench-page-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let path = directory.to_str().unwrap();
    let json = format!("{path}/new/page.json");
    // CI is short: one scenario shows that all parts fit.
    let peers = "smt,tls-blocking,grpc-mt";
    let run = ["run", "--page", "--smoke", "--only", "unloaded", "--peers", peers, "--json", &json];
    assert!(is_successful(&run).unwrap());
    assert!(is_successful(&["page", &json, "--into", path]).unwrap());
    let page = fs::read_to_string(directory.join("PERFORMANCE.md")).unwrap();
    let row = page.lines().find(|line| line.starts_with("| one call alone, 64 KB, blocking"));
    assert!(row.is_some_and(|row| row.contains("(tls-blocking)")), "{page}");
    let plot = fs::read_to_string(directory.join("performance.svg")).unwrap();
    for name in ["smt", "tls-blocking", "grpc-mt"] {
        assert!(plot.contains(&format!(">{name}</text>")), "{plot}");
    }
    fs::remove_dir_all(&directory).unwrap();
}
