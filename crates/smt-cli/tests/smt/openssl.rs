// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates and keys as openssl makes them: each works, or the text says which option of
//! openssl makes one that does. The files are those of `openssl_files/make`.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;

use crate::program::{Files, Serving, smt};

/// A server with the certificate and key of these names, and its files.
fn serving(certificate: &str, key: &str) -> (Files, Serving) {
    let files = Files::empty();
    files.write("localhost.pem", read(certificate));
    files.write("localhost.key", read(key));
    let serving = Serving::start(&files, &["--echo"]);
    (files, serving)
}

fn path(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smt/openssl_files");
    directory.join(name).to_str().unwrap().to_owned()
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

#[test]
fn the_certificate_of_every_tutorial_is_told_how_to_work() {
    let (_files, serving) = serving("authority.pem", "authority.key");
    let (address, certificate) = (serving.address(), path("authority.pem"));
    let outcome = smt(&["call", address, "--ca", &certificate]);
    outcome.fails(
        3,
        &[
            "is that of an authority (CA:TRUE), as `openssl req -x509` makes it",
            "pin it (--pin in the place of --ca",
            "-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME",
        ],
    );
    assert!(!outcome.errors.contains("Other("), "{}", outcome.errors);
    // The first advice is right.
    assert_eq!(smt(&["call", address, "--pin", &certificate]).text(), "");
}

#[test]
fn a_self_signed_certificate_that_is_no_authoritys_is_believed() {
    let (_files, serving) = serving("self-signed.pem", "self-signed.key");
    let certificate = path("self-signed.pem");
    for option in ["--ca", "--pin"] {
        smt(&["call", serving.address(), option, &certificate]).text();
    }
}

#[test]
fn a_common_name_is_told_to_be_no_name() {
    let (_files, serving) = serving("common-name.pem", "common-name.key");
    smt(&["call", serving.address(), "--ca", &path("common-name.pem")])
        .fails(3, &["no name at all (subjectAltName; its common name does not count)"]);
}

#[test]
fn a_certificate_that_an_authority_of_openssl_has_signed_is_believed() {
    let (_files, serving) = serving("signed.pem", "signed.key");
    let (address, authority) = (serving.address(), path("authority.pem"));
    smt(&["call", address, "--ca", &authority]).text();
    let more = ["--ca", &authority, "--name", "db7"];
    smt(&[&["call", address][..], &more].concat()).fails(
        3,
        &["by the name \"db7\", but its certificate is for \"localhost\", 127.0.0.1, ::1;"],
    );
}

#[test]
fn a_certificate_without_extensions_is_told_the_missing_option() {
    let (certificate, key) = (path("version-1.pem"), path("signed.key"));
    let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &certificate];
    smt(&[&words[..], &["--key", &key]].concat()).fails_with(&[
        "version-1.pem cannot be used: it has version 1",
        "`-extfile FILE`",
        "subjectAltName=DNS:NAME",
    ]);
}

#[test]
fn a_certificate_of_a_client_is_told_to_be_no_servers() {
    let (_files, serving) = serving("for-clients.pem", "signed.key");
    smt(&["call", serving.address(), "--ca", &path("authority.pem")]).fails(
        3,
        &[
            "is not made for a server, but for clients",
            "smt keys server",
            "extendedKeyUsage=serverAuth",
        ],
    );
}

#[test]
fn a_client_that_shows_an_authoritys_certificate_is_told() {
    let files = Files::new();
    let authority = path("authority.pem");
    let serving = Serving::start(&files, &["--echo", "--client-ca", &authority, "-v"]);
    let key = path("authority.key");
    let more = ["--cert", &authority, "--key", &key];
    files.run_call(serving.address(), &more, b"").fails(3, &["CA:TRUE", "`smt keys show` tells"]);
}

#[test]
fn an_encrypted_key_is_opened_by_the_passphrase_in_a_file() {
    for key in ["encrypted.key", "encrypted-scrypt.key"] {
        let files = Files::empty();
        files.write("localhost.pem", read("signed.pem"));
        files.write("localhost.key", read(key));
        let passphrase = files.write("passphrase", "open sesame\n");
        let more = ["--echo", "--passphrase-file", &passphrase];
        let serving = Serving::start(&files, &more);
        smt(&["call", serving.address(), "--ca", &path("authority.pem")]).text();
    }
}

#[test]
fn a_client_opens_its_key_too() {
    let files = Files::new();
    let (authority, passphrase) = (path("authority.pem"), files.write("p", "open sesame"));
    let serving = Serving::start(&files, &["--echo", "--client-ca", &authority]);
    let (cert, key) = (path("for-clients.pem"), path("encrypted.key"));
    let more = ["--cert", &cert, "--key", &key, "--passphrase-file", &passphrase];
    let outcome = files.run_call(serving.address(), &more, b"hi");
    assert_eq!(outcome.text(), "hi");
}

#[test]
fn an_encrypted_authority_signs() {
    let files = Files::new();
    let authority = files.path("authority");
    files.write("authority/ca.pem", read("authority.pem"));
    let key = files.write("authority/ca.key", read("authority.key"));
    let sign = |more: &[&str]| {
        let words = ["keys", "client", "bob", "--ca", &authority, "--out", &authority];
        smt(&[&words[..], more].concat())
    };
    sign(&[]).text();
    std::fs::write(&key, read("encrypted.key")).unwrap();
    let passphrase = files.write("p", "open sesame");
    // It is another's, which proves that it was opened.
    sign(&["--force", "--passphrase-file", &passphrase]).fails_with(&["does not belong"]);
}

#[test]
fn an_encrypted_key_that_is_not_opened_is_told_why() {
    let files = Files::empty();
    let certificate = path("signed.pem");
    let right = files.write("right", "open sesame");
    let wrong = files.write("wrong", "open barley");
    let (empty, missing) = (files.write("empty", "\n"), files.path("missing"));
    let serve = |key: &str, passphrase: &str| {
        let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &certificate];
        let more = ["--key", key, "--passphrase-file", passphrase];
        smt(&[&words[..], &more].concat())
    };
    let encrypted = path("encrypted.key");
    serve(&encrypted, &wrong).fails_with(&["the passphrase does not open", "encrypted.key"]);
    serve(&encrypted, &empty).fails_with(&["empty", "no passphrase is"]);
    serve(&encrypted, &missing).fails_with(&["missing", "No such file"]);
    serve(&path("encrypted-3des.key"), &right)
        .fails_with(&["in a form that is not read here (PKCS#12's 3DES)", "`openssl pkey -in "]);
    serve(&path("encrypted-traditional.key"), &right)
        .fails_with(&["traditional form (DEK-Info)", "convert it: `openssl pkcs8 -topk8 -in "]);
}

#[test]
fn a_passphrase_is_asked_on_the_terminal_without_showing_it() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let (mut terminal, end) = terminal();
    let mut call =
        in_session(&["--ctty"], &serving, &files).stdin(end.try_clone().unwrap()).spawn().unwrap();
    // Before it is silent, the terminal would show what is typed.
    while is_shown(&end) && call.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    terminal.write_all(b"open barley\n").unwrap();
    let output = call.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("the passphrase does not open"), "{errors}");
    let mut shown = [0; 1_000];
    let length = terminal.read(&mut shown).unwrap();
    let shown = String::from_utf8_lossy(&shown[..length]).into_owned();
    assert!(shown.contains("passphrase of ") && shown.contains("encrypted.key: "));
    assert!(!shown.contains("barley"), "{shown}");
    assert!(is_shown(&end), "the terminal is as it was");
}

#[test]
fn an_encrypted_key_without_a_terminal_is_told_to_need_a_passphrase() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let mut call = in_session(&[], &serving, &files);
    let output = call.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.lines().count()), (Some(1), 1));
    for words in ["encrypted.key is encrypted", "--passphrase-file"] {
        assert!(errors.contains(words), "{errors}");
    }
}

/// `smt call` with an encrypted key, in a session of its own.
fn in_session(options: &[&str], serving: &Serving, files: &Files) -> Command {
    let mut command = Command::new("setsid");
    command.arg("--wait").args(options);
    command.arg(env!("CARGO_BIN_EXE_smt"));
    command.args(["call", serving.address(), "--ca", &files.path("ca.pem")]);
    command.args(["--cert", &path("for-clients.pem"), "--key", &path("encrypted.key")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The two ends of a new terminal: the person's, and the program's.
fn terminal() -> (File, File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty());
    (File::from(person), File::from(program.unwrap()))
}

fn is_shown(terminal: &File) -> bool {
    let modes = rustix::termios::tcgetattr(terminal).unwrap().local_modes;
    modes.contains(rustix::termios::LocalModes::ECHO)
}
