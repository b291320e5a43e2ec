// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump` of a real exchange.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::capture::{pcap, pcapng};
use crate::forwarder::{Forwarder, Seen};
use crate::program::{Files, Serving, command, noise, smt};

/// A call of this request through a forwarder; everything that travelled, and the port it went to.
pub(crate) fn exchange(files: &Files, request: &[u8]) -> (Vec<Seen>, String) {
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
        let dump = || smt(&["dump", &capture, "--port", &port, "--key-log", &log, "--out", &out]);
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
        assert!(outcome.errors.contains("0 FAILED; 2 messages whole, 0 not"), "{}", outcome.errors);
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
    assert!(joined.iter().any(|batch| batch.payload.len() > 2_400), "nothing was joined");
    let capture = files.write("capture", pcap(&joined));
    let outcome = smt(&["dump", &capture, "--port", &port, "--key-log", &files.path("key-log")]);
    assert!(outcome.text().contains("whole: REQUEST of 50000 bytes"));
    assert!(outcome.errors.contains("0 FAILED; 2 messages whole, 0 not"), "{}", outcome.errors);
}

#[test]
fn damaged_packets_are_told_and_the_others_stand() {
    let files = Files::new();
    let (mut seen, port) = exchange(&files, &noise(3_000));
    let damaged = seen.iter_mut().find(|seen| is_data(&seen.payload)).unwrap();
    *damaged.payload.last_mut().unwrap() ^= 1;
    let capture = files.write("capture", pcap(&seen));
    let outcome = smt(&["dump", &capture, "--port", &port, "--key-log", &files.path("key-log")]);
    assert!(outcome.text().contains("FAILED"), "{}", outcome.text());
    assert!(outcome.errors.contains("1 messages whole"), "{}", outcome.errors);
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
    let secret = format!("SMT_SECRET 0000000000000001 client data 0 1301 {}\n", "ab".repeat(32));
    let (capture, log) = (files.write("capture", pcap(&seen)), files.write("other", secret));
    let outcome = smt(&["dump", &capture, "--port", &port, "--key-log", &log]);
    assert!(outcome.text().contains("[no key]"));
    assert!(outcome.errors.contains("0 records and tags ok, 0 FAILED"), "{}", outcome.errors);
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

#[test]
fn a_capture_that_is_still_being_made_is_shown_as_it_grows() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    for (name, whole, begun) in [
        ("pcap", pcap(&seen), pcap(&seen[..1]).len()),
        ("pcapng", pcapng(&seen), pcapng(&seen[..1]).len()),
    ] {
        let words = ["dump", "-", "--port", &port];
        let mut dump = command(&words).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = dump.stdin.take().unwrap();
        let mut output = BufReader::new(dump.stdout.take().unwrap());
        let mut shown = String::new();
        input.write_all(&whole[..begun]).unwrap();
        // The input has not ended.
        output.read_line(&mut shown).unwrap();
        assert!(shown.contains("HANDSHAKE "), "{name}: {shown}");
        input.write_all(&whole[begun..]).unwrap();
        drop(input);
        output.read_to_string(&mut shown).unwrap();
        assert!(dump.wait().unwrap().success());
        let file = files.write(name, whole);
        assert_eq!(shown, smt(&["dump", &file, "--port", &port]).text());
    }
}

#[test]
fn a_live_capture_outlives_ctrl_c_until_it_ends() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let capture = pcap(&seen);
    let words = ["dump", "-", "--rpcs", "--port", &port];
    let dump = command(&words).stdin(Stdio::piped()).spawn();
    let mut dump = dump.unwrap();
    let mut input = dump.stdin.take().unwrap();
    input.write_all(&capture).unwrap();
    // It has read the beginning, and therefore taken the signals over before.
    while rustix::io::ioctl_fionread(&input).unwrap() > 0 {
        std::thread::yield_now();
    }
    let process = rustix::process::Pid::from_child(&dump);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    drop(input);
    let outcome = dump.wait_with_output().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert!(String::from_utf8(outcome.stdout).unwrap().contains("replied"));
}

#[test]
fn every_packet_is_an_object_for_programs() {
    let files = Files::new();
    let (seen, port) = exchange(&files, &noise(3_000));
    let (capture, log) = (files.write("capture", pcap(&seen)), files.path("key-log"));
    let words = ["dump", &capture, "--port", &port, "--key-log", &log];
    let lines = smt(&words).text().lines().count();
    let objects = objects(&[&words[..], &["--json"]].concat());
    let facts: Vec<&Value> = objects
        .iter()
        .flat_map(|packet| packet["facts"].as_array().into_iter().flatten())
        .collect();
    assert_eq!(objects.len() + facts.len(), lines);
    for packet in &objects {
        assert_eq!((&packet["schema"], &packet["kind"]), (&1.into(), &"packet".into()));
        assert!(packet["time_ns"].as_u64().unwrap() > 0);
        let text = packet["text"].as_str().unwrap();
        assert!(text.starts_with(packet["type"].as_str().unwrap()), "{text}");
    }
    let of = |ty: &str| objects.iter().find(|packet| packet["type"] == ty).unwrap();
    assert_eq!(of("CONFIRM")["remark"], "tag_ok");
    let data = of("DATA");
    assert_eq!((&data["message_length"], &data["offset"]), (&3_040.into(), &0.into()));
    assert_eq!(data["session"].as_str().unwrap().len(), 16);
    let whole = |message: &str| {
        facts.iter().any(|fact| {
            fact["fact"] == "whole" && fact["message"] == message && fact["length"] == 3_000
        })
    };
    assert!(whole("REQUEST") && whole("REPLY"), "{facts:?}");
}

#[test]
fn every_rpc_is_a_row_with_sizes_latency_and_outcome() {
    let files = Files::new();
    let (seen, port) = exchange(&files, &noise(30_000));
    let (capture, log) = (files.write("capture", pcap(&seen)), files.path("key-log"));
    let words = ["dump", &capture, "--port", &port, "--rpcs"];
    let text = smt(&words).text().to_owned();
    let [heading, row] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(heading.contains("latency us") && row.contains("30000") && row.ends_with("replied"));
    for (more, message) in [(&[][..], Value::Null), (&["--key-log", &log], "REQUEST".into())] {
        let [rpc] = &objects(&[&words[..], &["--json"], more].concat())[..] else { panic!("one") };
        assert_eq!((&rpc["kind"], &rpc["message"]), (&"rpc".into(), &message));
        assert_eq!((&rpc["request_bytes"], &rpc["reply_bytes"]), (&30_000.into(), &30_000.into()));
        assert!(rpc["latency_us"].as_f64().unwrap() > 0.0);
        let packets = objects(&[&words[..4], &["--json"]].concat());
        let data = packets.iter().filter(|packet| packet["type"] == "DATA");
        let data = data.count();
        assert_eq!(rpc["packets"], data, "{rpc}");
        assert_eq!(rpc["outcome"], "replied");
        assert!(rpc["callee"].as_str().unwrap().ends_with(&format!(":{port}")));
    }
}

#[test]
fn an_rpc_without_its_reply_is_told() {
    let files = Files::new();
    let (mut seen, port) = exchange(&files, &noise(3_000));
    let server = seen[0].target;
    seen.retain(|seen| seen.source != server || !seen.payload.starts_with(&[1, 1]));
    // One packet of the request comes again, marked as such.
    let mut again = seen.iter().find(|seen| is_data(&seen.payload)).unwrap().clone();
    let marked = seen.iter().filter(|seen| is_data(&seen.payload) && is_retransmission(seen));
    let before = marked.count();
    again.payload[FLAGS] |= RETRANSMIT;
    seen.push(again);
    let capture = files.write("capture", pcap(&seen));
    let [rpc] = &objects(&["dump", &capture, "--port", &port, "--rpcs", "--json"])[..] else {
        panic!("one")
    };
    assert_eq!((&rpc["reply_bytes"], &rpc["latency_us"]), (&Value::Null, &Value::Null));
    assert_eq!(rpc["retransmissions"], before + 1);
    assert!(rpc["outcome"] == "no reply" || rpc["outcome"] == "acknowledged", "{rpc}");
}

#[test]
fn one_session_or_one_rpc_is_shown_alone() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    let forwarder = Forwarder::start(serving.address());
    let address = forwarder.address().to_string();
    for count in ["2", "1"] {
        files.run_call(&address, &["--count", count], b"hi").text();
    }
    let (seen, port) = (forwarder.end(), address.rsplit_once(':').unwrap().1);
    let capture = files.write("capture", pcap(&seen));
    let all = ["dump", &capture, "--port", port, "--json"];
    let rpcs = objects(&[&all[..], &["--rpcs"]].concat());
    let [first, second, third] = &rpcs[..] else { panic!("{rpcs:?}") };
    assert_eq!(first["session"], second["session"]);
    assert_ne!(first["session"], third["session"]);
    let session = third["session"].as_str().unwrap();
    let of_session = [&all[..], &["--session", session]].concat();
    assert_eq!(objects(&[&of_session[..], &["--rpcs"]].concat()), std::slice::from_ref(third));
    let packets = objects(&of_session);
    // Both directions of it, and nothing of the other session.
    let clients = |packets: &[Value]| -> BTreeSet<String> {
        let ends = packets.iter().flat_map(|packet| [&packet["source"], &packet["target"]]);
        let ends = ends.map(|end| end.as_str().unwrap().to_owned());
        ends.filter(|end| *end != address).collect()
    };
    assert_eq!((clients(&packets).len(), clients(&objects(&all)).len()), (1, 2));
    assert!(packets.iter().any(|packet| packet["source"] == address.as_str()));
    let id = second["id"].to_string();
    let of_rpc = [&all[..], &["--rpc", &id]].concat();
    assert!(objects(&of_rpc).iter().all(|packet| {
        let ids = packet["ids"].as_array();
        packet["id"] == second["id"] || ids.is_some_and(|ids| ids.contains(&second["id"]))
    }));
    assert_eq!(objects(&[&of_rpc[..], &["--rpcs"]].concat()), std::slice::from_ref(second));
    for wrong in [["--session", "x"], ["--rpc", "x"]] {
        assert_eq!(smt(&[&all[..], &wrong].concat()).status.code(), Some(2));
    }
}

#[test]
fn rpcs_before_the_damage_are_shown_and_then_the_damage_is_the_failure() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let damaged = [pcap(&seen), vec![0; 512]].concat();
    let capture = files.write("damaged", damaged);
    let outcome = smt(&["dump", &capture, "--port", &port, "--rpcs"]);
    assert_eq!(outcome.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&outcome.output).into_owned();
    assert!(shown.contains("replied"), "{shown}");
    let [.., summary, error] = outcome.errors.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", outcome.errors)
    };
    assert!(summary.contains(" frames: "), "{summary}");
    assert!(error.contains("damaged: the capture is damaged behind its first "), "{error}");
}

#[test]
fn frames_that_cannot_be_read_are_no_wrong_port() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let mut capture = pcap(&seen);
    // The link type is the last word of the file's header, in either byte order.
    capture[20..24].copy_from_slice(&[147, 0, 0, 147]);
    let capture = files.write("user0", capture);
    let outcome = smt(&["dump", &capture, "--port", &port]);
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.errors.contains("no frame can be read here"), "{}", outcome.errors);
    assert!(outcome.errors.contains("of link type 147 (USER0)"), "{}", outcome.errors);
    assert!(!outcome.errors.contains("--port"), "{}", outcome.errors);
}

/// The lines of `smt`'s output, each an object.
fn objects(words: &[&str]) -> Vec<Value> {
    let outcome = smt(words);
    let lines = outcome.text().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_retransmission(seen: &Seen) -> bool {
    seen.payload[FLAGS] & RETRANSMIT != 0
}

fn is_data(payload: &[u8]) -> bool {
    // A DATA packet that goes to the end of its datagram.
    payload.starts_with(&[1, 1]) && payload[6..8] == [0, 0]
}

/// Where a packet's flags are, and the one of a retransmission (SPEC §3.1).
const FLAGS: usize = 3;
const RETRANSMIT: u8 = 1;

/// A key log of one session.
const KEY: &str = "SMT_SECRET 0000000100000001 client data 0 1301 \
     000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
