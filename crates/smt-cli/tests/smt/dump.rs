// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump` of a real exchange.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::capture::{pcap, pcapng};
use crate::forwarder::{Forwarder, Seen};
use crate::program::{Files, Serving, noise, smt};

/// A call of this request through a forwarder; everything that travelled, and the port it went to.
fn exchange(files: &Files, request: &[u8]) -> (Vec<Seen>, String) {
    let serving = Serving::start(files, &["--echo"]);
    let forwarder = Forwarder::start(serving.address());
    let address = forwarder.address();
    let more = ["--key-log", &files.path("key-log")];
    let outcome = files.run_call(&address.to_string(), &more, request);
    assert!(outcome.output == request, "{}", outcome.errors);
    (forwarder.end(), address.port().to_string())
}

#[test]
fn every_message_comes_out_whole_with_the_key_log() {
    let files = Files::new();
    let request = noise(100_000);
    let (seen, port) = exchange(&files, &request);
    for (name, bytes) in [("pcap", pcap(&seen)), ("pcapng", pcapng(&seen))] {
        let (capture, out) = (files.write(name, bytes), files.path(&format!("{name}-out")));
        let log = files.path("key-log");
        let dump = || {
            smt(&[
                "dump",
                &capture,
                "--port",
                &port,
                "--key-log",
                &log,
                "--out",
                &out,
            ])
        };
        let outcome = dump();
        let text = outcome.text();
        for words in [
            "HANDSHAKE ",
            "CONFIRM epoch 0",
            "[tag ok]",
            "record 0 ok: REQUEST of 100000 bytes",
            "record 1 ok: 16384 bytes",
            "whole: REPLY of 100000 bytes",
        ] {
            assert!(text.contains(words), "{words:?} is not in:\n{text}");
        }
        assert!(!text.contains("FAILED"), "{text}");
        assert!(
            outcome.errors.contains("0 FAILED; 2 messages whole, 0 not"),
            "{}",
            outcome.errors
        );
        let messages = || -> Vec<_> {
            let entries = fs::read_dir(&out).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        assert_eq!(messages().len(), 2);
        for message in messages() {
            assert!(fs::read(&message).unwrap() == request);
            let mode = fs::metadata(&message).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "it was encrypted");
            fs::write(message, "somebody's").unwrap();
        }
        // Files that exist already stay.
        dump().text();
        let contents = messages().into_iter().map(|path| fs::read(path).unwrap());
        let kept = contents.filter(|bytes| bytes == b"somebody's").count();
        assert_eq!((messages().len(), kept), (4, 2));
    }
}

#[test]
fn datagrams_of_one_send_call_are_told_apart() {
    let files = Files::new();
    let request = noise(50_000);
    let (seen, port) = exchange(&files, &request);
    let mut joined: Vec<Seen> = Vec::new();
    for seen in seen {
        match joined.last_mut() {
            // As the kernel does: of one direction and size, the last may be smaller.
            Some(batch)
                if batch.source == seen.source
                    && is_data(&batch.payload)
                    && is_data(&seen.payload)
                    && batch.payload.len().is_multiple_of(seen.payload.len())
                    && batch.payload.len() + seen.payload.len() < 60_000 =>
            {
                batch.payload.extend(&seen.payload);
            }
            _ => joined.push(seen),
        }
    }
    assert!(
        joined.iter().any(|batch| batch.payload.len() > 2_400),
        "nothing was joined"
    );
    let capture = files.write("capture", pcap(&joined));
    let outcome = smt(&[
        "dump",
        &capture,
        "--port",
        &port,
        "--key-log",
        &files.path("key-log"),
    ]);
    assert!(outcome.text().contains("whole: REQUEST of 50000 bytes"));
    assert!(
        outcome.errors.contains("0 FAILED; 2 messages whole, 0 not"),
        "{}",
        outcome.errors
    );
}

#[test]
fn damaged_packets_are_told_and_the_others_stand() {
    let files = Files::new();
    let (mut seen, port) = exchange(&files, &noise(3_000));
    let damaged = seen.iter_mut().find(|seen| is_data(&seen.payload)).unwrap();
    *damaged.payload.last_mut().unwrap() ^= 1;
    let capture = files.write("capture", pcap(&seen));
    let outcome = smt(&[
        "dump",
        &capture,
        "--port",
        &port,
        "--key-log",
        &files.path("key-log"),
    ]);
    assert!(outcome.text().contains("FAILED"), "{}", outcome.text());
    assert!(
        outcome.errors.contains("1 messages whole"),
        "{}",
        outcome.errors
    );
}

#[test]
fn packets_are_lines_without_a_key_log() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let capture = files.write("capture", pcap(&seen));
    let outcome = smt(&["dump", &capture, "--port", &port]);
    let text = outcome.text();
    assert!(text.lines().all(|line| line.contains(" > ")), "{text}");
    assert!(text.contains("DATA epoch 0"), "{text}");
    assert!(!text.contains('['), "{text}");
}

#[test]
fn keys_of_another_session_are_no_keys() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let secret = format!(
        "SMT_SECRET 0000000000000001 client data 0 1301 {}\n",
        "ab".repeat(32)
    );
    let (capture, log) = (
        files.write("capture", pcap(&seen)),
        files.write("other", secret),
    );
    let outcome = smt(&["dump", &capture, "--port", &port, "--key-log", &log]);
    assert!(outcome.text().contains("[no key]"));
    assert!(
        outcome.errors.contains("0 records and tags ok, 0 FAILED"),
        "{}",
        outcome.errors
    );
}

#[test]
fn other_ports_are_named_if_nothing_is_found() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let capture = files.write("capture", pcap(&seen));
    let outcome = smt(&["dump", &capture, "--port", "1"]);
    assert_eq!(outcome.text(), "");
    assert!(
        outcome.errors.contains(&port) && outcome.errors.contains("--port"),
        "{}",
        outcome.errors
    );
}

#[test]
fn files_that_are_something_else_are_said() {
    let files = Files::empty();
    let empty = files.write("empty", "");
    let text = files.write("text", "hello");
    let binary = files.write("binary", [0xFF, 0xFE, 0, 1]);
    let broken = files.write("broken", "SMT_SECRET 1 2 3\n");
    let capture = files.write("capture", pcap(&[]));
    smt(&["dump", &files.path("missing")]).fails_with(&["missing", "No such file"]);
    smt(&["dump", &empty]).fails_with(&["is no capture", "nothing"]);
    let begun = files.write("begun", &pcap(&[])[..10]);
    smt(&["dump", &begun]).fails_with(&["is no capture", "before the first frame"]);
    smt(&["dump", &text]).fails_with(&["is no capture", "68 65 6c 6c"]);
    let (keys, out) = (files.write("keys", KEY), files.path("out"));
    let options = ["--key-log", &keys, "--out", &out];
    smt(&[&["dump", &text], &options[..]].concat()).fails_with(&["is no capture"]);
    assert!(!Path::new(&out).exists(), "made for nothing");
    smt(&["dump", &capture, "--key-log", &text]).fails_with(&["no key log"]);
    smt(&["dump", &capture, "--key-log", &binary]).fails_with(&["no key log"]);
    smt(&["dump", &capture, "--key-log", &broken]).fails_with(&["line 1 is no key log line"]);
}

fn is_data(payload: &[u8]) -> bool {
    // A DATA packet that goes to the end of its datagram.
    payload.starts_with(&[1, 1]) && payload[6..8] == [0, 0]
}

/// A key log of one session.
const KEY: &str = "SMT_SECRET 0000000100000001 client data 0 1301 \
     000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
