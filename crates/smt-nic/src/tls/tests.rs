// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::record_key::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305};
use super::*;
use alloc::vec::Vec;
use std::vec;

const SUITES: [u16; 3] = [AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305];

fn block(suite: u16, number: u64) -> ContextBlock {
    let mut bytes = [0; 64];
    bytes[0] = ENGINE;
    bytes[2..4].copy_from_slice(&suite.to_be_bytes());
    bytes[4..36].copy_from_slice(&core::array::from_fn::<u8, 32, _>(|at| at as u8));
    bytes[36..48].fill(0xA5);
    bytes[48..56].copy_from_slice(&number.to_be_bytes());
    ContextBlock(bytes)
}

fn context(suite: u16, number: u64) -> TlsContext {
    TlsEngine.create(&block(suite, number)).unwrap()
}

/// A record of so many bytes of plaintext, with room for its tag.
fn record(plaintext: usize) -> Vec<u8> {
    let mut record = vec![0x17, 3, 3];
    record.extend(((plaintext + TAG) as u16).to_be_bytes());
    record.extend((0..plaintext).map(|at| at as u8));
    record.extend([0; TAG]);
    record
}

#[test]
fn two_records_of_one_segment_are_those_of_two_segments() {
    for suite in SUITES {
        let (mut together, mut apart) = (context(suite, 5), context(suite, 5));
        let mut segment = [record(100), record(1)].concat();
        let protected = TlsEngine.protect(&mut together, &mut segment).unwrap();
        assert_eq!((protected.records, protected.bytes), (2, 101));
        let mut parts = [record(100), record(1)];
        for part in &mut parts {
            TlsEngine.protect(&mut apart, part).unwrap();
        }
        assert_eq!(segment, parts.concat());
        assert_eq!(together.number(), Some(7));
    }
}

#[test]
fn a_record_sealed_again_after_a_resync_is_the_same() {
    let mut context = context(AES_128_GCM, 0);
    let sealed = [0, 1, 2].map(|_| {
        let mut record = record(50);
        TlsEngine.protect(&mut context, &mut record).unwrap();
        record
    });
    assert!(sealed[0] != sealed[1] && sealed[1] != sealed[2]);
    TlsEngine.resync(&mut context, 1);
    let mut again = record(50);
    TlsEngine.protect(&mut context, &mut again).unwrap();
    assert_eq!(again, sealed[1]);
}

#[test]
fn a_payload_that_is_not_whole_records_is_left_as_it_is() {
    let whole = record(20);
    let mut bad = [
        vec![],
        whole[..whole.len() - 1].to_vec(),
        [whole.clone(), vec![0x17]].concat(),
        [whole.clone(), record(0)].concat(),
        record(0),
        vec![0x16; 40],
    ];
    for payload in &mut bad {
        let mut context = context(AES_256_GCM, 9);
        let before = payload.clone();
        let refused = TlsEngine.protect(&mut context, payload);
        assert_eq!(refused, Err(EngineError::BadPayload));
        assert_eq!((&*payload, context.number()), (&before, Some(9)));
    }
}

#[test]
fn the_highest_number_is_used_once() {
    let mut context = context(CHACHA20_POLY1305, u64::MAX);
    let mut two = [record(1), record(1)].concat();
    let refused = TlsEngine.protect(&mut context, &mut two);
    assert_eq!(refused, Err(EngineError::NumbersUsedUp));
    TlsEngine.protect(&mut context, &mut record(1)).unwrap();
    let refused = TlsEngine.protect(&mut context, &mut record(1));
    assert_eq!(refused, Err(EngineError::NumbersUsedUp));
}

#[test]
fn a_block_of_another_engine_or_suite_is_refused() {
    let mut other = block(AES_128_GCM, 0);
    other.0[0] = 2;
    let refused = TlsEngine.create(&other).map(|_| ());
    assert_eq!(refused, Err(BadContextBlock::OtherEngine));
    let refused = TlsEngine.create(&block(0x1304, 0)).map(|_| ());
    assert_eq!(refused, Err(BadContextBlock::UnknownSuite));
}
