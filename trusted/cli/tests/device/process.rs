// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes of devices, ended with their test.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use smt_attestation::{Algorithm, DeviceId, Epoch, Group, Member, StreamId};
use smt_device_client::{Client, Device, DeviceError, SecretNumber};

pub(crate) use smt_test_machine::{Directory, Process, Tpm, left_out};

/// The stream of all tests.
pub(crate) const STREAM: StreamId = StreamId(1);

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
