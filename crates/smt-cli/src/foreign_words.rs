// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words of another host, as a terminal and a log may show them.

/// The text with a mark in the place of each character that controls a terminal, ends a line or
/// changes the direction of others.
pub(crate) fn harmless(text: &str) -> String {
    let moves = |letter: char| {
        letter.is_control() || matches!(letter, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|letter| if moves(letter) { '\u{FFFD}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_move_others_are_marked() {
        let text = "no \u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnp\u{2066}\nforged line ü";
        let expected =
            "no \u{fffd}[2J\u{fffd}]0;owned\u{fffd}\u{fffd}gnp\u{fffd}\u{fffd}forged line ü";
        assert_eq!(harmless(text), expected);
    }
}
