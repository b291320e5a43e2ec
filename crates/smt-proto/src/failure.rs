// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The answer of an application that a request has failed (SPEC §5.2): a code and a text.
//!
//! It travels as a reply does, and ends the call as an error. A text is never too long: both ends
//! cut it, since a caller needs the code in any case.

use alloc::string::String;

use crate::metadata::Metadata;
use bytes::Bytes;
use smt_wire::{FAILURE_TEXT_MAX, FailureMark, Harmless};

/// The answer of a server's application that a request has failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The application's own number for the cause.
    pub code: u32,
    /// The cause in words. Bytes beyond 1,024, or beyond what the peer accepts in a message, are
    /// cut off.
    pub text: String,
    /// Whether the request did not run: its caller may repeat it.
    pub not_run: bool,
    /// Named values beside the text.
    pub metadata: Metadata,
}

impl Failure {
    /// The application refuses the request, which did not run.
    #[must_use]
    pub fn refusal(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), not_run: true, metadata: Metadata::new() }
    }

    /// The request has failed, and may have run, wholly or in part.
    #[must_use]
    pub fn failed(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), not_run: false, metadata: Metadata::new() }
    }

    pub(crate) fn mark(&self) -> FailureMark {
        FailureMark { code: self.code, not_run: self.not_run }
    }

    /// The text as it leaves for a peer that accepts so many bytes.
    pub(crate) fn into_text(self, accepted: usize) -> Bytes {
        let mut text = self.text;
        let most = FAILURE_TEXT_MAX.min(accepted);
        cut(&mut text, most);
        Bytes::from(text)
    }

    /// The failure that a reply with this mark is. Bytes that are no UTF-8 are replaced.
    pub(crate) fn from_reply(mark: FailureMark, text: &[u8], metadata: Metadata) -> Self {
        let text = &text[..text.len().min(FAILURE_TEXT_MAX)];
        let mut text = String::from_utf8_lossy(text).into_owned();
        // A replacement is longer than what it replaces.
        cut(&mut text, FAILURE_TEXT_MAX);
        Self { code: mark.code, text, not_run: mark.not_run, metadata }
    }
}

/// Text and code, without a judgement on them. Characters that would control a terminal or begin a
/// line of a log are replaced: the words are a peer's.
impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.text.is_empty() {
            true => write!(f, "code {}", self.code),
            false => write!(f, "{} (code {})", Harmless(&self.text), self.code),
        }
    }
}

/// Cuts a text to at most so many bytes, where a character ends.
fn cut(text: &mut String, most: usize) {
    let fits = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=most.min(text.len())).rev().find(fits);
    text.truncate(end.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const MARK: FailureMark = FailureMark { code: 7, not_run: true };

    // SMT [5.2-8]
    #[test]
    fn a_text_that_is_too_long_is_cut_where_a_character_ends() {
        let long = "x".to_owned() + &"é".repeat(600);
        let text = Failure::refusal(7, long.clone()).into_text(usize::MAX);
        assert_eq!(text, long.as_bytes()[..1_023]);
        let text = Failure::refusal(7, "éé").into_text(3);
        assert_eq!(text, "é".as_bytes());
    }

    #[test]
    fn words_of_a_peer_neither_control_a_terminal_nor_forge_a_line() {
        let hostile = Failure::failed(7, "no \u{1b}[2J\u{7}\u{202e}gnp\u{2066}\nforged ü");
        let shown = "no \u{fffd}[2J\u{fffd}\u{fffd}gnp\u{fffd}\u{fffd}forged ü (code 7)";
        assert_eq!(hostile.to_string(), shown);
        assert_eq!(Failure::failed(7, "").to_string(), "code 7");
    }

    // SMT [5.2-9]
    #[test]
    fn a_text_of_a_peer_that_breaks_the_rules_is_cut_and_made_utf_8() {
        let failure = Failure::from_reply(MARK, b"a\xFFb", Metadata::new());
        assert_eq!((failure.text.as_str(), failure.code), ("a\u{FFFD}b", 7));
        assert!(failure.not_run);
        for byte in [b'x', 0xFF] {
            let text = Failure::from_reply(MARK, &vec![byte; 5_000], Metadata::new()).text;
            assert!((1_022..=1_024).contains(&text.len()), "{}", text.len());
        }
    }
}
