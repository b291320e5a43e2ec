// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A vendor that looks at what the device's host has booted, with a TPM that was extended.

use std::process::Command;

use data_encoding::HEXLOWER;
use smt_test_machine::Firmware;

use crate::bootstrap::{Roles, refusal, trusted};
use crate::process::{Tpm, left_out};

/// Extends the TPM's registers as firmware does. Nothing if there are no tpm2-tools.
fn extend(tpm: &Tpm, firmware: &Firmware) -> Option<()> {
    for (register, digest) in &firmware.extended {
        let extended = Command::new("tpm2_pcrextend")
            .args(["-T", &format!("swtpm:path={}", tpm.socket)])
            .arg(format!("{register}:sha256={}", HEXLOWER.encode(digest)))
            .output();
        let Ok(output) = extended else {
            left_out("tpm2_pcrextend", "tpm2-tools");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Some(())
}

#[test]
fn a_vendor_takes_a_device_whose_host_booted_what_it_accepts() {
    let roles = Roles::new();
    let booted = Firmware::boot([2; 32]);
    let Some(tpm) = Tpm::start(&roles.directory.0.join("tpm")) else {
        return;
    };
    if extend(&tpm, &booted).is_none() {
        return;
    }
    let path = roles.make("1", &["--tpm", &tpm.socket]);
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(roles.directory.path(name), bytes).unwrap();
        roles.directory.path(name)
    };
    let log = write("log", &booted.log);
    let lines = trusted(&["device", "events", &log], "").stdout;
    let (head, events) = std::str::from_utf8(&lines).unwrap().split_once('\n').unwrap();
    assert_eq!(events.lines().count(), 3);
    let accepted = write("accepted", &lines);
    let provision = |log: &[&str], accepted: &str| {
        let (_process, address) = roles.wait(&path, &[&["--tpm", &tpm.socket], log].concat());
        let options = ["--program", &roles.program, "--device", "1", "--events", accepted];
        roles.provision(&address, &options)
    };
    let output = provision(&["--event-log", &log], &accepted);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The TPM has quoted what the log leads to.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(head.strip_prefix("# ").unwrap()), "{head}: {text}");
    // The host tells of the accepted loader, and has booted another one.
    let told = write("told", &Firmware::boot([9; 32]).log);
    let lines = trusted(&["device", "events", &told], "").stdout;
    let other = write("other", &lines);
    let text = refusal(&provision(&["--event-log", &told], &other));
    assert!(text.contains("other registers than the TPM has quoted"), "{text}");
    // It tells the truth, which is not accepted.
    let text = refusal(&provision(&["--event-log", &log], &other));
    assert!(text.contains("4 EV_EFI_BOOT_SERVICES_APPLICATION 0202"), "{text}");
    // It tells nothing.
    let text = refusal(&provision(&[], &accepted));
    assert!(text.contains("there is no log of events"), "{text}");
}
