// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of the fields whose meaning follows from a message's kind, written from SPEC §5.2 alone.
//!
//! No line of it is shared with the parser: where the two differ one of them is wrong.

/// Whether a kind may have these flags, in a bundle or alone.
pub(crate) fn are_permitted(kind: u8, flags: u8) -> bool {
    let known = flags_of(kind);
    // NOT_RUN stands beside FAILURE alone.
    flags & !known == 0 && (flags & 2 == 0 || flags & 1 != 0)
}

/// The flags that a kind has.
pub(crate) fn flags_of(kind: u8) -> u8 {
    match kind {
        REQUEST => METADATA | REPLY_IN_PARTS | MORE,
        REPLY => METADATA | FAILURE | NOT_RUN,
        ONE_WAY => METADATA,
        PART => MORE,
        _ => 0,
    }
}

/// Makes zeros of the words behind the flags, 4 bytes each, where the kind has no such field.
pub(crate) fn clear_words(kind: u8, flags: u8, words: &mut [u8]) {
    let has_first = match kind {
        REQUEST | ONE_WAY | PART => true,
        REPLY => flags & FAILURE != 0,
        _ => false,
    };
    let has_second = matches!(kind, REQUEST | REPLY);
    let (first, second) = words.split_at_mut(4);
    if !has_first {
        first.fill(0);
    }
    if !has_second {
        second.fill(0);
    }
}

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ONE_WAY: u8 = 3;
const PART: u8 = 5;

const FAILURE: u8 = 0x01;
const NOT_RUN: u8 = 0x02;
const METADATA: u8 = 0x04;
const REPLY_IN_PARTS: u8 = 0x08;
const MORE: u8 = 0x10;
