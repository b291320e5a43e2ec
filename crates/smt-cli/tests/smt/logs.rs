// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log on standard error: sessions and refused clients, its levels and its formats.

use serde_json::Value;

use crate::program::{Files, Serving, command, smt};

/// The lines that have all of these words.
fn lines_with<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    text.lines().filter(has_all).collect()
}

#[test]
fn each_session_is_told_once_when_it_begins_and_once_when_it_ends() {
    let files = Files::new();
    let authority = files.path("ca.pem");
    let words = ["--echo", "--client-ca", &authority, "--log", "info"];
    let serving = Serving::start(&files, &words);
    let (cert, key) = (files.path("alice.pem"), files.path("alice.key"));
    let alice = ["--cert", &cert, "--key", &key, "--count", "3"];
    files.run_call(serving.address(), &alice, b"hi").text();
    let (_, words) = serving.end();
    let name = "name=\"alice\"";
    let began = lines_with(&words, &["session began", "peer=127.0.0.1:", name]);
    assert_eq!(began.len(), 1, "{words}");
    let ended = ["session ended", "peer=127.0.0.1:", name, "closed the session"];
    assert_eq!(lines_with(&words, &ended).len(), 1, "{words}");
    assert_eq!(lines_with(&words, &["session"]).len(), 3, "with the summary: {words}");
}

#[test]
fn a_name_of_a_peer_is_escaped_once() {
    let files = Files::new();
    let (directory, authority) = (files.path(""), files.path("ca.pem"));
    let name = "al\u{1B}[1m\"ice\"\n";
    smt(&["keys", "client", name, "--ca", &directory, "--out", &directory]).text();
    let words = ["--echo", "--client-ca", &authority, "--log", "info"];
    let serving = Serving::start(&files, &words);
    let file = files.path("al__1m_ice__");
    let (cert, key) = (format!("{file}.pem"), format!("{file}.key"));
    files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"hi").text();
    let (_, words) = serving.end();
    let told = format!("name={name:?}");
    assert_eq!(lines_with(&words, &["session began", &told]).len(), 1, "{words:?}");
    assert!(!words.contains('\u{1B}'), "{words:?}");
}

/// It makes several attempts, since an alert may be forged.
#[test]
fn each_refused_client_is_told_once_with_the_reason() {
    let (files, others) = (Files::new(), Files::new());
    let authority = files.path("ca.pem");
    let words = ["--echo", "--client-ca", &authority, "-v"];
    let serving = Serving::start(&files, &words);
    let (cert, key) = (others.path("alice.pem"), others.path("alice.key"));
    let without = files.run_call(serving.address(), &[], b"hi");
    let other = files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"hi");
    for outcome in [without, other] {
        assert_eq!(outcome.status.code(), Some(3), "{outcome:?}");
    }
    let (_, words) = serving.end();
    assert_eq!(lines_with(&words, &["client refused"]).len(), 2, "{words}");
    for why in ["the client sent no certificate", "unknown issuer"] {
        let told = lines_with(&words, &["client refused", "peer=127.0.0.1:", why]);
        assert_eq!(told.len(), 1, "{words}");
    }
}

#[test]
fn sessions_are_not_told_unless_that_is_asked_for() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    files.run_call(serving.address(), &[], b"hi").text();
    let (_, words) = serving.end();
    assert_eq!(words.lines().count(), 1, "the summary alone: {words}");
}

#[test]
fn all_lines_are_json_objects_if_that_is_the_format() {
    let files = Files::new();
    let json = ["--log", "debug", "--log-format", "json"];
    let directory = files.path("");
    let words = [&["--dir", &directory][..], &json].concat();
    let serving = Serving::start(&files, &words);
    let refused = files.run_call(serving.address(), &json, b"missing");
    let (_, words) = serving.end();
    let mut messages = Vec::new();
    for line in words.lines().chain(refused.errors.lines()) {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        for field in ["timestamp", "level", "message"] {
            assert!(object[field].is_string(), "{field}: {line}");
        }
        messages.push(object["message"].as_str().unwrap().to_owned());
    }
    for begin in ["session began", "request dropped: missing", "served 0 requests"] {
        let is_told = messages.iter().any(|message| message.starts_with(begin));
        assert!(is_told, "{begin}: {messages:?}");
    }
    let failure = messages.last().unwrap();
    assert!(failure.starts_with("smt: ") && failure.contains("refused"), "{failure}");
}

#[test]
fn the_environment_may_say_the_level() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let request = files.write("request", "hi");
    let call = |level: &str| {
        let words = files.call(serving.address(), &["--in", &request]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = command(&words).env("SMT_LOG", level).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, words) = call("info");
    assert!(code == Some(0) && words.contains("connected in"), "{words}");
    assert_eq!(call("warn"), (Some(0), String::new()));
    let (code, words) = call("loud");
    assert_eq!((code, words.lines().count()), (Some(2), 1), "{words}");
    assert!(words.contains("SMT_LOG is \"loud\""), "{words}");
}

#[test]
fn a_level_that_is_none_is_wrong_usage() {
    for words in [
        &["--log", "loud", "doctor"][..],
        &["--log", "info", "-v", "doctor"],
        &["--log-format", "xml", "doctor"],
    ] {
        assert_eq!(smt(words).status.code(), Some(2), "{words:?}");
    }
}
