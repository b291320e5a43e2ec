// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device as a process of its own, for members of groups.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A device process, killed at the end.
pub(crate) struct DeviceProcess {
    directory: PathBuf,
    process: Option<Child>,
    /// The public key, in hexadecimal digits.
    #[allow(dead_code, reason = "not all systems have statements signed")]
    pub(crate) key: String,
}

impl DeviceProcess {
    /// Makes a device, which gets the secret of a file under number 1, and starts it.
    pub(crate) fn new(directory: &Path, number: usize, secret: Option<&Path>) -> Self {
        let number = number.to_string();
        let init = device(&["init", path(directory), "--number", &number]).output().unwrap();
        let text = String::from_utf8(init.stdout).unwrap();
        assert!(init.status.success(), "{text}");
        let key = text.split_whitespace().last().unwrap().to_owned();
        if let Some(secret) = secret {
            let mut add = device(&["add-secret", path(directory), "1"]);
            assert!(add.stdin(fs::File::open(secret).unwrap()).status().unwrap().success());
        }
        let mut it = Self { directory: directory.to_owned(), process: None, key };
        it.start();
        it
    }

    /// Starts the device in its next epoch, and returns when it listens.
    pub(crate) fn start(&mut self) {
        let mut run = device(&["run", path(&self.directory)]);
        let mut child = run.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("serves at"), "{line}");
        child.stderr = Some(lines.into_inner());
        self.process = Some(child);
    }

    pub(crate) fn kill(&mut self) {
        let mut child = self.process.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.process {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn device(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt-trusted"));
    command.arg("device").args(arguments);
    command
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
