// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TPMs in software, and directories, ended and removed with their test.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory, removed at the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-device-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        // Other users may pass through.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that ends with its test.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A TPM in software, with its state in a directory.
pub(crate) struct Tpm {
    _process: Process,
    pub(crate) socket: String,
}

impl Tpm {
    /// Starts one, or says that there is none on this machine.
    pub(crate) fn start(state: &Path) -> Option<Self> {
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
            eprintln!("left out: there is no swtpm (Debian's package swtpm)");
            return None;
        };
        let process = Process(child);
        // It has bound its socket before it listens, and takes one connection after another.
        while UnixStream::connect(&socket).is_err() {
            std::thread::yield_now();
        }
        Some(Self { _process: process, socket })
    }
}
