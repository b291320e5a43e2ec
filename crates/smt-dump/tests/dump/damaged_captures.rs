// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures with an end that is no part of them: all before it is shown like a whole capture.

use std::io::{self, Read};
use std::path::Path;

use smt_dump::{DumpError, Keys, Summary, Wishes, dump};

use crate::conversation::{SERVER, captured, pcap_header};

const NAME: &str = "reply_in_parts_at_client";

/// The output for a capture, and its summary.
fn shown(capture: &[u8], wishes: Wishes) -> (String, Summary) {
    let mut output = Vec::new();
    let summary = dump(capture, Wishes { port: SERVER, ..wishes }, &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

/// The three ways in which RPCs and packets are shown.
fn all_wishes(keys: impl Fn() -> Keys) -> [Wishes; 3] {
    [
        Wishes { keys: Some(keys()), ..Wishes::default() },
        Wishes { keys: Some(keys()), is_by_rpc: true, ..Wishes::default() },
        Wishes { is_by_rpc: true, ..Wishes::default() },
    ]
}

#[test]
fn all_before_zeros_or_another_capture_is_shown_as_without_them() {
    let (whole, _) = captured(NAME);
    let keys = || captured(NAME).1;
    for (behind, told) in [(vec![0; 512], "zeros"), (whole.clone(), "another capture begins here")]
    {
        let damaged = [&whole[..], &behind].concat();
        for (expected, wishes) in all_wishes(keys).into_iter().zip(all_wishes(keys)) {
            let (expected, intact) = shown(&whole, expected);
            let (output, summary) = shown(&damaged, wishes);
            assert_eq!(output, expected);
            assert_eq!(summary.text, intact.text);
            assert!(intact.stopped_by.is_none());
            let error = summary.stopped_by.unwrap().to_string();
            let place = format!(
                "the capture is damaged behind its first {} frames, at byte {}: {told}",
                summary.frames,
                whole.len()
            );
            assert!(error.starts_with(&place), "{error}");
        }
    }
}

/// A file whose reader finds that a directory is gone.
struct Removing<'a> {
    directory: &'a Path,
    rest: &'a [u8],
}

impl Read for Removing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let _ = std::fs::remove_dir_all(self.directory);
        self.rest.read(buffer)
    }
}

#[test]
fn rpcs_are_shown_if_messages_cannot_be_written_any_more() {
    let (whole, keys) = captured(NAME);
    let directory = std::env::temp_dir().join(format!("smt-dump-{}", std::process::id()));
    let wishes = Wishes {
        port: SERVER,
        keys: Some(keys),
        is_by_rpc: true,
        directory: Some(directory.clone()),
        ..Wishes::default()
    };
    let (header, frames) = whole.split_at(pcap_header(0).len());
    let capture = header.chain(Removing { directory: &directory, rest: frames });
    let mut output = Vec::new();
    let summary = dump(capture, wishes, &mut output).unwrap();
    let error = summary.stopped_by.unwrap();
    assert!(
        matches!(&error, DumpError::Message(path, _) if path.starts_with(&directory)),
        "{error}"
    );
    let output = String::from_utf8(output).unwrap();
    assert!(output.contains("replied"), "{output}");
}

#[test]
fn a_file_that_does_not_begin_as_a_capture_is_an_error() {
    let error = dump(&b"hello there"[..], Wishes::default(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, DumpError::NoCapture(_)), "{error}");
}
