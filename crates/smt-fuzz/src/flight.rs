// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flight bodies and the parameters in them (SPEC §6.1, §6.3).
//!
//! The input is a flight's body. Its parameters, and the input as a whole, are parsed as parameters
//! too. Accepted parameters are in the ranges of the specification; emitted again, the known ones
//! have the bytes that they came as. Not here: fragments of flights (see [`crate::packet`]).

use smt_wire::{FlightBody, Params};

/// Checks one flight body.
pub fn check(input: &[u8]) {
    check_params(input);
    let length = match input {
        [high, low, rest @ ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            (length <= rest.len()).then_some(length)
        }
        _ => None,
    };
    let Ok(body) = FlightBody::parse(input) else {
        assert_eq!(length, None, "the specification permits this flight");
        return;
    };
    assert_eq!(Some(body.params.len()), length);
    let mut out = vec![0xEE; body.flight_len()];
    assert_eq!(body.emit(&mut out), input.len());
    assert_eq!(out, input);
    check_params(body.params);
}

fn check_params(bytes: &[u8]) {
    let expected = permitted(bytes);
    let Ok(params) = Params::parse(bytes) else {
        assert_eq!(expected, None, "the specification permits these parameters");
        return;
    };
    let expected = expected.expect("the specification does not permit these parameters");
    assert_eq!(params.check(), Ok(()));
    let mut out = [0xEE; Params::LEN_MAX];
    let length = params.emit(&mut out);
    assert_eq!(&out[..length], expected);
}

/// The known parameters, one after the other, if the specification permits the whole.
fn permitted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut values: [Option<&[u8]>; KNOWN + 1] = [None; KNOWN + 1];
    let mut known = Vec::new();
    let (mut rest, mut last) = (bytes, None);
    while let [tag, length, after @ ..] = rest {
        let (value, further) = after.split_at_checked(usize::from(*length))?;
        if last.is_some_and(|last| last >= *tag) {
            return None;
        }
        // Tag 16 is reserved: a receiver of this version ignores it.
        if (1..=KNOWN).contains(&usize::from(*tag)) && *tag != 16 {
            values[usize::from(*tag)] = Some(value);
            known.extend_from_slice(&rest[..2 + value.len()]);
        }
        (rest, last) = (further, Some(*tag));
    }
    (rest.is_empty() && are_in_range(&values)).then_some(known)
}

/// The table of SPEC §6.3.
fn are_in_range(values: &[Option<&[u8]>; KNOWN + 1]) -> bool {
    // A value of another length than its type's is as bad as a missing one.
    let number = |tag: usize, length: usize| -> Option<u64> {
        let value = values[tag].filter(|value| value.len() == length)?;
        Some(value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let in_range = |tag, length, least: u64, most: u64| {
        number(tag, length).is_some_and(|number| (least..=most).contains(&number))
    };
    let is_list = |tag: usize, entry: usize| {
        values[tag].is_some_and(|value| !value.is_empty() && value.len().is_multiple_of(entry))
    };
    let key_exchange = number(2, 1);
    let (rest, first) = (number(6, 2).unwrap_or(0), number(7, 2).unwrap_or(0));
    let name_fits = values[13].is_none_or(|name| name.len() <= 32);
    let random_fits = values[14].is_none_or(|random| random.len() == 32);
    let bundles_fits = values[15].is_none_or(<[u8]>::is_empty);
    let part_window_fits = values[17].is_none() || in_range(17, 4, 4_096, 1 << 30);
    let psp_fits = values[18].is_none_or(|versions| (1..=16).contains(&versions.len()));
    let has_registered = values[13].is_some() && values[14].is_some();
    is_list(1, 1)
        && matches!(key_exchange, Some(0 | 1 | 2 | 0xF1))
        && in_range(3, 8, 1, u64::MAX)
        && is_list(4, 2)
        && in_range(5, 1, 8, 17)
        && in_range(6, 2, 64, 16_384)
        && in_range(7, 2, 64, rest.min(1_142))
        && in_range(8, 4, 64, 65_536)
        && in_range(9, 4, 0, u64::MAX)
        && in_range(10, 4, first + 22, u64::MAX)
        && in_range(11, 2, 1_200, u64::MAX)
        && in_range(12, 1, 0, 8)
        && name_fits
        && random_fits
        && bundles_fits
        && part_window_fits
        && psp_fits
        && (key_exchange != Some(1) || has_registered)
}

/// Tags that the specification names.
const KNOWN: usize = 18;
