// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A manufacturer that certifies a device from afar, as its users run it: a TPM in software has a
//! certificate of the authority that swtpm's own tools make.

use std::io::Read;
use std::process::{Command, Output};

use smt_device::tpm::{Transport, endorsement_certificate};

use crate::bootstrap::{Roles, key_of, refusal, trusted};
use crate::process::{Process, Tpm, left_out, succeeds};

/// Makes an authority, and the state of a TPM that it has certified; the authority's certificate.
/// Nothing if there are no tools.
fn endorse(roles: &Roles, name: &str) -> Option<String> {
    let place = roles.directory.path(name);
    std::fs::create_dir(&place).unwrap();
    let write = |file: &str, text: &str| std::fs::write(format!("{place}/{file}"), text).unwrap();
    let keys =
        ["signingkey", "issuercert", "certserial"].map(|it| format!("{it} = {place}/{it}\n"));
    write("authority.conf", &format!("statedir = {place}\n{}", keys.concat()));
    write("options", "");
    write(
        "setup.conf",
        &format!(
            "create_certs_tool=swtpm_localca\n\
             create_certs_tool_config={place}/authority.conf\n\
             create_certs_tool_options={place}/options\n"
        ),
    );
    let made = Command::new("swtpm_setup")
        .args(["--tpm2", "--create-ek-cert", "--tpmstate", &place])
        .args(["--config", &format!("{place}/setup.conf")])
        .output();
    let Ok(output) = made else {
        left_out("swtpm_setup", "swtpm-tools");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Some(format!("{place}/issuercert"))
}

/// The device's process, and where it waits for its manufacturer.
fn apply(roles: &Roles, path: &str, tpm: &Tpm, options: &[&str]) -> (Process, String) {
    let command = ["apply", path, "--manufacturer", &roles.manufacturer, "--tpm", &tpm.socket];
    Roles::listen(&[&command, options].concat(), "waits for its manufacturer")
}

fn certify(roles: &Roles, address: &str, options: &[&str]) -> Output {
    let maker = roles.directory.path("manufacturer");
    let command = ["manufacturer", "certify-remote", &maker, address, "--device", "1"];
    trusted(&[&command, options].concat(), "")
}

#[test]
fn a_manufacturer_certifies_a_device_from_afar_by_its_tpm_and_a_vendor_takes_it() {
    let roles = Roles::new();
    let (Some(ours), Some(theirs)) = (endorse(&roles, "ours"), endorse(&roles, "theirs")) else {
        return;
    };
    let tpm = Tpm::start(&roles.directory.0.join("ours")).unwrap();
    let path = roles.directory.path("1");
    succeeds(&["init", &path, "--number", "1", "--tpm", &tpm.socket], "");
    let (mut process, address) = apply(&roles, &path, &tpm, &[]);
    // Each refusal leaves the device waiting, and nothing certified.
    let zeros = "00".repeat(32);
    for (options, said) in [
        (&["--authority", &theirs][..], "does not lead to the authorities"),
        (&["--authority", &ours, "--endorsement", &zeros], "another TPM than the one"),
    ] {
        let text = refusal(&certify(&roles, &address, options));
        assert!(text.contains(said), "{text}");
    }
    let certificate = std::path::Path::new(&path).join("certificate");
    assert!(!certificate.exists());
    let output = certify(&roles, &address, &["--authority", &ours]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(process.0.wait().unwrap().success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let endorsement = text.split("endorsement ").nth(1).unwrap().split('\n').next().unwrap();
    // The digest that was printed takes this TPM again.
    let (mut process, address) = apply(&roles, &path, &tpm, &[]);
    let again = certify(&roles, &address, &["--authority", &ours, "--endorsement", endorsement]);
    assert!(again.status.success() && process.0.wait().unwrap().success());
    // The certificate is one that vendors take.
    let (_process, address) = roles.wait(&path, &["--tpm", &tpm.socket]);
    let options = ["--program", &roles.program, "--device", "1", "--tpm"];
    key_of(&roles.provision(&address, &options));
}

#[test]
fn a_device_with_the_certificate_of_another_tpm_is_not_certified() {
    let roles = Roles::new();
    let (Some(_), Some(theirs)) = (endorse(&roles, "ours"), endorse(&roles, "theirs")) else {
        return;
    };
    let [ours, other] = ["ours", "theirs"].map(|it| Tpm::start(&roles.directory.0.join(it)));
    let (ours, other) = (ours.unwrap(), other.unwrap());
    let stolen = roles.directory.path("stolen");
    let mut way = Transport::open(&other.socket).unwrap();
    let (_, certificate) = endorsement_certificate(&mut way).unwrap().unwrap();
    std::fs::write(&stolen, certificate).unwrap();
    let path = roles.directory.path("1");
    succeeds(&["init", &path, "--number", "1", "--tpm", &ours.socket], "");
    let shown = ["--endorsement-certificate", &stolen];
    let (mut process, address) = apply(&roles, &path, &ours, &shown);
    refusal(&certify(&roles, &address, &["--authority", &theirs]));
    let mut text = String::new();
    process.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!process.0.wait().unwrap().success());
    assert!(text.contains("the TPM refuses TPM2_ActivateCredential"), "{text}");
    assert!(!std::path::Path::new(&path).join("certificate").exists());
}

#[test]
fn a_device_whose_tpm_has_no_certificate_does_not_wait() {
    let roles = Roles::new();
    let Some(tpm) = Tpm::start(&roles.directory.0.join("tpm")) else {
        return;
    };
    let path = roles.directory.path("1");
    succeeds(&["init", &path, "--number", "1", "--tpm", &tpm.socket], "");
    let maker = &roles.manufacturer;
    let options = ["apply", &path, "--listen", "127.0.0.1:0", "--manufacturer", maker, "--tpm"];
    let text = crate::process::fails(&[&options[..], &[&tpm.socket]].concat());
    assert!(text.contains("has no certificate of an endorsement key"), "{text}");
}
