// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of a receiver of a bundle's application bytes, written from SPEC §5.7 alone.
//!
//! No line of it is shared with the parser: where the two differ one of them is wrong.

use std::ops::Range;

use crate::kind_fields;

/// Where the members' application bytes are; `None` if that is no bundle.
pub(super) fn judge(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut bodies = Vec::new();
    let mut rest = 0..bytes.len();
    while !rest.is_empty() {
        let is_member = rest.len() >= HEADER && {
            let [kind, flags] = [bytes[rest.start + KIND], bytes[rest.start + FLAGS]];
            KINDS.contains(&kind) && kind_fields::are_permitted(kind, flags)
        };
        let length = is_member.then(|| stated_length(bytes, rest.start))?;
        let body = rest.start + HEADER;
        if length > rest.end - body {
            return None;
        }
        rest.start = body + length;
        bodies.push(body..rest.start);
    }
    // "At least one".
    (!bodies.is_empty()).then_some(bodies)
}

/// Writes kinds, flags and lengths so that these bytes are a list of members, or removes them all:
/// a member is as long as it says if that leaves room for another, else it takes the rest.
pub(super) fn make_well_formed(bytes: &mut Vec<u8>) {
    if bytes.len() < HEADER {
        bytes.clear();
    }
    bytes.truncate(LENGTH_MAX);
    let mut at = 0;
    while at < bytes.len() {
        let most = bytes.len() - at - HEADER;
        // Short ones, so that there are several.
        let said = stated_length(bytes, at) % 64;
        let length = if said + HEADER <= most { said } else { most };
        let kind = KINDS[usize::from(bytes[at + KIND]) % KINDS.len()];
        bytes[at + KIND] = kind;
        bytes[at + FLAGS] &= kind_fields::flags_of(kind);
        if !kind_fields::are_permitted(kind, bytes[at + FLAGS]) {
            bytes[at + FLAGS] = 0;
        }
        bytes[at + LENGTH] = (length >> 8) as u8;
        bytes[at + LENGTH + 1] = length as u8;
        at += HEADER + length;
    }
}

fn stated_length(bytes: &[u8], member: usize) -> usize {
    usize::from(bytes[member + LENGTH]) << 8 | usize::from(bytes[member + LENGTH + 1])
}

/// The kinds of members.
const KINDS: [u8; 4] = [1, 2, 3, 5];
/// Bytes before a member's own.
const HEADER: usize = 20;
/// Places in them.
const KIND: usize = 8;
const FLAGS: usize = 9;
const LENGTH: usize = 10;
/// A member's length has 16 bits.
const LENGTH_MAX: usize = 65_535;
