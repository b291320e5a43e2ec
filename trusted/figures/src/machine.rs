// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that are measured, and the size of the code that is trusted.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use smt_attestation::DeviceId;
use smt_device::{RunOptions, Store};
use smt_device_client::{Client, SecretNumber};
use smt_report::Table;
use zeroize::Zeroizing;

use crate::systems::Server;
use crate::{Failure, Report};

/// A process, which ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A new device and its process, which end with this value.
pub(crate) struct DeviceProcess {
    process: Running,
    directory: PathBuf,
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl DeviceProcess {
    /// Makes a device, which gets a group's secret if there is one, and starts it.
    pub(crate) fn start(
        number: u32,
        secret: Option<(SecretNumber, [u8; 32])>,
    ) -> Result<Self, Failure> {
        let name = format!("smt-trusted-figures-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut store = Store::create(&directory, DeviceId(number), None)?;
        if let Some((of_group, secret)) = secret {
            store.add_secret(of_group, Zeroizing::new(secret))?;
        }
        drop(store);
        let mut device = Command::new(std::env::current_exe()?);
        device.arg("device").arg(&directory).stderr(Stdio::piped());
        let mut device = device.spawn()?;
        let stderr = device.stderr.take();
        let own = Self { process: Running(device), directory };
        let line = first_line(stderr)?;
        if !line.contains("serves at") {
            return Err(format!("the device does not start: {line}").into());
        }
        Ok(own)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }
}

/// A device process and a server process, which end with this value.
pub(crate) struct Processes {
    device: DeviceProcess,
    _server: Running,
    server: String,
}

impl Processes {
    pub(crate) fn start() -> Result<Self, Failure> {
        let device = DeviceProcess::start(1, None)?;
        let mut server = Command::new(std::env::current_exe()?);
        let mut server = server.arg("server").stdout(Stdio::piped()).spawn()?;
        let stdout = server.stdout.take();
        let process = Running(server);
        Ok(Self { device, _server: process, server: first_line(stdout)? })
    }

    pub(crate) fn device(&self) -> Result<Client, Failure> {
        Ok(Client::connect(&self.device.socket())?)
    }

    pub(crate) fn server(&self) -> Result<Server, Failure> {
        Ok(Server::connect(&self.server)?)
    }

    /// A place on the disk, for logs.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.device.directory.join(name)
    }
}

/// The first line of a process. All that it says afterwards goes to this one's standard error: a
/// process whose pipe is closed or full fails or stands still when it writes.
fn first_line(from: Option<impl Read + Send + 'static>) -> Result<String, Failure> {
    let mut line = String::new();
    let mut from = BufReader::new(from.ok_or("a process has no output")?);
    from.read_line(&mut line)?;
    std::thread::spawn(move || io::copy(&mut from, &mut io::stderr()));
    Ok(line.trim().to_owned())
}

/// Runs the device of a directory until it is killed.
pub(crate) fn run_device(directory: &Path) -> Result<(), Failure> {
    let (directory, socket) = (directory.to_path_buf(), directory.join("socket"));
    let options = RunOptions { directory, socket, tpm: None, account: None, clients: None };
    match smt_device::run(&options)? {}
}

/// Table 4: what must be trusted.
pub(crate) fn table_4(report: &mut Report<'_>) -> Result<(), Failure> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../size");
    let output = Command::new(script).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = |name: &str| {
        let line = text.lines().find(|line| line.contains(name));
        let count = line.and_then(|line| line.split_whitespace().next());
        count.map_or_else(|| "?".to_owned(), str::to_owned)
    };
    report.section(
        "Table 4: lines of code that are trusted",
        "Counted by `trusted/size`, without libraries, blank lines, comments and tests. The \
         paper counts 2,114 lines of its attestation kernel, and 2,309,000 for systems inside a \
         TEE, the operating system among them.",
    );
    let row = |name: &str, count: String| (name.to_owned(), vec![count]);
    report.table(&Table {
        corner: "part".to_owned(),
        columns: vec!["lines".to_owned()],
        rows: vec![
            row("attestation kernel (paper: 2,114)", lines("attestation kernel")),
            row("process around it: device", lines("device/src,")),
            row("process around it: rings and requests", lines("device-client/src,")),
        ],
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::io::Write;

    use super::*;

    #[test]
    fn a_process_may_write_more_than_its_first_line() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"serves at a place\n").unwrap();
        assert_eq!(first_line(Some(reader)).unwrap(), "serves at a place");
        // More than a pipe holds: each line is read.
        for _ in 0..200 {
            writeln!(writer, "{:1000}", "a line of the device").unwrap();
        }
    }
}
