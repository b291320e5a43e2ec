// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key log that grows while `smt dump` shows a capture that is still being made.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};

use crate::capture::pcap;
use crate::dump::exchange;
use crate::program::{Files, command, fifo};

/// `smt dump` of a capture on standard input.
struct Live {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
    errors: BufReader<std::process::ChildStderr>,
}

impl Live {
    fn start(words: &[&str]) -> Self {
        let mut child = command(words).stdin(Stdio::piped()).spawn().unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            errors: BufReader::new(child.stderr.take().unwrap()),
            child,
        }
    }

    /// All output up to a line with these words.
    fn until(&mut self, words: &str) -> String {
        let mut shown = String::new();
        while !shown.contains(words) {
            assert_ne!(self.output.read_line(&mut shown).unwrap(), 0, "{words}: {shown}");
        }
        shown
    }

    /// Ends the capture, and gives the rest of the output and of standard error.
    fn end(mut self) -> (String, String) {
        drop(self.input);
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        (output, errors)
    }
}

#[test]
fn a_key_log_that_comes_after_the_capture_has_begun_is_read() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let (log, capture) = (files.path("later"), pcap(&seen));
    let begun = pcap(&seen[..1]).len();
    let mut live = Live::start(&["dump", "-", "--port", &port, "--key-log", &log]);
    live.input.write_all(&capture[..begun]).unwrap();
    live.until("HANDSHAKE ");
    let mut told = String::new();
    live.errors.read_line(&mut told).unwrap();
    assert_eq!(told, format!("{log} is not there yet; its keys are read when it is\n"));
    fs::copy(files.path("key-log"), &log).unwrap();
    live.input.write_all(&capture[begun..]).unwrap();
    let (output, errors) = live.end();
    assert!(!output.contains("[no key]"), "{output}");
    assert!(errors.contains("0 FAILED; 2 messages whole, 0 not"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn keys_of_a_session_that_begins_later_are_read() {
    let (files, others) = (Files::new(), Files::new());
    let (first, port) = exchange(&files, b"hi");
    let (second, other_port) = exchange(&others, b"ho");
    let log = files.write("log", fs::read(files.path("key-log")).unwrap());
    let mut live = Live::start(&["dump", "-", "--port", &port, "--key-log", &log]);
    live.input.write_all(&pcap(&first)).unwrap();
    live.until("whole: REPLY of 2 bytes");
    let mut file = File::options().append(true).open(&log).unwrap();
    file.write_all(&fs::read(others.path("key-log")).unwrap()).unwrap();
    let mut second = second;
    let (from, to): (u16, u16) = (other_port.parse().unwrap(), port.parse().unwrap());
    for seen in &mut second {
        for end in [&mut seen.source, &mut seen.target] {
            if end.port() == from {
                end.set_port(to);
            }
        }
    }
    let header = pcap(&[]).len();
    live.input.write_all(&pcap(&second)[header..]).unwrap();
    let (output, errors) = live.end();
    assert!(output.contains("whole: REPLY of 2 bytes"), "{output}");
    assert!(errors.contains("0 FAILED; 4 messages whole, 0 not"), "{errors}");
}

#[test]
fn a_pipe_with_a_name_is_a_capture_that_is_still_being_made() {
    let files = Files::new();
    let (seen, port) = exchange(&files, b"hi");
    let (pipe, log) = (fifo(&files), files.path("later"));
    let mut live = Live::start(&["dump", &pipe, "--port", &port, "--key-log", &log]);
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    let begun = pcap(&seen[..1]).len();
    writer.write_all(&pcap(&seen)[..begun]).unwrap();
    live.until("HANDSHAKE ");
    fs::copy(files.path("key-log"), &log).unwrap();
    writer.write_all(&pcap(&seen)[begun..]).unwrap();
    drop(writer);
    let (_, errors) = live.end();
    assert!(errors.contains("0 FAILED; 2 messages whole, 0 not"), "{errors}");
}
