// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rights and secrets that the device keeps from its host. These tests need root, whom they let
//! look.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use smt_device_client::{Device, SecretNumber};

use crate::process::{Directory, Process, STREAM, connect, open, start, succeeds};

/// Nothing like it is in any other place.
const SECRET: &str = "9f3b6c01d7e84a52b0c95e7f126d38a4f1c27b9e0853d64a7be0129fc3a5d786";

/// A device of the user `nobody` in use, or nothing if root does not run the test.
fn device_of_nobody(directory: &Directory) -> Option<(String, Process)> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| {
        use std::os::unix::fs::MetadataExt;
        it.uid() == 0
    });
    if !is_root {
        eprintln!("left out: root alone can become another user");
        return None;
    }
    let path = directory.path("device");
    succeeds(&["init", &path, "--number", "1", "--user", "nobody"], "");
    succeeds(&["add-secret", &path, "5", "--user", "nobody"], SECRET);
    let process = start(&path, &["--user", "nobody", "--clients", "root"]);
    Some((path, process))
}

fn status_of(process: &Process) -> String {
    std::fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap()
}

#[test]
fn the_process_gives_up_what_it_does_not_need() {
    let directory = Directory::new();
    let Some((path, process)) = device_of_nobody(&directory) else {
        return;
    };
    // It serves with what is left.
    let mut client = connect(&path);
    open(&mut client, SecretNumber(5)).unwrap();
    client.attest(STREAM, b"message").unwrap();
    let status = status_of(&process);
    let line = |name: &str| {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Uid:"), "65534 65534 65534 65534");
    assert_eq!(line("Groups:"), "");
    assert_eq!(line("CapEff:"), "0000000000000000");
    assert_eq!(line("NoNewPrivs:"), "1");
    // 2 is a filter.
    assert_eq!(line("Seccomp:"), "2");
}

#[test]
fn a_process_of_the_same_user_cannot_look_into_the_device() {
    let directory = Directory::new();
    let Some((_, process)) = device_of_nobody(&directory) else {
        return;
    };
    let read = |name: &str| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "head", "-c1"])
            .arg(format!("/proc/{}/{name}", process.0.id()))
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(!read("environ"));
    assert!(!read("mem"));
    // It is no mistake of the command: all may read this one.
    assert!(read("status"));
}

#[test]
fn root_finds_no_key_in_the_memory_of_the_device() {
    let directory = Directory::new();
    let Some((path, process)) = device_of_nobody(&directory) else {
        return;
    };
    let mut client = connect(&path);
    open(&mut client, SecretNumber(5)).unwrap();
    let marker = b"a message that is no secret and is found";
    client.attest(STREAM, marker).unwrap();
    client.sign(STREAM, 1, marker).unwrap();
    let keys = std::fs::read(directory.0.join("device/keys")).unwrap();
    let root = &keys[21..53];
    let derived = |purpose: &[u8; 16]| {
        let hmac = <Hmac<Sha256> as KeyInit>::new_from_slice(root).unwrap();
        hmac.chain_update(purpose).finalize().into_bytes().to_vec()
    };
    let secrets = [
        ("the root secret", root.to_vec()),
        ("the signing key", derived(b"SMT device sign ")),
        ("the own secret", derived(b"SMT device own  ")),
        ("the key of the file", derived(b"SMT device state")),
        ("the group's secret", data_encoding::HEXLOWER.decode(SECRET.as_bytes()).unwrap()),
    ];
    let memory = memory_of(&process);
    // The search works: it finds what is there.
    assert!(is_in(&memory, marker), "the message is not found");
    for (name, secret) in secrets {
        // Half of a key is too much already.
        assert!(!is_in(&memory, &secret[..16]), "{name} is found");
        assert!(!is_in(&memory, &secret[16..]), "{name} is found");
    }
}

/// All pages of a process that root can read.
fn memory_of(process: &Process) -> Vec<Vec<u8>> {
    let id = process.0.id();
    let maps = std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap();
    let memory = File::open(format!("/proc/{id}/mem")).unwrap();
    let region = |line: &str| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|it| u64::from_str_radix(it, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        memory.read_exact_at(&mut bytes, start).ok().map(|()| bytes)
    };
    maps.lines().filter_map(region).collect()
}

fn is_in(memory: &[Vec<u8>], wanted: &[u8]) -> bool {
    memory.iter().any(|region| region.windows(wanted.len()).any(|it| it == wanted))
}
