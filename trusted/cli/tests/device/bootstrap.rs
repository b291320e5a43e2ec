// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Manufacturer, device and vendor as their users run them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use smt_device_client::Device;

use crate::process::{
    Directory, Process, STREAM, Tpm, connect, fails, open_group, start, succeeds,
};

const SECRET: &str = "5 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

pub(crate) fn trusted(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
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

pub(crate) fn key_of(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("public key ").nth(1).unwrap().trim().to_owned()
}

/// Three roles, and a TPM if there is one.
pub(crate) struct Roles {
    pub(crate) directory: Directory,
    pub(crate) manufacturer: String,
    vendor: String,
    pub(crate) program: String,
}

impl Roles {
    pub(crate) fn new() -> Self {
        let directory = Directory::new();
        let init = |role: &str| key_of(&trusted(&[role, "init", &directory.path(role)], ""));
        let (manufacturer, vendor) = (init("manufacturer"), init("vendor"));
        let program = succeeds(&["measure"], "").trim().to_owned();
        Self { directory, manufacturer, vendor, program }
    }

    pub(crate) fn make(&self, number: &str, tpm: &[&str]) -> String {
        let path = self.directory.path(number);
        succeeds(&[&["init", &path, "--number", number], tpm].concat(), "");
        let maker = self.directory.path("manufacturer");
        let certified = trusted(&[&["manufacturer", "certify", &maker, &path], tpm].concat(), "");
        assert!(certified.status.success(), "{}", String::from_utf8_lossy(&certified.stderr));
        path
    }

    /// The device's process, and where it waits for its vendor.
    pub(crate) fn wait(&self, path: &str, options: &[&str]) -> (Process, String) {
        let command = ["provision", path, "--vendor", &self.vendor];
        Self::listen(&[&command, options].concat(), "waits for its vendor")
    }

    /// A device's process that says that it waits, and where.
    pub(crate) fn listen(arguments: &[&str], says: &str) -> (Process, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_smt-trusted"))
            .arg("device")
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        child.stderr = Some(lines.into_inner());
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(line.contains(says), "{line}");
        (Process(child), address)
    }

    pub(crate) fn provision(&self, address: &str, options: &[&str]) -> Output {
        self.provision_with(address, options, SECRET)
    }

    fn provision_with(&self, address: &str, options: &[&str], secrets: &str) -> Output {
        let vendor = self.directory.path("vendor");
        let arguments = [
            &["vendor", "provision", &vendor, address, "--manufacturer", &self.manufacturer],
            options,
        ];
        trusted(&arguments.concat(), secrets)
    }
}

#[test]
fn a_device_gets_its_groups_secret_from_its_vendor_and_uses_it() {
    let roles = Roles::new();
    let paths = [roles.make("1", &[]), roles.make("2", &[])];
    for (path, number) in paths.iter().zip(["1", "2"]) {
        let (mut process, address) = roles.wait(path, &[]);
        let options = ["--program", &roles.program, "--device", number];
        let key = key_of(&roles.provision(&address, &options));
        assert!(process.0.wait().unwrap().success());
        let _process = start(path, &[]);
        let running = connect(path).public_key();
        assert_eq!(data_encoding::HEXLOWER.encode(&running), key);
    }
    let _processes = paths.each_ref().map(|path| start(path, &[]));
    // The groups were formed before their devices had started a first time.
    let [mut one, mut two] = paths.each_ref().map(|path| connect(path));
    open_group(&mut one, &[1, 2]).unwrap();
    open_group(&mut two, &[1, 2]).unwrap();
    let attestation = one.attest(STREAM, b"message").unwrap();
    two.check(STREAM, &attestation, b"message").unwrap();
}

#[test]
fn a_vendor_gives_nothing_to_another_program() {
    let roles = Roles::new();
    let path = roles.make("1", &[]);
    let (_process, address) = roles.wait(&path, &[]);
    let other = "00".repeat(32);
    let output = roles.provision(&address, &["--program", &other, "--device", "1"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("not published"), "{text}");
}

#[test]
fn a_device_sends_another_vendor_away_and_takes_its_own() {
    let roles = Roles::new();
    let path = roles.make("1", &[]);
    let (mut process, address) = roles.wait(&path, &[]);
    let stranger = roles.directory.path("stranger");
    key_of(&trusted(&["vendor", "init", &stranger], ""));
    let maker = &roles.manufacturer;
    let options = ["--manufacturer", maker, "--program", &roles.program, "--device", "1"];
    let arguments = [&["vendor", "provision", &stranger, &address], &options[..]].concat();
    assert!(!trusted(&arguments, SECRET).status.success());
    key_of(&roles.provision(&address, &options[2..]));
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn a_device_takes_the_same_secrets_again_and_no_other_one_in_their_place() {
    let roles = Roles::new();
    let path = roles.make("1", &[]);
    let options = ["--program", &roles.program, "--device", "1"];
    for _ in 0..2 {
        let (mut process, address) = roles.wait(&path, &[]);
        key_of(&roles.provision(&address, &options));
        assert!(process.0.wait().unwrap().success());
    }
    let (mut process, address) = roles.wait(&path, &[]);
    let both = format!("6 {}\n{}", "77".repeat(32), SECRET.replace("0001", "0002"));
    let refused = roles.provision_with(&address, &options, &both);
    let ended = process.0.wait().unwrap();
    assert!(!refused.status.success() && !ended.success());
    // Number 6 was in the same configuration: it may still be given.
    let six = format!("6 {}\n", "88".repeat(32));
    let (mut process, address) = roles.wait(&path, &[]);
    key_of(&roles.provision_with(&address, &options, &six));
    assert!(process.0.wait().unwrap().success());
}

#[test]
fn a_device_that_nobody_certified_does_not_wait() {
    let roles = Roles::new();
    let path = roles.directory.path("1");
    succeeds(&["init", &path, "--number", "1"], "");
    let text = fails(&["provision", &path, "--listen", "127.0.0.1:0", "--vendor", &roles.vendor]);
    assert!(text.contains("your request") && text.contains("no certificate"), "{text}");
}

/// A device with a TPM, provisioned with these options; the vendor's output.
fn with_tpm(roles: &Roles, tpm: &Tpm, path: &str, options: &[&str]) -> Output {
    let (_process, address) = roles.wait(path, &["--tpm", &tpm.socket]);
    let needs = ["--program", &roles.program, "--device", "1", "--tpm"];
    roles.provision(&address, &[&needs, options].concat())
}

pub(crate) fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_vendor_takes_a_device_with_its_certified_tpm_and_no_other() {
    let roles = Roles::new();
    let Some(tpm) = Tpm::start(&roles.directory.0.join("tpm")) else {
        return;
    };
    let path = roles.make("1", &["--tpm", &tpm.socket]);
    let output = with_tpm(&roles, &tpm, &path, &[]);
    key_of(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let registers = text.split("registers ").nth(1).unwrap().split('\n').next().unwrap();
    // The same registers again, and then another boot.
    key_of(&with_tpm(&roles, &tpm, &path, &["--registers", registers]));
    let other = "00".repeat(32);
    let text = refusal(&with_tpm(&roles, &tpm, &path, &["--registers", &other]));
    assert!(text.contains("its registers have another digest"), "{text}");
    // A device without a TPM is refused.
    let plain = roles.make("2", &[]);
    let (_process, address) = roles.wait(&plain, &[]);
    let options = ["--program", &roles.program, "--device", "2", "--tpm"];
    let text = refusal(&roles.provision(&address, &options));
    assert!(text.contains("quote"), "{text}");
    // The certificate of one device in the hands of another one, which has a TPM of its own.
    let foreign = Tpm::start(&roles.directory.0.join("other-tpm")).unwrap();
    let copied = roles.make("3", &["--tpm", &foreign.socket]);
    let certificate = |path: &str| std::path::Path::new(path).join("certificate");
    std::fs::copy(certificate(&path), certificate(&copied)).unwrap();
    let text = refusal(&with_tpm(&roles, &foreign, &copied, &[]));
    assert!(text.contains("has not signed this measurement"), "{text}");
}
