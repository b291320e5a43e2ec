// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server knows its callers: by an authority, or by the certificates that it lets in; a command
//! of --exec learns of them by environment variables.

use rustix::process::Signal;

use crate::program::{Files, Serving, smt, smt_with_input};

/// The variables about the request, as a command of the server has them.
fn variables(text: &str) -> Vec<&str> {
    let is_ours = |line: &&str| {
        let mut prefixes = ["SMT_PEER_", "SMT_REQUEST_", "SMT_METADATA_"].into_iter();
        prefixes.any(|prefix| line.starts_with(prefix))
    };
    text.lines().filter(is_ours).collect()
}

#[test]
fn a_command_learns_who_calls_for_how_long_and_with_which_metadata() {
    let files = Files::new();
    let authority = files.path("ca.pem");
    let words = ["--client-ca", &authority, "--exec", "env"];
    let serving = Serving::start(&files, &words);
    let (cert, key) = (files.path("alice.pem"), files.path("alice.key"));
    let more = ["--cert", &cert, "--key", &key, "--deadline", "30s"];
    let metadata = ["--metadata", "trace-id=7 b=c", "--metadata", "path=/evil"];
    let outcome = files.run_call(serving.address(), &[&more[..], &metadata].concat(), b"");
    let variables = variables(outcome.text());
    for expected in [
        "SMT_PEER_SUBJECT=CN=alice",
        "SMT_PEER_NAMES=alice",
        "SMT_METADATA_TRACE_ID=7 b=c",
        "SMT_METADATA_PATH=/evil",
    ] {
        assert!(variables.contains(&expected), "{variables:?}");
    }
    let value = |name: &str| {
        let mut values = variables.iter().filter_map(|line| line.strip_prefix(name));
        values.next().unwrap_or_else(|| panic!("{name} {variables:?}"))
    };
    assert!(value("SMT_PEER_ADDRESS=").starts_with("127.0.0.1:"));
    let left: u64 = value("SMT_REQUEST_DEADLINE_MS=").parse().unwrap();
    assert!((1..=30_000).contains(&left), "{left}");
    assert_eq!(variables.len(), 7, "{variables:?}");
}

#[test]
fn the_identity_of_spiffe_has_a_variable_of_its_own() {
    let files = Files::new();
    let (directory, authority) = (files.path(""), files.path("ca.pem"));
    let id = "spiffe://cluster/alice";
    let words = ["keys", "client", id, "--ca", &directory, "--out", &directory];
    smt(&words).text();
    let serving = Serving::start(&files, &["--client-ca", &authority, "--exec", "env"]);
    let cert = files.path("spiffe___cluster_alice.pem");
    let key = files.path("spiffe___cluster_alice.key");
    let outcome = files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"");
    let variables = variables(outcome.text());
    for name in ["SMT_PEER_SPIFFE_ID", "SMT_PEER_URIS"] {
        assert!(variables.contains(&format!("{name}={id}").as_str()), "{variables:?}");
    }
    assert!(variables.contains(&"SMT_PEER_NAMES="), "{variables:?}");
}

/// X.509-SVID §2 forbids a second URI.
#[test]
fn a_certificate_with_two_uris_proves_no_identity_of_spiffe_to_a_command() {
    let files = Files::new();
    let (directory, authority) = (files.path(""), files.path("ca.pem"));
    let words = ["keys", "client", "eve", "--ca", &directory, "--out", &directory];
    smt(&[&words[..], &["--uri", "spiffe://cluster/alice", "--uri", "https://second.example/"]]
        .concat())
    .text();
    let serving = Serving::start(&files, &["--client-ca", &authority, "--exec", "env"]);
    let (cert, key) = (files.path("eve.pem"), files.path("eve.key"));
    let outcome = files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"");
    let variables = variables(outcome.text());
    assert!(
        variables.contains(&"SMT_PEER_URIS=spiffe://cluster/alice https://second.example/"),
        "{variables:?}"
    );
    assert!(!outcome.text().contains("SMT_PEER_SPIFFE_ID"), "{variables:?}");
}

#[test]
fn a_variable_of_the_server_does_not_pass_for_one_of_the_request() {
    let files = Files::new();
    let forged = [
        ("SMT_PEER_SUBJECT", "CN=admin"),
        ("SMT_PEER_ANYTHING", "1"),
        ("SMT_REQUEST_DEADLINE_MS", "1"),
        ("SMT_METADATA_ROLE", "admin"),
        ("SMT_OTHER", "stays"),
    ];
    let words = ["--anyone", "--exec", "env"];
    let serving = Serving::start_with(&files, &words, &forged);
    let outcome = files.run_call(serving.address(), &[], b"");
    let variables = variables(outcome.text());
    assert!(variables[0].starts_with("SMT_PEER_ADDRESS="), "{variables:?}");
    assert_eq!(variables.len(), 1, "{variables:?}");
    assert!(outcome.text().contains("SMT_OTHER=stays"));
}

#[test]
fn a_server_lets_only_the_pinned_clients_in_and_reads_the_pins_again() {
    let files = Files::new();
    let directory = files.path("");
    let words = ["keys", "client", "bob", "--ca", &directory, "--out", &directory];
    smt(&words).text();
    let pins = files.path("pins.pem");
    let alice = std::fs::read(files.path("alice.pem")).unwrap();
    std::fs::write(&pins, &alice).unwrap();
    let words = ["--client-pin", &pins, "--log", "info", "--exec", "env"];
    let mut serving = Serving::start(&files, &words);
    let identity = |name: &str| ["pem", "key"].map(|end| files.path(&format!("{name}.{end}")));
    let call = |serving: &Serving, name: &str| {
        let [cert, key] = identity(name);
        files.run_call(serving.address(), &["--cert", &cert, "--key", &key], b"")
    };
    let outcome = call(&serving, "alice");
    assert!(variables(outcome.text()).contains(&"SMT_PEER_SUBJECT=CN=alice"));
    call(&serving, "bob").fails(3, &["pinned"]);
    files.run_call(serving.address(), &[], b"").fails(3, &["certificate"]);
    let both = [alice, std::fs::read(files.path("bob.pem")).unwrap()].concat();
    std::fs::write(&pins, both).unwrap();
    serving.signal(Signal::HUP);
    serving.next_words_with("SIGHUP: certificates were read again");
    call(&serving, "bob").text();
}

#[test]
fn a_server_is_called_by_its_spiffe_id() {
    let files = Files::new();
    let directory = files.path("");
    let id = "spiffe://prod.example/db";
    let words = ["keys", "server", "localhost", "--uri", id, "--force"];
    let made = smt(&[&words[..], &["--ca", &directory, "--out", &directory]].concat());
    made.text();
    let shown = smt(&["keys", "show", &files.path("localhost.pem")]);
    let line = format!("spiffe id    {id}\n");
    assert!(shown.text().contains(&line), "{}", shown.text());
    let serving = Serving::start(&files, &["--echo"]);
    let authority = files.path("ca.pem");
    let call = |id| {
        let words = ["call", serving.address(), "--ca", &authority];
        smt_with_input(&[&words[..], &["--server-id", id]].concat(), b"hi")
    };
    assert_eq!(call(id).text(), "hi");
    let other = "spiffe://prod.example/web";
    call(other).fails(3, &["was called by the SPIFFE ID", other, id]);
    let bad = smt(&[
        "keys",
        "server",
        "x",
        "--uri",
        "spiffe://Prod/db",
        "--ca",
        &directory,
        "--out",
        &directory,
    ]);
    assert_eq!(bad.status.code(), Some(2));
    let says = "the trust domain of a SPIFFE ID";
    assert!(bad.errors.contains(says), "{}", bad.errors);
}

#[test]
fn peers_know_each_other_by_public_keys_alone() {
    let files = Files::new();
    let directory = files.path("");
    let raw = |name, kind| {
        let words = ["keys", "raw", name, "--out", &directory, "--force"];
        smt(&[&words[..], &["--key-kind", kind]].concat()).text();
    };
    raw("localhost", "ed25519");
    raw("alice", "ml-dsa-65");
    raw("bob", "ecdsa-p256");
    let words = ["--client-pin", &files.path("alice.pem"), "--exec", "env"];
    let serving = Serving::start(&files, &words);
    let call = |name: &str, pinned: &str| {
        let [cert, key] = ["pem", "key"].map(|kind| files.path(&format!("{name}.{kind}")));
        let words = ["call", serving.address(), "--cert", &cert, "--key", &key];
        smt_with_input(&[&words[..], &["--pin", &files.path(pinned)]].concat(), b"")
    };
    let outcome = call("alice", "localhost.pem");
    let variables = variables(outcome.text());
    let hash = variables.iter().find_map(|line| line.strip_prefix("SMT_PEER_KEY_SHA256="));
    let shown = smt(&["keys", "show", &files.path("alice.pem")]);
    let told = format!("\nfingerprint  sha256 {}\n", hash.unwrap());
    assert!(shown.text().ends_with(&told), "{}", shown.text());
    call("bob", "localhost.pem").fails(3, &["pinned"]);
    call("alice", "bob.pem").fails(3, &["pinned"]);
}
