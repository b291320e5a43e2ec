// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures of calls in parts, as lines.

use smt_dump::{Wishes, dump};

use crate::conversation::{SERVER, captured};

/// The lines of a conversation, as its client has had it.
fn lines_of(name: &str) -> Vec<String> {
    let (capture, keys) = captured(name);
    let mut output = Vec::new();
    let wishes = Wishes { port: SERVER, keys: Some(keys), ..Wishes::default() };
    let summary = dump(&capture[..], wishes, &mut output).unwrap();
    assert!(summary.text.contains(" 0 FAILED; "), "{}", summary.text);
    let text = String::from_utf8(output).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Those that end so, in their order.
fn that_say<'a>(lines: &'a [String], what: &str) -> Vec<&'a str> {
    let said = lines.iter().filter_map(|line| Some(&line[line.find(what)?..]));
    said.collect()
}

#[test]
fn each_part_of_a_reply_is_told_with_its_request_and_number() {
    let lines = lines_of("reply_in_parts_at_client");
    let parts = that_say(&lines, "whole: PART");
    let number = |number: u32, length: u32| {
        format!("whole: PART of {length} bytes, of request 0, number {number}, parts follow")
    };
    // The third is lost at first, the fourth comes late, and the last two are in a bundle, the
    // shorter one in front.
    let expected = [(0, 100), (1, 5_000), (4, 400), (6, 0), (5, 10), (3, 300), (2, 200)];
    assert_eq!(parts, expected.map(|(at, length)| number(at, length)));
    let replies = that_say(&lines, "whole: REPLY");
    assert_eq!(replies, ["whole: REPLY of 20 bytes, of 7 parts"]);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("REQUEST of 100 bytes") && line.contains("reply in parts")),
        "{lines:#?}"
    );
}

#[test]
fn the_last_part_of_a_request_and_the_windows_are_told() {
    let lines = lines_of("request_in_parts_at_client");
    let parts = that_say(&lines, "whole: PART");
    assert_eq!(
        parts,
        [
            "whole: PART of 1500 bytes, of request 0, number 0, parts follow",
            "whole: PART of 1500 bytes, of request 0, number 1, parts follow",
            "whole: PART of 1000 bytes, of request 0, number 2, parts follow",
            "whole: PART of 0 bytes, of request 0, number 3, the last",
        ]
    );
    assert_eq!(that_say(&lines, "PART_WINDOW_REQUEST").len(), 2);
    let windows = that_say(&lines, "id 0 limit");
    assert_eq!(windows, ["id 0 limit 4096 [tag ok]", "id 0 limit 8120 [tag ok]"]);
}
