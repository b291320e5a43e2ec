// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One of the services: its programs and its files.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Certificates, Process};

/// A service by the name of its package. Its files are removed with it.
#[derive(Debug)]
pub struct Service {
    package: &'static str,
    directory: PathBuf,
    certificates: Certificates,
}

impl Service {
    /// Prepares files for it.
    ///
    /// # Panics
    /// Files cannot be written.
    #[must_use]
    pub fn new(package: &'static str, test: &str) -> Self {
        let name = format!("{package}-{test}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let certificates = Certificates::make(&directory);
        Self { package, directory, certificates }
    }

    /// Starts a server there; returns it with its port.
    ///
    /// # Panics
    /// It does not tell its address.
    #[must_use]
    pub fn server(&self, port: u16) -> (Process, u16) {
        let mut command = self.program("server");
        command.args(self.certificates.options("server"));
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--writer", "writer"]);
        command.arg("--hold").arg(self.directory.join("release"));
        let mut server = Process::start(&mut command);
        let line = server.line();
        let address = line.strip_prefix("listening on 127.0.0.1:");
        let port = address.expect(&line).parse().expect("a port is a number");
        (server, port)
    }

    /// Starts a client of this name, whose operations have so many milliseconds.
    #[must_use]
    pub fn client(&self, name: &str, port: u16, deadline_ms: u32) -> Process {
        let mut command = self.program("client");
        command.args(self.certificates.options(name));
        command.args(["--server", &format!("localhost:{port}")]);
        command.args(["--deadline", &deadline_ms.to_string()]);
        Process::start(&mut command)
    }

    /// Lets operations go on that are held.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn release(&self) {
        fs::write(self.directory.join("release"), "").expect("the directory is there");
    }

    /// Programs lie where the test's own does, one directory further up.
    fn program(&self, side: &str) -> Command {
        let own = std::env::current_exe().expect("a test is a program");
        let built = own.ancestors().nth(2).expect("it lies in `deps`");
        Command::new(built.join(format!("{}-{side}", self.package)))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
