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
    let words = ["keys", "client", "alice", "--ca", &directory, "--out", &directory];
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
    smt(&["keys", "client", "alice", "--ca", &directory, "--out", &directory, "--force"]).text();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn show_tells_what_a_certificate_says() {
    let files = Files::new();
    let outcome = smt(&["keys", "show", &files.path("localhost.pem")]);
    let text = outcome.text();
    for words in ["CN=localhost", "localhost, 127.0.0.1", "CN=smt authority", "purposes     server"]
    {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn certificates_of_files_and_directories_are_shown_with_their_expiry() {
    let files = Files::new();
    let (directory, alice) = (files.path(""), files.path("alice.pem"));
    let names = ["::1", "2001:db8::7"];
    let words = ["--ca", &directory, "--out", &directory, "--days", "7"];
    smt(&[&["keys", "server"][..], &names, &words].concat()).text();
    let outcome = smt(&["keys", "show", &alice, &directory]);
    let text = outcome.text();
    for words in [
        "alice.pem\nsubject      CN=alice",
        "ca.pem\nsubject      CN=smt authority",
        "names        ::1, 2001:db8::7\n",
        "expiry       expires in 36",
    ] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    assert_eq!(text.matches("CN=alice").count(), 2, "by its file and its directory");
    assert_eq!(outcome.errors.matches("days; renew it").count(), 1);
}

#[test]
fn certificates_are_objects_for_programs() {
    let files = Files::new();
    let outcome = smt(&["keys", "show", "--json", &files.path("")]);
    let objects = outcome.text().lines();
    let objects: Vec<serde_json::Value> =
        objects.map(|line| serde_json::from_str(line).unwrap()).collect();
    let subjects: Vec<&str> =
        objects.iter().map(|object| object["subject"].as_str().unwrap()).collect();
    assert_eq!((subjects.len(), subjects[0], subjects[2]), (3, "CN=alice", "CN=localhost"));
    let server = &objects[2];
    assert_eq!((&server["schema"], &server["kind"]), (&1.into(), &"certificate".into()));
    assert_eq!(server["names"], serde_json::json!(["localhost", "127.0.0.1"]));
    // Within the second in which it was made, all of its 365 days are left.
    assert!((364..=365).contains(&server["days_left"].as_i64().unwrap()));
    assert_eq!(server["is_authority"], false);
    assert!(server["file"].as_str().unwrap().ends_with("localhost.pem"));
}

#[test]
fn a_check_fails_if_a_certificate_expires_before() {
    let files = Files::new();
    let (directory, server) = (files.path(""), files.path("localhost.pem"));
    smt(&["keys", "show", &server, "--check-days", "364"]).text();
    let outcome = smt(&["keys", "show", &server, "--check-days", "366"]);
    assert_eq!(outcome.status.code(), Some(1));
    for words in
        ["1 of 1 certificates and lists", "366 days", "localhost.pem (CN=localhost) expires in 36"]
    {
        assert!(outcome.errors.contains(words), "{}", outcome.errors);
    }
    let outcome = smt(&["keys", "show", &directory, "--check-days", "1000", "--json"]);
    assert_eq!((outcome.status.code(), outcome.errors.lines().count()), (Some(1), 1));
    assert!(outcome.errors.contains("2 of 3 certificates and lists"), "{}", outcome.errors);
    assert_eq!(outcome.output.iter().filter(|byte| **byte == b'\n').count(), 3);
}

#[test]
fn revocation_lists_are_shown_and_checked_like_certificates() {
    let files = Files::new();
    let (directory, list, alice) = (files.path(""), files.path("ca.crl"), files.path("alice.pem"));
    smt(&["keys", "crl", "--ca", &directory, "--out", &list, &alice]).text();
    let outcome = smt(&["keys", "show", &list]);
    for words in ["list of      CN=smt authority", "revoked      1", "expiry       expires in 1"] {
        assert!(outcome.text().contains(words), "{}", outcome.text());
    }
    assert_eq!(outcome.errors, "", "it is new");
    // A list is to be renewed when two thirds of its own time are over.
    let outcome = smt(&["keys", "show", &directory, "--check-days", "30", "--json"]);
    let objects = outcome.text().lines().map(|line| serde_json::from_str(line).unwrap());
    let lists: Vec<serde_json::Value> =
        objects.filter(|object: &serde_json::Value| object["kind"] == "revocation_list").collect();
    let [object] = &lists[..] else { panic!("{lists:?}") };
    assert_eq!((&object["revoked"], object["file"].as_str()), (&1.into(), Some(list.as_str())));
}

#[test]
fn a_certificate_whose_file_is_gone_is_revoked_by_its_serial_number_and_the_list_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    let (directory, list, alice) = (files.path(""), files.path("ca.crl"), files.path("alice.pem"));
    let crl = |more: &[&str]| {
        smt(&[&["keys", "crl", "--ca", &directory, "--out", &list, "--days", "1"], more].concat())
    };
    let object = |path: &str| -> serde_json::Value {
        serde_json::from_str(smt(&["keys", "show", path, "--json"]).text()).unwrap()
    };
    let serial = object(&alice)["serial"].as_str().unwrap().to_owned();
    assert!(crl(&[]).errors.contains("0 revoked; the next list is due in 1 day\n"));
    fs::set_permissions(&list, fs::Permissions::from_mode(0o640)).unwrap();
    crl(&["--serial", &serial.to_uppercase()]).text();
    assert_eq!(object(&list)["serials"][0]["serial"], serial);
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o640);
    crl(&["--remove", &alice]).text();
    crl(&["--remove-serial", &serial]).fails_with(&[&serial, "is not in", "nothing was written"]);
    crl(&["--serial", &serial]).text();
    crl(&["--remove-serial", &serial]).text();
    assert_eq!(object(&list)["revoked"], 0);
    let own = object(&files.path("ca.pem"))["serial"].as_str().unwrap().to_owned();
    crl(&["--serial", &own]).fails_with(&["the authority's own certificate"]);
    let outcome = crl(&["--serial", "alice"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.errors.contains("a serial number is in hexadecimal"), "{}", outcome.errors);
}

#[test]
fn a_file_that_cannot_be_shown_does_not_hide_the_others() {
    let files = Files::new();
    let (missing, alice) = (files.path("missing.pem"), files.path("alice.pem"));
    let outcome = smt(&["keys", "show", &missing, &alice]);
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.errors.contains("missing.pem"), "{}", outcome.errors);
    assert!(String::from_utf8(outcome.output).unwrap().contains("CN=alice"));
    let empty = files.path("empty");
    fs::create_dir(&empty).unwrap();
    smt(&["keys", "show", &empty]).fails_with(&["no file in", ".pem, .crt, .cer or .crl"]);
}

#[test]
fn days_that_no_certificate_has_are_wrong_usage_without_a_misleading_tip() {
    let files = Files::new();
    let directory = files.path("");
    for days in ["-1", "0", "99999", "ten"] {
        let words = ["keys", "client", "bob", "--ca", &directory, "--out", &directory];
        let outcome = smt(&[&words[..], &["--days", days]].concat());
        assert_eq!(outcome.status.code(), Some(2));
        assert!(outcome.errors.contains("give 1 to 36525 days"), "{}", outcome.errors);
        assert!(!outcome.errors.contains("tip:"), "{}", outcome.errors);
    }
}

#[test]
fn a_file_that_cannot_be_made_or_shown_is_one_clear_line() {
    let files = Files::new();
    let (directory, missing) = (files.path(""), files.path("missing"));
    let server = |name: &str, ca: &str, days: &str| {
        smt(&["keys", "server", name, "--ca", ca, "--out", &directory, "--days", days])
    };
    server("no name!", &directory, "10").fails_with(&["\"no name!\" is no DNS name"]);
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
    let words = ["keys", "server", "ca", "--ca", &directory, "--out", &directory];
    smt(&[&words[..], &["--force"]].concat()).fails_with(&["the authority's own"]);
    assert_eq!(fs::read(files.path("ca.key")).unwrap(), before);
}

#[test]
fn a_public_key_is_shown_by_its_kind_and_the_hash_that_servers_tell() {
    let files = Files::empty();
    let directory = files.path("");
    smt(&["keys", "raw", "db7", "--out", &directory, "--key-kind", "ed25519"]).text();
    let (public, private) = (files.path("db7.pem"), files.path("db7.key"));
    let shown = smt(&["keys", "show", &public]);
    let [first, kind, fingerprint] = shown.text().lines().collect::<Vec<_>>()[..] else {
        panic!("{}", shown.text())
    };
    assert_eq!(first, "public key   without a certificate");
    assert_eq!(kind, "key          Ed25519");
    let hash = fingerprint.strip_prefix("fingerprint  sha256 ").unwrap();
    let object = smt(&["keys", "show", "--json", &directory]);
    let object: serde_json::Value = serde_json::from_str(object.text()).unwrap();
    assert_eq!((&object["schema"], &object["kind"]), (&1.into(), &"public_key".into()));
    assert_eq!((&object["key"], &object["place"]), (&"Ed25519".into(), &0.into()));
    assert_eq!(object["fingerprint_sha256"], hash);
    smt(&["keys", "show", &private]).fails_with(&["no certificate in", "holds 1 PRIVATE KEY"]);
}

#[test]
fn a_post_quantum_key_under_another_authority_is_warned_of() {
    let files = Files::new();
    let (directory, other) = (files.path(""), files.path("other"));
    let words = ["keys", "server", "db7", "--key-kind", "ml-dsa-65", "--out", &directory];
    let outcome = smt(&[&words[..], &["--ca", &directory]].concat());
    outcome.text();
    let told = "the authority's key is ECDSA P-256, which is no post-quantum one: a quantum computer could forge its certificates";
    assert!(outcome.errors.contains(told), "{}", outcome.errors);
    smt(&["keys", "ca", "--out", &other, "--key-kind", "ml-dsa-65"]).text();
    let outcome = smt(&[&words[..], &["--ca", &other, "--force"]].concat());
    outcome.text();
    assert_eq!(outcome.errors, "");
}
