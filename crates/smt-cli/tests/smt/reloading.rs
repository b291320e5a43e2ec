// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SIGHUP: a server reads its certificates again, and its sessions go on.

use std::fs;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::program::{Files, Serving, command, fifo, smt_with_input};

/// Waits for a line in a FIFO if the request says so, and answers at once if not.
fn wait_or_not(fifo: &str) -> String {
    format!(
        "read word; test \"$word\" = wait || {{ echo now; exit; }}; echo begun >&2; read line <{fifo}; echo $line"
    )
}

/// The certificate of another authority's server in the place of this one's.
fn replace(files: &Files, others: &Files) {
    for name in ["localhost.pem", "localhost.key"] {
        fs::copy(others.path(name), files.path(name)).unwrap();
    }
}

#[test]
fn new_clients_meet_the_new_certificate_and_sessions_go_on() {
    let (files, others) = (Files::new(), Files::new());
    let fifo = fifo(&files);
    let script = wait_or_not(&fifo);
    let words = ["--log", "info", "--anyone", "--exec", "sh", "-c", &script];
    let mut serving = Serving::start(&files, &words);
    let request = files.write("request", "wait\n");
    let call = files.call(serving.address(), &["--in", &request]);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let waiting = command(&call).stdin(Stdio::null()).spawn().unwrap();
    serving.next_words_with("begun");
    replace(&files, &others);
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    let old = files.run_call(serving.address(), &[], b"");
    old.fails(3, &["unknown issuer"]);
    assert_eq!(others.run_call(serving.address(), &[], b"").text(), "now\n");
    fs::write(&fifo, "done\n").unwrap();
    assert_eq!(waiting.wait_with_output().unwrap().stdout, b"done\n");
    assert!(serving.end().0.success());
}

#[test]
fn files_that_cannot_be_used_change_nothing_and_are_one_line() {
    let files = Files::new();
    let mut serving = Serving::start(&files, &["--echo"]);
    let key = fs::read(files.path("localhost.key")).unwrap();
    for (name, content, why) in [
        ("localhost.pem", Some("nothing"), "no certificate in"),
        ("localhost.pem", None, "No such file"),
        ("localhost.key", Some("nothing"), "no private key in"),
    ] {
        let before = fs::read(files.path(name)).unwrap();
        match content {
            Some(content) => drop(files.write(name, content)),
            None => fs::remove_file(files.path(name)).unwrap(),
        }
        serving.signal(Signal::HUP);
        let line = serving.next_words();
        let begin = "SIGHUP: the certificates so far stay in use";
        assert!(line.contains(begin) && line.contains(why), "{line}");
        assert_eq!(files.run_call(serving.address(), &[], b"hi").text(), "hi");
        fs::write(files.path(name), before).unwrap();
    }
    // A key of another certificate.
    fs::copy(files.path("alice.key"), files.path("localhost.key")).unwrap();
    serving.signal(Signal::HUP);
    let line = serving.next_words();
    assert!(line.contains("does not belong to the first certificate"), "{line}");
    fs::write(files.path("localhost.key"), key).unwrap();
    let (status, words) = serving.end();
    assert!(status.success() && words.lines().count() == 1, "{words}");
}

#[test]
fn another_authority_of_the_clients_counts_for_new_ones() {
    let (files, others) = (Files::new(), Files::new());
    let authority = files.path("clients.pem");
    fs::copy(files.path("ca.pem"), &authority).unwrap();
    let words = ["--log", "info", "--echo", "--client-ca", &authority];
    let mut serving = Serving::start(&files, &words);
    let address = serving.address().to_owned();
    let call = |alice: &Files| {
        let (cert, key) = (alice.path("alice.pem"), alice.path("alice.key"));
        let words = files.call(&address, &["--cert", &cert, "--key", &key]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        smt_with_input(&words, b"hi")
    };
    assert_eq!(call(&files).text(), "hi");
    fs::copy(others.path("ca.pem"), &authority).unwrap();
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    assert_eq!(call(&others).text(), "hi");
    call(&files).fails(3, &["certificate"]);
}

#[test]
fn files_by_which_no_client_could_be_let_in_are_a_mistake_at_the_start_and_later() {
    let (files, others) = (Files::new(), Files::new());
    let [list, other_list] = [&files, &others].map(|files| {
        let (directory, list) = (files.path(""), files.path("ca.crl"));
        smt_with_input(&["keys", "crl", "--ca", &directory, "--out", &list], b"").text();
        list
    });
    let authority = files.path("clients.pem");
    fs::copy(files.path("ca.pem"), &authority).unwrap();
    let mut serving =
        Serving::start(&files, &["--echo", "--client-ca", &authority, "--crl", &list]);
    let address = serving.address().to_owned();
    let (alice, key) = (files.path("alice.pem"), files.path("alice.key"));
    let call = || files.run_call(&address, &["--cert", &alice, "--key", &key], b"hi");
    let own = fs::read(&list).unwrap();
    fs::copy(&other_list, &list).unwrap();
    serving.signal(Signal::HUP);
    let line = serving.next_words_with("SIGHUP: the certificates so far stay in use");
    assert!(line.contains("no client could be let in by --client-ca"), "{line}");
    assert!(line.contains("no --crl is a list of CN=smt authority"), "{line}");
    assert_eq!(call().text(), "hi");
    fs::write(&list, own).unwrap();
    fs::copy(&alice, &authority).unwrap();
    serving.signal(Signal::HUP);
    let line = serving.next_words_with("SIGHUP: the certificates so far stay in use");
    assert!(line.contains("CN=alice is no authority's"), "{line}");
    assert_eq!(call().text(), "hi");
    let (cert, key) = (files.path("localhost.pem"), files.path("localhost.key"));
    let start = ["serve", "127.0.0.1:0", "--echo", "--cert", &cert, "--key", &key];
    let outcome = smt_with_input(&[&start[..], &["--client-ca", &authority]].concat(), b"");
    outcome.fails(1, &["no client could be let in", "CN=alice is no authority's"]);
}

#[test]
fn files_that_can_be_read_once_are_left_alone() {
    let files = Files::new();
    let (key, aside) = (files.path("localhost.key"), files.path("aside"));
    fs::rename(&key, &aside).unwrap();
    assert!(Command::new("mkfifo").arg(&key).status().unwrap().success());
    let pipe = key.clone();
    let writer = std::thread::spawn(move || fs::write(pipe, fs::read(aside).unwrap()));
    let mut serving = Serving::start(&files, &["--echo"]);
    writer.join().unwrap().unwrap();
    serving.signal(Signal::HUP);
    let line = serving.next_words_with("SIGHUP");
    assert!(line.contains(&key) && line.contains("no file that can be read again"), "{line}");
    assert_eq!(files.run_call(serving.address(), &[], b"hi").text(), "hi");
    assert!(serving.end().0.success());
}

#[test]
fn a_revocation_list_is_read_again_and_a_bad_one_changes_nothing() {
    let files = Files::new();
    let (directory, authority) = (files.path(""), files.path("ca.pem"));
    let (alice, list) = (files.path("alice.pem"), files.path("ca.crl"));
    let crl = ["keys", "crl", "--ca", &directory, "--out", &list];
    assert_eq!(smt_with_input(&crl, b"").text(), format!("{list}\n"));
    let words = ["--log", "info", "--echo", "--client-ca", &authority, "--crl", &list];
    let mut serving = Serving::start(&files, &words);
    let address = serving.address().to_owned();
    let call = || {
        let words = ["--cert", &alice, "--key", &files.path("alice.key")];
        files.run_call(&address, &words, b"hi")
    };
    assert_eq!(call().text(), "hi");
    fs::write(&list, "nothing").unwrap();
    serving.signal(Signal::HUP);
    let line = serving.next_words_with("SIGHUP: the certificates so far stay in use");
    assert!(line.contains("no revocation list in"), "{line}");
    assert_eq!(call().text(), "hi");
    smt_with_input(&[&crl[..], &[&alice]].concat(), b"").fails(1, &["no revocation list in"]);
    fs::remove_file(&list).unwrap();
    smt_with_input(&[&crl[..], &[&alice]].concat(), b"").text();
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    call().fails(3, &["refused this client's certificate: revoked"]);
    // The client refuses the server likewise.
    let server = files.path("localhost.pem");
    smt_with_input(&[&crl[..], &[&server]].concat(), b"").text();
    let outcome = files.run_call(&address, &["--crl", &list], b"hi");
    outcome.fails(3, &["the server's certificate is revoked"]);
    // The list was added to: only who is taken out by name counts again.
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    call().fails(3, &["refused this client's certificate: revoked"]);
    smt_with_input(&[&crl[..], &["--remove", &alice]].concat(), b"").text();
    smt_with_input(&[&crl[..], &["--remove", &alice]].concat(), b"").fails(1, &["is not in"]);
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    assert_eq!(call().text(), "hi");
    assert!(serving.end().0.success());
}

/// The output of a call of Alice's that is in progress while she is revoked.
fn revoked_during_a_call(choice: &[&str]) -> Output {
    let files = Files::new();
    let (directory, authority) = (files.path(""), files.path("ca.pem"));
    let (alice, key, list) = (files.path("alice.pem"), files.path("alice.key"), files.path("crl"));
    let crl = ["keys", "crl", "--ca", &directory, "--out", &list];
    smt_with_input(&crl, b"").text();
    let fifo = fifo(&files);
    let script = wait_or_not(&fifo);
    let options = ["--client-ca", &authority, "--crl", &list];
    let exec = ["--exec", "sh", "-c", &script];
    let mut serving = Serving::start(&files, &[&options[..], choice, &exec].concat());
    let request = files.write("request", "wait\n");
    let call = ["--in", &request, "--cert", &alice, "--key", &key];
    let call = files.call(serving.address(), &call);
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    let waiting = command(&call).stdin(Stdio::null()).spawn().unwrap();
    serving.next_words_with("begun");
    smt_with_input(&[&crl[..], &[&alice]].concat(), b"").text();
    serving.signal(Signal::HUP);
    let fate = match choice {
        [] => "now ended",
        [_, "finish"] => "ended when no call is in progress",
        _ => "kept all the same",
    };
    let told = serving.next_words_with("the new trust refuses the peers of 1 session");
    for words in [fate, "alice at 127.0.0.1:", "the client's certificate is revoked"] {
        assert!(told.contains(words), "{told}");
    }
    if !choice.is_empty() {
        fs::write(&fifo, "done\n").unwrap();
    }
    waiting.wait_with_output().unwrap()
}

#[test]
fn a_client_that_is_revoked_is_out_at_once() {
    let output = revoked_during_a_call(&[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("is accepted no more"), "{errors}");
}

#[test]
fn a_client_that_is_revoked_may_finish_its_calls_where_that_is_chosen() {
    let output = revoked_during_a_call(&["--distrusted", "finish"]);
    assert_eq!(output.stdout, b"done\n");
}

#[test]
fn an_operator_is_told_of_sessions_that_are_kept_all_the_same() {
    let output = revoked_during_a_call(&["--distrusted", "keep"]);
    assert_eq!(output.stdout, b"done\n");
}
