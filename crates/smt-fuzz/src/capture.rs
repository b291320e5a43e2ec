// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt dump`: whatever a file has, its packets are shown up to where it makes no sense.
//!
//! 1. The input is a key log up to its first empty line, and the capture behind that; or a capture
//!    alone.
//! 2. The output has no control character, so that no packet steers a terminal, and at most a line
//!    for each byte.
//! 3. A capture that was cut anywhere shows as much of the same, and is wrong only if it was or has
//!    no beginning.

use smt_dump::{DumpError, Keys, Wishes, dump};

/// Checks one file.
pub fn check(input: &[u8]) {
    let (log, capture) = match input.windows(2).position(|two| two == b"\n\n") {
        Some(end) => (&input[..=end], &input[end + 2..]),
        None => (&[][..], input),
    };
    let (shown, outcome) = show(log, capture);
    assert!(
        !shown.chars().any(|shown| shown.is_control() && shown != '\n'),
        "a control character: {shown:?}"
    );
    assert!(shown.lines().count() <= capture.len());
    let Some(last) = capture.last() else { return };
    let cut = &capture[..capture.len() * usize::from(*last) / 256];
    let (begun, cut_outcome) = show(log, cut);
    assert!(shown.starts_with(&begun), "{begun}\n\n{shown}");
    match (outcome, cut_outcome) {
        (Ok(()), Err(DumpError::NoCapture(_)) | Ok(())) | (Err(_), _) => {}
        (Ok(()), Err(error)) => panic!("only the shorter one is wrong: {error}"),
    }
}

fn show(log: &[u8], capture: &[u8]) -> (String, Result<(), DumpError>) {
    let wishes = Wishes {
        port: 17_379,
        native_protocol: Some(253),
        keys: Keys::parse(log).ok(),
        ..Wishes::default()
    };
    let mut shown = Vec::new();
    let outcome = dump(capture, wishes, &mut shown);
    let shown = String::from_utf8(shown).expect("what is shown is text");
    (shown, outcome.and_then(|summary| summary.stopped_by.map_or(Ok(()), Err)))
}
