// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever goes wrong is one clear line, and an exit code that tells what has become of the
//! request; wrong usage is exit code 2.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use smt::pki::{CertificateAuthority, CertificatePlan, KeyKind, Validity};

use crate::program::{Files, Serving, command, smt};

/// Runs until its server is gone, and says when it has begun.
const FOR_EVER: [&str; 5] =
    ["--anyone", "--exec", "sh", "-c", "echo begun >&2; exec tail --pid=$PPID -f /dev/null"];

#[test]
fn wrong_usage_is_exit_code_2() {
    for words in [
        &[][..],
        &["bake"],
        &["call"],
        &["call", "localhost"],
        &["call", "localhost", "--ca", "a", "--pin", "b"],
        &["call", "localhost", "--ca", "a", "--cert", "b"],
        &["call", "localhost", "--ca", "a", "--deadline", "5"],
        &["call", "localhost", "--ca", "a", "--count", "0"],
        &["serve", "--cert", "a", "--key", "b"],
        &["serve", "--cert", "a", "--key", "b", "--echo", "--dir", "c"],
        &["serve", "--cert", "a", "--key", "b", "--echo", "--message-limit", "much"],
        &["serve", "--cert", "a", "--key", "b", "--echo", "--shards", "3"],
        &["call", "localhost", "--ca", "a", "--ip-protocol", "200"],
        // UDP's own number.
        &["call", "localhost", "--ca", "a", "--carrier", "native", "--ip-protocol", "17"],
        &["perf", "loopback", "--sizes", "1X"],
        &["perf", "loopback", "--sizes", "8589934592G"],
        &["dump", "file", "--out", "directory"],
        &["-q", "-v", "doctor"],
    ] {
        let outcome = smt(words);
        assert_eq!(outcome.status.code(), Some(2), "{words:?}: {}", outcome.errors);
        assert!(outcome.output.is_empty(), "{words:?}");
    }
}

#[test]
fn a_word_that_is_empty_or_has_a_blank_is_wrong_usage() {
    let call = ["call", "localhost", "--ca", "a"];
    for name in ["", "a b", "\u{e9}"] {
        let outcome = smt(&[&call[..], &["--name", name]].concat());
        assert_eq!(outcome.status.code(), Some(2), "{name:?}: {}", outcome.errors);
        let told = "'--name <NAME>': give a DNS name, an IP address or a SPIFFE ID";
        assert!(outcome.errors.contains(told), "{}", outcome.errors);
    }
    let files = Files::new();
    for (address, reason) in [("", "it is empty"), ("a b", "it has a blank")] {
        let outcome = files.run_call(address, &[], b"hi");
        outcome.fails(2, &["caller: invalid address", reason, "give HOST, HOST:PORT"]);
    }
}

#[test]
fn a_long_word_is_not_repeated_whole() {
    let long = "x".repeat(5_000);
    let (value, name, option) = (format!("a b={long}"), format!("{long}=a"), format!("--{long}"));
    let address = format!("{long}:1");
    let call = ["call", "localhost", "--ca", "a"];
    let files = Files::new();
    for outcome in [
        smt(&[&call[..], &["--metadata", &value]].concat()),
        smt(&[&call[..], &["--metadata", &name]].concat()),
        smt(&[&call[..], &[&option]].concat()),
        smt(&[&long]),
        smt(&[&call[..], &["--deadline", &long]].concat()),
        files.run_call(&address, &[], b"hi"),
    ] {
        assert_eq!(outcome.status.code(), Some(2), "{}", outcome.errors);
        assert!(outcome.errors.contains("xxx..."), "{}", outcome.errors);
        assert!(outcome.errors.len() < 500, "{}", outcome.errors);
    }
}

#[test]
fn a_client_without_udp_that_hears_nothing_is_told_of_its_carrier() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let more = ["--carrier", "native", "--deadline", "200ms"];
    let outcome = files.run_call(serving.address(), &more, b"hi");
    // Raw sockets are not for every user.
    if outcome.status.code() != Some(1) {
        outcome.fails(6, &["such as --carrier native --ip-protocol 253"]);
    }
}

#[test]
fn an_authority_that_did_not_sign_is_said() {
    let (files, others) = (Files::new(), Files::new());
    let serving = Serving::start(&files, &["--echo"]);
    others.run_call(serving.address(), &[], b"hi").fails(3, &[serving.address(), "issuer"]);
}

#[test]
fn a_certificate_that_is_not_the_pinned_one_is_said() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let other = files.path("alice.pem");
    smt(&["call", serving.address(), "--pin", &other])
        .fails(3, &[serving.address(), "certificate"]);
}

#[test]
fn an_expired_certificate_is_said() {
    let files = Files::new();
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let authority =
        CertificateAuthority::new("root", Validity::days(9).unwrap(), KeyKind::default()).unwrap();
    let mut plan = CertificatePlan::server(&["127.0.0.1"]).unwrap();
    plan.validity = Validity::between(now - 3 * day, now - day).unwrap();
    let issued = authority.issue(&plan).unwrap();
    files.write("ca.pem", authority.certificate_pem());
    files.write("localhost.pem", &issued.certificate_pem);
    files.write("localhost.key", issued.key_pem.as_bytes());
    let mut serving = Serving::start(&files, &["--echo"]);
    let warning = serving.next_words();
    assert!(warning.contains("expired 1 day ago"), "{warning}");
    files.run_call(serving.address(), &[], b"hi").fails(3, &["expired"]);
}

#[test]
fn a_certificate_that_is_not_valid_yet_is_told_at_the_start() {
    let files = Files::new();
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let authority =
        CertificateAuthority::new("root", Validity::days(9).unwrap(), KeyKind::default()).unwrap();
    let mut plan = CertificatePlan::server(&["127.0.0.1"]).unwrap();
    plan.validity = Validity::between(now + day, now + 3 * day).unwrap();
    let issued = authority.issue(&plan).unwrap();
    files.write("ca.pem", authority.certificate_pem());
    files.write("localhost.pem", &issued.certificate_pem);
    files.write("localhost.key", issued.key_pem.as_bytes());
    let mut serving = Serving::start(&files, &["--echo"]);
    let warning = serving.next_words();
    assert!(warning.contains("is not valid for another 2"), "{warning}");
    let outcome = files.run_call(serving.address(), &[], b"hi");
    outcome.fails(3, &["not yet valid"]);
}

#[test]
fn a_private_key_that_others_may_read_is_told_at_the_start() {
    let files = Files::new();
    let key = files.path("localhost.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let mut serving = Serving::start(&files, &["--echo"]);
    let warning = serving.next_words();
    assert!(warning.contains(&key) && warning.contains("mode 644"), "{warning}");
}

#[test]
fn a_second_server_with_one_state_file_does_not_start() {
    let files = Files::new();
    let state = files.path("state");
    let _serving = Serving::start(&files, &["--echo", "--state", &state]);
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &cert, "--key", &key];
    smt(&[&words[..], &["--state", &state]].concat()).fails_with(&[&state]);
}

/// `openssl req -x509` makes them so.
#[test]
fn a_certificate_of_an_authority_in_the_place_of_a_servers_is_said() {
    let files = Files::new();
    for end in ["pem", "key"] {
        let (from, to) = (format!("ca.{end}"), format!("localhost.{end}"));
        fs::copy(files.path(&from), files.path(&to)).unwrap();
    }
    let mut serving = Serving::start(&files, &["--echo"]);
    let warning = serving.next_words();
    assert!(warning.contains("is that of an authority"), "{warning}");
    let outcome = files.run_call(serving.address(), &[], b"hi");
    outcome.fails(3, &["is that of an authority", "pin it"]);
    let pinned = files.path("localhost.pem");
    let words = ["call", serving.address(), "--pin", &pinned];
    assert!(smt(&words).status.success());
}

/// `openssl x509 -req` makes them so without -extfile.
#[test]
fn a_certificate_of_version_1_is_said() {
    let files = Files::empty();
    let (cert, key) = (files.write("v1.pem", VERSION_1), files.write("v1.key", KEY_OF_IT));
    let words = ["serve", "127.0.0.1:0", "--echo", "--cert", &cert, "--key", &key];
    smt(&words).fails_with(&["v1.pem", "it has version 1", "-extfile"]);
}

#[test]
fn a_server_of_another_name_is_said() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files
        .run_call(serving.address(), &["--name", "other.example"], b"hi")
        .fails(3, &["other.example"]);
}

#[test]
fn a_client_without_a_certificate_is_told_that_it_needs_one() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--client-ca", &files.path("ca.pem")]);
    files.run_call(serving.address(), &[], b"hi").fails(3, &["requires a certificate"]);
}

#[test]
fn a_client_of_another_authority_is_refused() {
    let (files, others) = (Files::new(), Files::new());
    let serving = Serving::start(&files, &["--echo", "--client-ca", &files.path("ca.pem")]);
    let (cert, key) = (others.path("alice.pem"), others.path("alice.key"));
    files
        .run_call(serving.address(), &["--cert", &cert, "--key", &key], b"hi")
        .fails(3, &["certificate"]);
}

#[test]
fn nobody_there_is_said() {
    let files = Files::new();
    let address = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    files.run_call(&address, &[], b"hi").fails(6, &["no server there", &address]);
}

#[test]
fn each_attempt_at_a_server_that_is_not_there_is_told() {
    let files = Files::new();
    let address = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    let outcome = files.run_call(&address, &["--retry", "2", "-v"], b"hi");
    assert_eq!(outcome.status.code(), Some(6), "{outcome:?}");
    for words in ["attempt 1 failed", "attempt 2 failed", "(attempt 3)"] {
        assert!(outcome.errors.contains(words), "{}", outcome.errors);
    }
}

#[test]
fn a_request_that_may_have_run_is_repeated_only_if_it_is_idempotent() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--anyone", "--exec", "false"]);
    let retry = ["--retry", "1", "-v"];
    let more = [&retry[..], &["--idempotent"]].concat();
    for (words, is_repeated) in [(&retry[..], false), (&more, true)] {
        let outcome = files.run_call(serving.address(), words, b"hi");
        assert_eq!(outcome.status.code(), Some(4), "{outcome:?}");
        assert_eq!(outcome.errors.contains("attempt 1 failed"), is_repeated);
    }
}

#[test]
fn nobody_answering_is_said_after_the_deadline() {
    let files = Files::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    files
        .run_call(&address, &["--deadline", "200ms"], b"hi")
        .fails(6, &["no answer from the server within 200 ms"]);
}

#[test]
fn a_server_killed_in_the_middle_is_said() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &FOR_EVER);
    let words = files.call(serving.address(), &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let call = command(&words).stdin(Stdio::null()).spawn().unwrap();
    assert_eq!(serving.next_words(), "begun\n");
    serving.kill();
    let output = call.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.lines().count()), (Some(4), 1), "{errors}");
    assert!(errors.contains("no answer for") && errors.contains("may have run"), "{errors}");
}

#[test]
fn a_deadline_that_passes_is_said_and_ends_the_command() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &FOR_EVER);
    files
        .run_call(serving.address(), &["--deadline", "500ms"], b"")
        .fails(4, &["deadline passed", "may have run"]);
    assert_eq!(serving.next_words(), "begun\n");
    let words = serving.next_words();
    assert!(words.contains("nobody waits any more"), "{words}");
}

#[test]
fn a_request_over_the_limit_is_refused_with_both_numbers() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--message-limit", "1K"]);
    files
        .run_call(serving.address(), &[], &[0; 2_000])
        .fails(3, &["2000 bytes", "at most 1024", "limit"]);
    assert_eq!(files.run_call(serving.address(), &[], &[b'x'; 1_024]).output.len(), 1_024);
}

#[test]
fn a_reply_over_the_limit_is_said_on_both_sides() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let outcome = files.run_call(serving.address(), &["--message-limit", "1K"], &[0; 2_000]);
    assert_eq!(
        (outcome.status.code(), outcome.errors.lines().count()),
        (Some(4), 1),
        "{outcome:?}"
    );
    let (_, words) = serving.end();
    assert!(words.contains("2000 bytes") && words.contains("at most 1024"), "{words}");
}

#[test]
fn a_reply_that_cannot_be_written_is_said_to_have_run() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files
        .run_call(serving.address(), &["--out", "/dev/full"], b"hi")
        .fails(7, &["has run", "/dev/full", "No space left"]);
}

#[test]
fn no_file_is_left_without_a_reply() {
    let files = Files::new();
    let (missing, old) = (files.path("missing"), files.write("old", "old"));
    let serving = Serving::start(&files, &["--anyone", "--exec", "false"]);
    for path in [&missing, &old] {
        files.run_call(serving.address(), &["--out", path], b"hi").fails(4, &["may have run"]);
    }
    assert!(!Path::new(&missing).exists());
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn the_callers_of_a_command_have_to_be_named() {
    let files = Files::new();
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let serve = ["serve", "127.0.0.1:0", "--cert", &cert, "--key", &key];
    let outcome = smt(&[&serve[..], &["--exec", "cat"]].concat());
    assert_eq!(outcome.status.code(), Some(2));
    for word in ["--client-ca", "--anyone"] {
        assert!(outcome.errors.contains(word), "{}", outcome.errors);
    }
    let both = ["--anyone", "--client-ca", &cert, "--exec", "cat"];
    let outcome = smt(&[&serve[..], &both].concat());
    assert_eq!(outcome.status.code(), Some(2));
}

#[test]
fn a_command_that_cannot_run_is_found_out_before_anybody_calls() {
    let files = Files::new();
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let serve = ["serve", "127.0.0.1:0", "--cert", &cert, "--key", &key, "--anyone", "--exec"];
    for (program, why) in [
        ("no-such-program", "no such program in the directories of PATH"),
        ("/no/such/program", "No such file"),
        (&cert, "Permission denied"),
    ] {
        smt(&[&serve[..], &[program]].concat()).fails_with(&[program, why]);
    }
}

#[test]
fn an_address_that_is_none_is_wrong_usage() {
    let files = Files::new();
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let credentials = ["--echo", "--cert", &cert, "--key", &key];
    let serve = smt(&[&["serve", "127.0.0.1:99999"][..], &credentials].concat());
    let call = smt(&["call", "localhost:port", "--ca", &cert]);
    for (outcome, address) in [(serve, "127.0.0.1:99999"), (call, "localhost:port")] {
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.errors.contains(address), "{}", outcome.errors);
    }
}

#[test]
fn a_port_in_use_is_said() {
    let files = Files::new();
    let holder = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    smt(&["serve", &address, "--echo", "--cert", &cert, "--key", &key])
        .fails_with(&[&address, "Address already in use"]);
}

#[test]
fn files_that_are_missing_or_something_else_are_named() {
    let files = Files::new();
    let (cert, key, missing) =
        (files.path("localhost.pem"), files.path("localhost.key"), files.path("missing"));
    let serve = |cert: &str, key: &str, more: &[&str]| {
        smt(&[&["serve", "127.0.0.1:0", "--cert", cert, "--key", key][..], more].concat())
    };
    serve(&missing, &key, &["--echo"]).fails_with(&["cannot read", "missing"]);
    serve(&cert, &files.path("alice.key"), &["--echo"])
        .fails_with(&["does not belong", "alice.key"]);
    serve(&key, &cert, &["--echo"]).fails_with(&["no certificate in", "1 PRIVATE KEY"]);
    serve(&cert, &key, &["--dir", &missing]).fails_with(&["missing", "No such file"]);
    serve(&cert, &key, &["--dir", &cert]).fails_with(&["localhost.pem", "Not a directory"]);
    serve(&cert, &key, &["--echo", "--state", &cert]).fails_with(&[&cert, "no state file"]);
    serve(&cert, &key, &["--echo", "--state", "/dev/zero"]).fails_with(&["/dev/zero: not a file"]);
    serve(&cert, &key, &["--echo", "--key-log", &files.path("")]).fails_with(&["Is a directory"]);
    smt(&["call", "127.0.0.1:1", "--ca", &cert, "--in", &missing])
        .fails_with(&["missing", "No such file"]);
    smt(&["call", "no.such.host.invalid", "--ca", &cert])
        .fails(6, &["environment: ", "no.such.host.invalid"]);
}

/// For localhost, of an authority that is not kept; no other host has it.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBDDCBswIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARyb290MCAXDTI2MTEy
NTE4MzQ1MloYDzIxMjYxMTAxMTgzNDUyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATPwEkxebX3TxcdRhJjUBoTpH4pldgG
2TViBK84CCydyIwscyAc7Rhn7yY07rO98AJvwC8VtkjB37rxFGuKUI+6MAoGCCqG
SM49BAMCA0gAMEUCIDMgEWzwbHInXwJ4oFcQqsW4+5/ZgM747jIlKgyk994OAiEA
tUQo243GdYJXq9eiVRytZfGkKHFNVaYlGS0J9VUbVwM=
-----END CERTIFICATE-----
";
const KEY_OF_IT: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIAq6/R02XNHeGz0xU1ar3zuNVOVStVCUfteNio81XgQOoAoGCCqGSM49
AwEHoUQDQgAEz8BJMXm1908XHUYSY1AaE6R+KZXYBtk1YgSvOAgsnciMLHMgHO0Y
Z+8mNO6zvfACb8AvFbZIwd+68RRrilCPug==
-----END EC PRIVATE KEY-----
";
