// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The arithmetic of the record stream (SPEC §5.3), against records laid out one by one.
//!
//! Total for every u32: a receiver computes with lengths that it does not believe yet.

use arbitrary::Arbitrary;
use smt_wire::{Geometry, RECORD_OVERHEAD};

/// One message's sizes, and places in it.
#[derive(Arbitrary, Debug)]
pub struct Case {
    first: u16,
    rest: u16,
    padded: u32,
    true_inner: u32,
    index: u32,
    offset: u32,
    index_bits: u8,
}

/// Checks one message's layout.
pub fn check(case: &Case) {
    let is_permitted = case.first >= 64 && case.first <= case.rest && case.rest <= 16_384;
    let Some(geometry) = Geometry::new(case.first, case.rest) else {
        assert!(!is_permitted, "64 <= N0 <= N <= 16,384");
        return;
    };
    assert!(is_permitted, "64 <= N0 <= N <= 16,384");
    check_anywhere(geometry, case);
    // Long messages repeat themselves; laying out more records only costs time.
    let few = Case { padded: case.padded % (u32::from(case.rest) * RECORDS_LAID_OUT), ..*case };
    lay_out(geometry, &few);
    let bits = 8 + case.index_bits % 10;
    let most = geometry.padded_max(bits);
    assert_eq!(geometry.records(most), 1 << bits, "every index is used");
    assert_eq!(geometry.records(most + 1), (1 << bits) + 1);
    assert!(geometry.stream_length(most) < u32::MAX);
}

/// Checks what holds for absurd lengths too.
fn check_anywhere(geometry: Geometry, case: &Case) {
    let records = u64::from(geometry.records(case.padded));
    let stream = u64::from(case.padded) + OVERHEAD * records;
    let expected = u32::try_from(stream).unwrap_or(u32::MAX);
    assert_eq!(geometry.stream_length(case.padded), expected);
    let record = geometry.record(case.padded, case.index);
    assert_eq!(record.index, case.index);
    assert_eq!(record.stream_len(), usize::from(record.extent) + RECORD_OVERHEAD);
    assert!(record.extent <= geometry.rest);
    assert!(record.content(case.true_inner) <= usize::from(record.extent));
    if u64::from(case.index) >= records {
        assert_eq!(record.extent, 0, "a message has no record past its end");
    }
    // The record at an offset begins at or before it, and the next one after it.
    let index = geometry.record_at(case.offset);
    let start = |index: u32| geometry.record(u32::MAX, index).stream_start;
    assert!(start(index) <= case.offset);
    assert!(start(index + 1) > case.offset || start(index + 1) == u32::MAX);
}

/// Lays records out one after the other and compares each.
fn lay_out(geometry: Geometry, case: &Case) {
    let (mut inner, mut stream, mut content, mut index) = (0, 0, 0, 0);
    loop {
        let size = if index == 0 { geometry.first } else { geometry.rest };
        let extent = (case.padded - inner).min(u32::from(size));
        let record = geometry.record(case.padded, index);
        assert_eq!((record.inner_start, record.stream_start), (inner, stream));
        assert_eq!(u32::from(record.extent), extent);
        let end = stream + extent + OVERHEAD as u32;
        for offset in [stream, stream + 1, end - 1] {
            assert_eq!(geometry.record_at(offset), index, "offset {offset}");
        }
        content += record.content(case.true_inner);
        (inner, stream, index) = (inner + extent, end, index + 1);
        if inner == case.padded {
            break;
        }
    }
    assert_eq!(geometry.records(case.padded), index);
    assert_eq!(geometry.stream_length(case.padded), stream);
    assert_eq!(content, case.true_inner.min(case.padded) as usize);
}

const OVERHEAD: u64 = RECORD_OVERHEAD as u64;

/// Enough for the first, the last, and some between.
const RECORDS_LAID_OUT: u32 = 40;
