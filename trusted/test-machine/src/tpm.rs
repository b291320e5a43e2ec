// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TPMs in software, ended with their test.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says that a test is left out for want of a program. Where `SMT_HAS_TPM` says that the programs
/// of TPMs are there, that is a failure.
pub fn left_out(program: &str, package: &str) {
    let why = format!("left out: there is no {program} (Debian's package {package})");
    assert!(std::env::var_os("SMT_HAS_TPM").is_none(), "{why}");
    eprintln!("{why}");
}

/// A child that ends with its test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A TPM in software, with its state in a directory.
pub struct Tpm {
    _process: Process,
    /// The path of its socket.
    pub socket: String,
}

impl Tpm {
    /// Starts one, or says that there is none on this machine.
    #[must_use]
    pub fn start(state: &Path) -> Option<Self> {
        std::fs::create_dir_all(state).unwrap();
        let socket = state.join("socket").to_str().unwrap().to_owned();
        for old in [&socket, &format!("{socket}.ctrl")] {
            let _ = std::fs::remove_file(old);
        }
        let child = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"])
            .arg("--tpmstate")
            .arg(format!("dir={}", state.display()))
            .arg("--server")
            .arg(format!("type=unixio,path={socket}"))
            // The programs of tpm2-tools want this second socket beside the first one.
            .arg("--ctrl")
            .arg(format!("type=unixio,path={socket}.ctrl"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            left_out("swtpm", "swtpm");
            return None;
        };
        let mut process = Process(child);
        // It has bound its socket before it listens, and takes one connection after another.
        while UnixStream::connect(&socket).is_err() {
            let ended = process.0.try_wait().unwrap();
            assert!(ended.is_none(), "swtpm has ended before it listened: {ended:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(Self { _process: process, socket })
    }
}
