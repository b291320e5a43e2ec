// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keys`: the files that are written, their permissions, and the output.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::program::{Files, smt};

#[test]
fn private_keys_are_for_their_owner_alone() {
    let files = Files::new();
    for name in ["ca", "localhost", "alice"] {
        let mode = |path: String| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(files.path(&format!("{name}.key"))), 0o600, "{name}");
        assert_ne!(mode(files.path(&format!("{name}.pem"))), 0o600, "{name}");
    }
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let files = Files::new();
    let directory = files.path("");
    let before = fs::read(files.path("alice.key")).unwrap();
    let words = [
        "keys", "client", "alice", "--ca", &directory, "--out", &directory,
    ];
    smt(&words).fails_with(&["alice.pem is there already", "--force"]);
    assert_eq!(fs::read(files.path("alice.key")).unwrap(), before);
    let forced = [&words[..], &["--force"]].concat();
    assert!(smt(&forced).text().ends_with("alice.key\n"));
    assert_ne!(fs::read(files.path("alice.key")).unwrap(), before);
}

#[test]
fn a_forced_key_is_for_its_owner_even_if_the_old_file_was_not() {
    let files = Files::new();
    let key = files.path("alice.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let directory = files.path("");
    smt(&[
        "keys", "client", "alice", "--ca", &directory, "--out", &directory, "--force",
    ])
    .text();
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn show_tells_what_a_certificate_says() {
    let files = Files::new();
    let outcome = smt(&["keys", "show", &files.path("localhost.pem")]);
    let text = outcome.text();
    for words in [
        "CN=localhost",
        "localhost, 127.0.0.1",
        "CN=smt authority",
        "purposes     server",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_made_or_shown_is_one_clear_line() {
    let files = Files::new();
    let (directory, missing) = (files.path(""), files.path("missing"));
    let server = |name: &str, ca: &str, days: &str| {
        smt(&[
            "keys", "server", name, "--ca", ca, "--out", &directory, "--days", days,
        ])
    };
    server("no name!", &directory, "10").fails_with(&["\"no name!\" is no DNS name"]);
    server("a.example", &directory, "99999").fails_with(&["must be valid for"]);
    server("a.example", &directory, "3651").fails_with(&["outlive its authority"]);
    server("a.example", &missing, "10").fails_with(&["missing/ca.pem"]);
    smt(&["keys", "show", &files.path("localhost.key")])
        .fails_with(&["no certificate", "1 PRIVATE KEY"]);
    smt(&["keys", "show", &missing]).fails_with(&["missing", "No such file"]);
}

#[test]
fn no_certificate_takes_the_place_of_its_authority() {
    let files = Files::new();
    let directory = files.path("");
    let before = fs::read(files.path("ca.key")).unwrap();
    let words = [
        "keys", "server", "ca", "--ca", &directory, "--out", &directory,
    ];
    smt(&[&words[..], &["--force"]].concat()).fails_with(&["the authority's own"]);
    assert_eq!(fs::read(files.path("ca.key")).unwrap(), before);
}
