// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run that is ended by a signal leaves no keys behind.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A run that would take ten seconds, whose temporary files are here.
fn long_run(directory: &Path) -> io::Result<Child> {
    Command::new(env!("CARGO_BIN_EXE_smt-bench"))
        .args(["run", "--only", "unloaded", "--peers", "udp", "--sizes", "64"])
        .args(["--duration", "2000", "--server-core", "0"])
        .env("TMPDIR", directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Whether the server's key is anywhere below.
fn has_key(directory: &Path) -> io::Result<bool> {
    let mut folders = fs::read_dir(directory)?.map_while(Result::ok);
    Ok(folders.any(|folder| folder.path().join("server.key").exists()))
}

#[test]
fn keys_go_with_the_run_that_a_signal_ends() {
    for signal in [Signal::INT, Signal::TERM] {
        let directory = std::env::temp_dir().join(format!(
            "smt-bench-test-{}-{}",
            std::process::id(),
            signal.as_raw()
        ));
        fs::create_dir(&directory).unwrap();
        let mut run = long_run(&directory).unwrap();
        let began = Instant::now();
        while !has_key(&directory).unwrap() {
            assert!(began.elapsed() < Duration::from_secs(60), "there is no key");
            assert!(run.try_wait().unwrap().is_none(), "the run has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&run), signal).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(130));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir(&directory).unwrap();
    }
}
