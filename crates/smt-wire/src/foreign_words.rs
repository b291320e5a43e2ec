// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of another host, as a terminal and a log may show them.

use core::fmt::{self, Write as _};

/// Shows a text of another host with a mark in the place of each character that controls a
/// terminal, ends a line, or changes the direction of others (Unicode TR9).
///
/// ```
/// # use smt_wire::Harmless;
/// assert_eq!(Harmless("no\nforged line").to_string(), "no\u{FFFD}forged line");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Harmless<'a>(pub &'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            f.write_char(if moves_others(letter) { char::REPLACEMENT_CHARACTER } else { letter })?;
        }
        Ok(())
    }
}

fn moves_others(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn characters_that_move_others_are_marked() {
        let text = "no \u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnp\u{2066}\u{200f}\nforged line ü";
        let expected = "no \u{fffd}[2J\u{fffd}]0;owned\u{fffd}\u{fffd}gnp\u{fffd}\u{fffd}\u{fffd}forged line ü";
        assert_eq!(Harmless(text).to_string(), expected);
    }
}
