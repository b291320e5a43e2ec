// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys, server, call: the whole way of a message.

use std::fs;

use crate::program::{Files, Serving, noise, smt};

#[test]
fn files_of_every_size_come_back_as_they_were() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    for length in [0, 1, 1_102, 1_103, 70_000, 3_000_000] {
        let request = files.write("request", noise(length));
        let reply = files.write("reply", "what was there before, and longer than nothing");
        let more = ["--in", &request, "--out", &reply, "--deadline", "20s"];
        let outcome = files.run_call(serving.address(), &more, b"");
        assert_eq!(outcome.text(), "", "{length}");
        assert_eq!(fs::read(&reply).unwrap(), noise(length), "{length}");
    }
    let (status, words) = serving.end();
    assert!(status.success());
    assert!(words.contains("served 6 requests"), "{words}");
}

#[test]
fn standard_input_and_output_are_the_default() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let outcome = files.run_call(serving.address(), &[], b"hello");
    assert_eq!(outcome.text(), "hello");
    assert_eq!(outcome.errors, "");
}

#[test]
fn calls_are_repeated_and_their_replies_follow_each_other() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--workers", "3"]);
    let outcome = files.run_call(serving.address(), &["--count", "5"], b"ab");
    assert_eq!(outcome.text(), "ababababab");
    assert!(outcome.errors.contains("5 round trips: median"), "{}", outcome.errors);
}

#[test]
fn a_one_way_message_has_no_reply() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let outcome = files.run_call(serving.address(), &["--one-way"], b"hello");
    assert_eq!(outcome.text(), "");
    let (_, words) = serving.end();
    assert!(words.contains("0 requests and 1 one-way messages"), "{words}");
}

#[test]
fn both_sides_prove_who_they_are() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--client-ca", &files.path("ca.pem")]);
    let (cert, key) = (files.path("alice.pem"), files.path("alice.key"));
    let outcome = files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"hi");
    assert_eq!(outcome.text(), "hi");
}

#[test]
fn a_pinned_certificate_needs_no_authority_and_no_name() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let pinned = files.path("localhost.pem");
    let request = files.write("request", "hi");
    let words =
        ["call", serving.address(), "--pin", &pinned, "--name", "whoever", "--in", &request];
    assert_eq!(smt(&words).text(), "hi");
}

#[test]
fn calls_work_without_offload() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo", "--no-gso"]);
    let request = noise(500_000);
    let outcome = files.run_call(serving.address(), &["--no-gso"], &request);
    assert!(outcome.status.success(), "{}", outcome.errors);
    assert!(outcome.output == request);
}
