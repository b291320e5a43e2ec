// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processes that are measured, and the size of the code that is trusted.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use smt_device_client::Client;
use smt_loopback::{DeviceProcess, first_line};
use smt_report::Table;

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

/// A device process and a server process, which end with this value.
pub(crate) struct Processes {
    device: DeviceProcess,
    _server: Running,
    server: String,
}

impl Processes {
    pub(crate) fn start() -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let device = DeviceProcess::start(&program, 1, None)?;
        let mut server = Command::new(&program);
        let mut server = server.arg("server").stdout(Stdio::piped()).spawn()?;
        let stdout = server.stdout.take();
        let process = Running(server);
        Ok(Self { device, _server: process, server: first_line(stdout)? })
    }

    pub(crate) fn device(&self) -> Result<Client, Failure> {
        Ok(self.device.connect()?)
    }

    /// Another device, for another memory.
    pub(crate) fn other_device(&self) -> Result<DeviceProcess, Failure> {
        Ok(DeviceProcess::start(&std::env::current_exe()?, 2, None)?)
    }

    pub(crate) fn server(&self) -> Result<Server, Failure> {
        Ok(Server::connect(&self.server)?)
    }

    /// A place on the disk, for logs.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.device.directory().join(name)
    }
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
