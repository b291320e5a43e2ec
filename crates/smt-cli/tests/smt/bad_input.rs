// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whatever goes wrong is one clear line and exit code 1; wrong usage is exit code 2.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use smt::pki::{CertificateAuthority, CertificatePlan, KeyKind, Validity};

use crate::program::{Files, Serving, command, smt};

/// Runs until its server is gone, and says when it has begun.
const FOR_EVER: [&str; 5] = [
    "--anyone",
    "--exec",
    "sh",
    "-c",
    "echo begun >&2; exec tail --pid=$PPID -f /dev/null",
];

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
        &[
            "serve",
            "--cert",
            "a",
            "--key",
            "b",
            "--echo",
            "--message-limit",
            "much",
        ],
        &[
            "serve", "--cert", "a", "--key", "b", "--echo", "--shards", "3",
        ],
        &["perf", "loopback", "--sizes", "1X"],
        &["perf", "loopback", "--sizes", "8589934592G"],
        &["dump", "file", "--out", "directory"],
        &["-q", "-v", "doctor"],
    ] {
        let outcome = smt(words);
        assert_eq!(
            outcome.status.code(),
            Some(2),
            "{words:?}: {}",
            outcome.errors
        );
        assert!(outcome.output.is_empty(), "{words:?}");
    }
}

#[test]
fn an_authority_that_did_not_sign_is_said() {
    let (files, others) = (Files::new(), Files::new());
    let serving = Serving::start(&files, &["--echo"]);
    others
        .run_call(serving.address(), &[], b"hi")
        .fails_with(&[serving.address(), "issuer"]);
}

#[test]
fn a_certificate_that_is_not_the_pinned_one_is_said() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let other = files.path("alice.pem");
    smt(&["call", serving.address(), "--pin", &other])
        .fails_with(&[serving.address(), "certificate"]);
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
    let serving = Serving::start(&files, &["--echo"]);
    files
        .run_call(serving.address(), &[], b"hi")
        .fails_with(&["expired"]);
}

#[test]
fn a_server_of_another_name_is_said() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files
        .run_call(serving.address(), &["--name", "other.example"], b"hi")
        .fails_with(&["other.example"]);
}

#[test]
fn a_client_without_a_certificate_is_told_that_it_needs_one() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--client-ca", &files.path("ca.pem")]);
    files
        .run_call(serving.address(), &[], b"hi")
        .fails_with(&["requires a certificate"]);
}

#[test]
fn a_client_of_another_authority_is_refused() {
    let (files, others) = (Files::new(), Files::new());
    let serving = Serving::start(&files, &["--echo", "--client-ca", &files.path("ca.pem")]);
    let (cert, key) = (others.path("alice.pem"), others.path("alice.key"));
    files
        .run_call(serving.address(), &["--cert", &cert, "--key", &key], b"hi")
        .fails_with(&["certificate"]);
}

#[test]
fn nobody_there_is_said() {
    let files = Files::new();
    let address = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    files
        .run_call(&address, &[], b"hi")
        .fails_with(&["no server there", &address]);
}

#[test]
fn nobody_answering_is_said_after_the_deadline() {
    let files = Files::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    files
        .run_call(&address, &["--deadline", "200ms"], b"hi")
        .fails_with(&["no answer from the server within 200 ms"]);
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
    assert_eq!(
        (output.status.code(), errors.lines().count()),
        (Some(1), 1),
        "{errors}"
    );
    assert!(
        errors.contains("no answer for") && errors.contains("may have run"),
        "{errors}"
    );
}

#[test]
fn a_deadline_that_passes_is_said_and_ends_the_command() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &FOR_EVER);
    files
        .run_call(serving.address(), &["--deadline", "500ms"], b"")
        .fails_with(&["deadline passed", "may have run"]);
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
        .fails_with(&["2000 bytes", "at most 1024", "limit"]);
    assert_eq!(
        files
            .run_call(serving.address(), &[], &[b'x'; 1_024])
            .output
            .len(),
        1_024
    );
}

#[test]
fn a_reply_over_the_limit_is_said_on_both_sides() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let outcome = files.run_call(serving.address(), &["--message-limit", "1K"], &[0; 2_000]);
    assert_eq!(
        (outcome.status.code(), outcome.errors.lines().count()),
        (Some(1), 1),
        "{outcome:?}"
    );
    let (_, words) = serving.end();
    assert!(
        words.contains("2000 bytes") && words.contains("at most 1024"),
        "{words}"
    );
}

#[test]
fn a_reply_that_cannot_be_written_is_said_to_have_run() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files
        .run_call(serving.address(), &["--out", "/dev/full"], b"hi")
        .fails_with(&["has run", "/dev/full", "No space left"]);
}

#[test]
fn no_file_is_left_without_a_reply() {
    let files = Files::new();
    let (missing, old) = (files.path("missing"), files.write("old", "old"));
    let serving = Serving::start(&files, &["--anyone", "--exec", "false"]);
    for path in [&missing, &old] {
        files
            .run_call(serving.address(), &["--out", path], b"hi")
            .fails_with(&["may have run"]);
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
    let serve = [
        "serve",
        "127.0.0.1:0",
        "--cert",
        &cert,
        "--key",
        &key,
        "--anyone",
        "--exec",
    ];
    for (program, why) in [
        (
            "no-such-program",
            "no such program in the directories of PATH",
        ),
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
    let (cert, key, missing) = (
        files.path("localhost.pem"),
        files.path("localhost.key"),
        files.path("missing"),
    );
    let serve = |cert: &str, key: &str, more: &[&str]| {
        smt(&[
            &["serve", "127.0.0.1:0", "--cert", cert, "--key", key][..],
            more,
        ]
        .concat())
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
    smt(&["call", "no.such.host.invalid", "--ca", &cert]).fails_with(&["no.such.host.invalid"]);
}
