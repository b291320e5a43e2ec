// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output that takes nothing: a full disk, or a reader that has gone.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::capture::pcap;
use crate::program::{Files, Serving, smt};

/// Runs `smt` with a full disk behind its standard output.
fn to_full_disk(words: &[&str]) -> Output {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_smt"));
    command.args(words).stdin(Stdio::null()).stdout(full).output().unwrap()
}

/// Runs `smt` as a shell does that redirects its output so.
fn redirected(words: &[String], redirection: &str) -> Output {
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_smt")]).args(words);
    shell.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_full_disk_behind_standard_output_is_named() {
    let files = Files::new();
    let (cert, capture) = (files.path("localhost.pem"), files.write("capture", pcap(&[])));
    let (out, directory) = (files.path("other"), files.path(""));
    for words in [
        &["help"][..],
        &["--help"],
        &["call", "--help"],
        &["--version"],
        &["doctor"],
        &["doctor", "--json"],
        &["demo"],
        &["keys", "show", &cert],
        &["keys", "ca", "--out", &out],
        &["keys", "show", &directory, "--json"],
        &["completions", "bash"],
        &["man"],
        &["sim", "scenarios"],
    ] {
        let outcome = to_full_disk(words);
        let errors = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(1), "{words:?}: {errors}");
        let told = "smt: environment: writing to standard output: No space left on device";
        assert!(errors.starts_with(told), "{words:?}: {errors}");
    }
    assert!(smt(&["dump", &capture]).text().is_empty());
}

#[test]
fn a_reply_that_nobody_wants_is_no_failure() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let request = files.write("request", "hi");
    let call = files.call(serving.address(), &["--in", &request]);
    for redirection in [">/dev/null", "<>/dev/null >&0", "| true"] {
        let outcome = redirected(&call, redirection);
        let errors = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!((outcome.status.code(), &*errors), (Some(0), ""), "{redirection}");
    }
}

#[test]
fn the_help_says_what_a_reader_that_has_gone_is() {
    let help = smt(&["help", "call"]);
    let line = "\n  0    success: the reply is there, or the reader of the pipe wanted no more\n";
    assert!(help.text().contains(line), "{}", help.text());
}
