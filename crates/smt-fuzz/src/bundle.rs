// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The members of a bundle (SPEC §5.7): taken as a whole or refused as a whole.
//!
//! 1. The input is a bundle's application bytes. `model` says by itself what the specification
//!    permits; both agree.
//! 2. Members lie one behind the other from the first byte to the last: nothing overlaps, nothing
//!    is left over.
//! 3. Every member is emitted again: the same bytes, but for those that a receiver ignores, which
//!    become zero.
//! 4. The input is made a list of members, and that is checked too, with a byte more and one less:
//!    else hardly any change of a length would get past the first member.

mod model;

use std::ops::Range;

use smt_wire::{MemberHeader, Members};

use crate::kind_fields;
use model::judge;

/// Checks one bundle.
pub fn check(input: &[u8]) {
    check_list(input);
    let mut list = input.to_vec();
    model::make_well_formed(&mut list);
    if list.is_empty() {
        return;
    }
    assert!(Members::parse(&list).is_ok(), "these are members");
    check_list(&list);
    check_list(&list[..list.len() - 1]);
    list.push(0);
    check_list(&list);
}

fn check_list(bytes: &[u8]) {
    let (parsed, expected) = (Members::parse(bytes), judge(bytes));
    let Ok(members) = parsed else {
        assert_eq!(expected, None, "the specification permits this bundle");
        return;
    };
    let expected = expected.expect("the specification does not permit this bundle");
    let newcomers = members.newcomers();
    let members: Vec<_> = members.collect();
    let bodies: Vec<_> = members.iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(bodies, expected, "a member lies elsewhere");
    let arrive = members.iter().filter(|(header, _)| header.kind as u8 != REPLY);
    assert_eq!(newcomers, arrive.count());
    check_emission(bytes, &members);
}

fn check_emission(bytes: &[u8], members: &[(MemberHeader, Range<usize>)]) {
    let mut out = Vec::with_capacity(bytes.len());
    let mut expected = bytes.to_vec();
    for (header, body) in members {
        let start = out.len();
        assert_eq!(body.start, start + MemberHeader::LEN, "bytes are left out or used twice");
        assert_eq!(body.len(), usize::from(header.length));
        let mut emitted = [0xEE; MemberHeader::LEN];
        header.emit(&mut emitted);
        out.extend_from_slice(&emitted);
        out.extend_from_slice(&bytes[body.clone()]);
        let (kind, flags) = (expected[start + 8], expected[start + 9]);
        kind_fields::clear_words(kind, flags, &mut expected[start + 12..start + 20]);
    }
    assert_eq!(out, expected, "emitted again it is another bundle");
}

const REPLY: u8 = 2;
