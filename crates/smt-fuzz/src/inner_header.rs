// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inner header, and how its window field extends a limit (SPEC §5.2).
//!
//! The input is a header's 40 bytes and a limit known so far.

use smt_wire::InnerHeader;

use crate::kind_fields;

/// Checks one header. Input that is too short is taken as followed by zeros.
pub fn check(input: &[u8]) {
    let mut padded = [0; InnerHeader::LEN + 8];
    let length = input.len().min(padded.len());
    padded[..length].copy_from_slice(&input[..length]);
    let (bytes, known) = padded.split_first_chunk::<40>().expect("48 bytes");
    let known = u64::from_be_bytes(known.try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let is_permitted = (1..=5).contains(&bytes[8])
        && kind_fields::are_permitted(bytes[8], bytes[9])
        && u64::from(word(4)) >= 40 + u64::from(word(0));
    let Ok(header) = InnerHeader::parse(bytes) else {
        assert!(!is_permitted, "the specification permits this header");
        return;
    };
    assert!(is_permitted, "the specification does not permit this header");
    let mut out = [0xEE; InnerHeader::LEN];
    header.emit(&mut out);
    assert_eq!(out, expected(*bytes));
    check_window(&header, word(20), known);
}

/// The header with all that a receiver ignores as zero.
fn expected(mut bytes: [u8; InnerHeader::LEN]) -> [u8; InnerHeader::LEN] {
    bytes[10..12].fill(0);
    let (kind, flags) = (bytes[8], bytes[9]);
    kind_fields::clear_words(kind, flags, &mut bytes[12..20]);
    if bytes[32..40] == [0; 8] {
        bytes[24..32].fill(0);
    }
    bytes
}

/// The limit moves to the next number with these low 32 bits, if that is less than 2^31 away.
fn check_window(header: &InnerHeader, window: u32, known: u64) {
    let next = |known: u64| {
        let high = u128::from(known >> 32);
        [high, high + 1]
            .into_iter()
            .map(|high| high << 32 | u128::from(window))
            .find(|limit| *limit >= u128::from(known))
    };
    let limit = next(known).expect("one of two is not below");
    let is_near = limit - u128::from(known) < 1 << 31;
    let expected = u64::try_from(limit).ok().filter(|_| is_near);
    assert_eq!(header.extend_window(known), expected);
}
