// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies on a terminal, which would act on some of their bytes.
//!
//! Control characters and bytes that are no text are shown escaped. Pipes and files get replies as
//! they are.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::standard_error;

/// A terminal as standard output.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    has_told: bool,
}

impl Terminal {
    /// Writes a reply, and tells once if it is not shown as it is.
    pub(super) fn write(&mut self, reply: &[u8]) -> io::Result<()> {
        let (shown, is_escaped) = shown(reply);
        let mut output = io::stdout().lock();
        output.write_all(shown.as_bytes())?;
        output.flush()?;
        if is_escaped && !self.has_told {
            self.has_told = true;
            standard_error::tell(
                "the reply has bytes that are no text or that a terminal acts on: they are shown escaped, and --out FILE or a pipe gets them as they are",
            );
        }
        Ok(())
    }
}

/// A reply as a terminal shows it, and whether something in it was escaped.
fn shown(reply: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(reply.len());
    let mut is_escaped = false;
    for chunk in reply.utf8_chunks() {
        let mut characters = chunk.valid().chars().peekable();
        while let Some(character) = characters.next() {
            let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
            if is_line_end || matches!(character, '\n' | '\t') || !character.is_control() {
                text.push(character);
            } else {
                is_escaped = true;
                text.extend(character.escape_default());
            }
        }
        for byte in chunk.invalid() {
            is_escaped = true;
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    (text, is_escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_it_is() {
        for text in ["", "hi\n", "a\tb\r\nü→🦀\n", r"back\slash"] {
            assert_eq!(shown(text.as_bytes()), (text.to_owned(), false));
        }
    }

    #[test]
    fn control_characters_and_bytes_that_are_no_text_are_escaped() {
        for (bytes, text) in [
            (&b"a\x1b[2Jb"[..], r"a\u{1b}[2Jb"),
            (b"over\rwritten", r"over\rwritten"),
            ("\u{9B}5n".as_bytes(), r"\u{9b}5n"),
            (b"\xff\xfe\0", r"\xff\xfe\u{0}"),
        ] {
            assert_eq!(shown(bytes), (text.to_owned(), true));
        }
    }
}
