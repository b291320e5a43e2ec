// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes of devices and TPMs, ended and removed with their test.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use smt_attestation::{Algorithm, DeviceId, Epoch, Group, Member, StreamId};
use smt_device_client::{Client, Device, DeviceError, SecretNumber};

/// The stream of all tests.
pub(crate) const STREAM: StreamId = StreamId(1);

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

/// Runs `smt-trusted device`.
pub(crate) fn command(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
        .arg("device")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub(crate) fn succeeds(arguments: &[&str], input: &str) -> String {
    let output = command(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a command that fails.
pub(crate) fn fails(arguments: &[&str]) -> String {
    let output = command(arguments, "");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// Runs a device until the test ends it. Returns when it listens.
pub(crate) fn start(directory: &str, options: &[&str]) -> Process {
    let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
        .args(["device", "run", directory])
        .args(options)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("serves at"), "{line}");
    // The device writes on, and nobody reads: too little to fill a pipe.
    child.stderr = Some(lines.into_inner());
    Process(child)
}

pub(crate) fn connect(directory: &str) -> Client {
    Client::connect(&Path::new(directory).join("socket")).unwrap()
}

/// Opens the stream of a group that has one member, the device.
pub(crate) fn open(client: &mut Client, secret: SecretNumber) -> Result<(), DeviceError> {
    let members = [Member { device: client.own().device, epoch: Epoch(1) }];
    let algorithm = Algorithm::HmacSha256;
    client.open(secret, &Group { stream: STREAM, algorithm, quorum: 1, members: &members })
}

/// Opens the stream of a group of devices, in their first epochs.
pub(crate) fn open_group(client: &mut Client, devices: &[u32]) -> Result<(), DeviceError> {
    let member = |device: &u32| Member { device: DeviceId(*device), epoch: Epoch(1) };
    let members: Vec<Member> = devices.iter().map(member).collect();
    let algorithm = Algorithm::HmacSha256;
    let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
    client.open(SecretNumber(5), &group)
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
        let _ = std::fs::remove_file(&socket);
        let child = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"])
            .arg("--tpmstate")
            .arg(format!("dir={}", state.display()))
            .arg("--server")
            .arg(format!("type=unixio,path={socket}"))
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
