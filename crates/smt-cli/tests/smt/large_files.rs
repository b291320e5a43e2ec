// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that are larger than a message: a call fetches them in ranges.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::program::{Files, Serving, command, eventually, noise, smt};

#[test]
fn a_file_beyond_the_limit_of_either_side_comes_in_ranges() {
    let files = Files::new();
    let content = noise(300_000);
    files.write("inside/file", &content);
    let inside = files.path("inside");
    for (server, client) in [("64K", "64M"), ("64M", "64K"), ("1K", "64K"), ("10K", "1K")] {
        let words = ["--dir", &inside, "--message-limit", server];
        let serving = Serving::start(&files, &words);
        let limit = ["--message-limit", client, "-v"];
        let outcome = files.run_call(serving.address(), &limit, b"file");
        assert!(outcome.status.success(), "{server} {client}: {}", outcome.errors);
        assert!(outcome.output == content, "{server} {client}");
        assert!(outcome.errors.contains("300000 bytes come in"), "{}", outcome.errors);
        let (_, words) = serving.end();
        assert!(words.contains(" 0 dropped;"), "{words}");
        assert!(!words.contains("request dropped"), "{words}");
    }
}

#[test]
fn one_that_fits_comes_whole_as_before() {
    let files = Files::new();
    let content = noise(65_536);
    files.write("inside/file", &content);
    let serving = Serving::start(&files, &["--dir", &files.path("inside")]);
    let outcome = files.run_call(serving.address(), &["--message-limit", "64K", "-v"], b"file");
    assert!(outcome.output == content);
    assert!(!outcome.errors.contains("ranges"), "{}", outcome.errors);
}

/// The reader of the output is slow: the file is changed before it has taken all.
#[test]
fn a_file_that_changes_meanwhile_is_told_and_no_part_of_it_stays() {
    let files = Files::new();
    let path = files.write("inside/file", noise(3_000_000));
    let words = ["--dir", &files.path("inside"), "--message-limit", "10K"];
    let serving = Serving::start(&files, &words);
    let request = files.write("request", "file");
    let call = files.call(serving.address(), &["--in", &request]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let mut slow = command(&call).stdin(Stdio::null()).spawn().unwrap();
    let mut first = [0; 1_000];
    std::io::Read::read_exact(slow.stdout.as_mut().unwrap(), &mut first).unwrap();
    File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    let outcome = slow.wait_with_output().unwrap();
    let errors = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(5), "{errors}");
    assert!(errors.contains("the file has changed since its first range"), "{errors}");
}

#[test]
fn an_interrupted_fetch_leaves_the_old_file() {
    let files = Files::new();
    files.write("inside/file", noise(100));
    let large = File::create(files.path("inside/large")).unwrap();
    // Without bytes on the disk; far more than comes before the signal.
    large.set_len(1 << 40).unwrap();
    let serving = Serving::start(&files, &["--dir", &files.path("inside")]);
    let (request, out) = (files.write("request", "large"), files.write("out", "old"));
    let call = files.call(serving.address(), &["--in", &request, "--out", &out]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let call = command(&call).stdin(Stdio::null()).spawn().unwrap();
    let beside = files.path(&format!(".out.smt-{}", call.id()));
    let grows = || fs::metadata(&beside).is_ok_and(|facts| facts.len() > 0);
    eventually("the first ranges are there", grows);
    let process = rustix::process::Pid::from_child(&call);
    rustix::process::kill_process(process, Signal::INT).unwrap();
    let outcome = call.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(130));
    assert_eq!(fs::read(&out).unwrap(), b"old");
    assert!(!Path::new(&beside).exists());
}

#[test]
fn the_memory_does_not_grow_with_the_file() {
    let files = Files::new();
    fs::create_dir(files.path("inside")).unwrap();
    let large = File::create(files.path("inside/large")).unwrap();
    large.set_len(400 << 20).unwrap();
    let serving = Serving::start(&files, &["--dir", &files.path("inside")]);
    let request = files.write("request", "large");
    // Kilobytes of address space, of which a program with its threads needs far more than it uses.
    let limited = "ulimit -v 700000; exec \"$0\" \"$@\" | wc -c";
    let outcome = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_smt")])
        .args(files.call(serving.address(), &["--in", &request]))
        .output()
        .unwrap();
    let words = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.stdout.trim_ascii(), b"419430400", "{words}");
}

#[test]
fn a_name_with_a_line_break_is_explained() {
    let files = Files::new();
    files.write("inside/file", "content");
    let serving = Serving::start(&files, &["--dir", &files.path("inside")]);
    let outcome = files.run_call(serving.address(), &[], b"file\n");
    outcome.fails(5, &["No such file", "ends with a line break", "printf"]);
}

#[test]
fn metadata_that_is_none_is_wrong_usage() {
    for value in ["a", "A=b", "=b", "a b=c"] {
        let words = ["call", "localhost", "--ca", "a", "--metadata", value];
        assert_eq!(smt(&words).status.code(), Some(2), "{value}");
    }
}
