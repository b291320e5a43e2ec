// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::engine::CONTEXT_BLOCK_BYTES;
use crate::tls::ENGINE;
use alloc::vec::Vec;
use std::vec;

const SUITES: [u16; 3] = [0x1301, 0x1302, 0x1303];

fn block(suite: u16, n0: u16, n: u16) -> ContextBlock {
    let mut bytes = [0; CONTEXT_BLOCK_BYTES];
    bytes[..2].copy_from_slice(&[ENGINE, RECEIVING]);
    bytes[2..4].copy_from_slice(&suite.to_be_bytes());
    bytes[4..36].copy_from_slice(&core::array::from_fn::<u8, 32, _>(|at| at as u8));
    bytes[36..48].fill(0xA5);
    bytes[48..56].copy_from_slice(&77_u64.to_be_bytes());
    bytes[56] = 3;
    bytes[57] = 16;
    bytes[58..60].copy_from_slice(&n0.to_be_bytes());
    bytes[60..62].copy_from_slice(&n.to_be_bytes());
    ContextBlock(bytes)
}

fn context(n0: u16, n: u16) -> ReceiveContext {
    ReceiveContext::create(&block(0x1301, n0, n)).unwrap()
}

/// A message's record stream, sealed, and the plaintexts of its records with their places.
struct Message {
    id: u64,
    length: u32,
    stream: Vec<u8>,
    records: Vec<(usize, Vec<u8>)>,
}

impl Message {
    fn new(context: &ReceiveContext, id: u64, length: u32) -> Self {
        let mut message = Self { id, length, stream: Vec::new(), records: Vec::new() };
        let sizes = core::iter::once(context.first).chain(core::iter::repeat(context.rest));
        let mut left = u64::from(length);
        for (index, size) in (0_u64..).zip(sizes) {
            let extent = left.min(size - OVERHEAD) as usize;
            if extent == 0 {
                break;
            }
            left -= extent as u64;
            let mut plaintext: Vec<u8> =
                (0..extent).map(|at| (at as u64 + id + index) as u8).collect();
            plaintext.push(0x17);
            let mut record = vec![0x17, 3, 3];
            record.extend((plaintext.len() as u16 + 16).to_be_bytes());
            record.extend(&plaintext);
            record.extend([0; TAG]);
            context.key.seal(id << 16 | index, &mut record).unwrap();
            message.records.push((message.stream.len(), plaintext));
            message.stream.extend(record);
        }
        message
    }

    fn part(&self, offset: usize) -> StreamPart {
        StreamPart { id: self.id, message_length: self.length, offset: offset as u32 }
    }
}

#[test]
fn records_that_lie_whole_in_a_part_are_opened_and_no_other_byte_changes() {
    for (n0, n) in [(64, 64), (64, 300), (1_142, 1_200)] {
        let mut context = context(n0, n);
        for length in [41, 64, 65, 128, 129, 1_142, 1_143, 2_342, 3_000] {
            let message = Message::new(&context, 6, length);
            let total = message.stream.len();
            for offset in (0..total).step_by(13) {
                for bytes in [1, 85, 86, 87, 172, 400, 1_164, 2_500, total] {
                    let end = (offset + bytes).min(total);
                    let mut payload = message.stream[offset..end].to_vec();
                    let done = context.open(message.part(offset), &mut payload);
                    let whole = message.records.iter().enumerate().filter(|(_, (at, plain))| {
                        *at >= offset && at + HEADER + plain.len() + TAG <= end
                    });
                    let mut expected = message.stream[offset..end].to_vec();
                    let mut places = Vec::new();
                    for (index, (at, plaintext)) in whole.take(OPENINGS_MAX) {
                        let at = at - offset;
                        expected[at + HEADER..at + HEADER + plaintext.len()]
                            .copy_from_slice(plaintext);
                        places.push((6 << 16 | index as u64, at));
                    }
                    assert!(payload == expected, "{length} from {offset} to {end}");
                    assert_eq!(done.openings, places.len() as u64);
                    let opened = done.opened.map(|opened| {
                        let second = opened.second.map(|at| (opened.number + 1, at));
                        let both = [Some((opened.number, opened.first)), second];
                        both.into_iter().flatten().collect::<Vec<_>>()
                    });
                    assert_eq!(opened.unwrap_or_default(), places);
                }
            }
        }
    }
}

#[test]
fn every_suite_opens_what_it_has_sealed() {
    for suite in SUITES {
        let mut context = ReceiveContext::create(&block(suite, 64, 64)).unwrap();
        let message = Message::new(&context, 2, 100);
        let mut payload = message.stream.clone();
        let done = context.open(message.part(0), &mut payload);
        assert_eq!((done.openings, done.bytes), (2, 102));
    }
}

#[test]
fn a_record_whose_tag_is_wrong_stays_as_it_came() {
    for suite in SUITES {
        let mut context = ReceiveContext::create(&block(suite, 64, 64)).unwrap();
        let message = Message::new(&context, 2, 128);
        // Each byte of the first record: its header's, the body's, the tag's.
        for at in 0..86 {
            let mut payload = message.stream.clone();
            payload[at] ^= 1;
            let before = payload.clone();
            let done = context.open(message.part(0), &mut payload);
            assert_eq!(payload[..86], before[..86], "byte {at}");
            assert_eq!(done.openings, if at < HEADER { 1 } else { 2 });
            let opened = done.opened.unwrap();
            assert_eq!((opened.number, opened.first), (2 << 16 | 1, 86), "the second opens");
        }
    }
}

#[test]
fn headers_that_claim_another_message_length_or_place_open_nothing_and_panic_never() {
    let mut context = context(64, 64);
    let message = Message::new(&context, 2, 500);
    let lengths = [0, 1, 63, 64, 499, 501, u32::MAX];
    let offsets = [0, 1, 85, 86, 1 << 16, u32::MAX - 1_000, u32::MAX];
    for id in [0, 2, 3, 1 << 47, 1 << 48, u64::MAX] {
        for message_length in lengths {
            for offset in offsets {
                let mut payload = message.stream.clone();
                let part = StreamPart { id, message_length, offset };
                let done = context.open(part, &mut payload);
                assert!(done.openings <= 2);
                let is_genuine = id == 2 && offset == 0 && message_length >= 64;
                if !is_genuine {
                    assert_eq!(done.opened, None, "{part:?}");
                    assert_eq!(payload, message.stream);
                }
                _ = context.cut(part, payload.len());
            }
        }
    }
}

#[test]
fn an_arrival_is_cut_behind_as_many_records_as_are_opened_at_once() {
    let context = context(64, 64);
    let message = Message::new(&context, 2, 64 * 5);
    let total = message.stream.len();
    assert_eq!(context.cut(message.part(0), total), Some(172));
    assert_eq!(context.cut(message.part(1), total - 1), Some(86 * 3 - 1));
    assert_eq!(context.cut(message.part(0), 86 * 3 - 1), None, "the third is not whole");
    assert_eq!(context.cut(message.part(0), 86 * 2), None);
}

#[test]
fn a_context_that_has_seen_too_many_wrong_tags_opens_nothing_more() {
    let mut context = context(64, 64);
    let message = Message::new(&context, 2, 64);
    context.failures = FAILURES_MAX - 1;
    let mut forged = message.stream.clone();
    forged[40] ^= 1;
    assert_eq!(context.open(message.part(0), &mut forged).openings, 1);
    let mut payload = message.stream.clone();
    assert_eq!(context.open(message.part(0), &mut payload), Opening::default());
    assert_eq!(payload, message.stream);
}

#[test]
fn blocks_of_another_direction_and_sizes_out_of_range_are_refused() {
    let refused = |change: fn(&mut [u8; CONTEXT_BLOCK_BYTES])| {
        let mut block = block(0x1301, 64, 64);
        change(&mut block.0);
        ReceiveContext::create(&block).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(|block| block[1] = 0), BadContextBlock::OtherEngine);
    assert_eq!(refused(|block| block[3] = 9), BadContextBlock::UnknownSuite);
    assert_eq!(refused(|block| block[57] = 7), BadContextBlock::BadSizes);
    assert_eq!(refused(|block| block[57] = 18), BadContextBlock::BadSizes);
    assert_eq!(refused(|block| block[59] = 63), BadContextBlock::BadSizes);
    assert_eq!(refused(|block| block[61] = 63), BadContextBlock::BadSizes);
    assert_eq!(refused(|block| block[60] = 0x41), BadContextBlock::BadSizes);
}
