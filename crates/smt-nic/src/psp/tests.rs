// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use alloc::vec::Vec;
use std::vec;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// The two device keys of the examples in the PSP Architecture Specification.
fn example_keys() -> [MasterKey; 2] {
    [
        "34448a064292601b11a0978f56a2d34cf3fc35ede1a6bc04f8db3e5243a2b0ca",
        "563952565d3a78ae773ec1b779f2f2d99f4a7f53a6fbb9b07d5b71f39364d739",
    ]
    .map(|key| MasterKey::new(bytes(key).try_into().unwrap()))
}

/// A device with both keys of the examples.
fn device() -> MasterKeys {
    let [first, second] = example_keys();
    let mut keys = MasterKeys::new(first);
    keys.rotate(second);
    keys
}

/// A payload with 44 bytes of headers, and its packet.
fn sealed(context: &mut SendContext, length: usize) -> (Vec<u8>, Vec<u8>) {
    let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
    let mut packet = Vec::new();
    context.seal(253, 44, &payload, &mut packet).unwrap();
    (payload, packet)
}

#[test]
fn keys_of_the_specifications_examples_are_derived() {
    let examples = [
        (0x1234_5678, PspVersion::AesGcm128, "96c22dc799198090b74b70ae468e4e30"),
        (0x9A34_5678, PspVersion::AesGcm128, "3946da2554eae46ad1ef77a64372edc4"),
        (
            0x1234_5678,
            PspVersion::AesGcm256,
            "2b7d72074e42ca334487f2990e3f8c4037e436f38283449b76463e9b7fb2e3de",
        ),
    ];
    for (spi, version, expected) in examples {
        let key = device().derive(spi, version).unwrap();
        assert_eq!(key.bytes()[..version.key_bytes()], bytes(expected)[..]);
        assert!(key.bytes()[version.key_bytes()..].iter().all(|byte| *byte == 0));
    }
}

// SMT [15.3-5], [15.3-7]
#[test]
fn packets_are_those_of_another_implementation() {
    // Made by AES-CMAC and AES-GCM of Python's `cryptography`.
    let clear = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\
                 202122232425262728292a2b";
    let examples = [
        (
            0x9A34_5678,
            PspVersion::AesGcm128,
            "fd010b019a3456780000000000000001",
            "45d6064ca05f5ea51034e2c5f5179bcaf07a9607c810e7257175e2627e7cbc4fbc59d66f",
        ),
        (
            0x1A34_5678,
            PspVersion::AesGcm256,
            "fd010b051a3456780000000000000001",
            "22c2e9e0668853e12bd0544d7d9ad83d51a8606fb74baa06db9626b7c32f6dfa062e8f9d",
        ),
    ];
    for (spi, version, header, rest) in examples {
        let key = device().derive(spi, version).unwrap();
        let association = Association { spi, version, key };
        let (payload, packet) = sealed(&mut SendContext::new(association), 64);
        assert_eq!(packet, [bytes(header), bytes(clear), bytes(rest)].concat());
        let mut packet = packet;
        let opened = device().open(&mut packet).unwrap();
        assert_eq!(packet[opened.payload], payload);
        assert_eq!((opened.spi, opened.next_header), (spi, 253));
    }
}

#[test]
fn the_packet_that_scapy_documents_is_sealed_alike() {
    let mut key = [0; 32];
    key[..16].copy_from_slice(&bytes("FFEEDDCCBBAA99887766554433221100"));
    let mut context = SendContext::new(Association {
        spi: 0x1122_3344,
        version: PspVersion::AesGcm128,
        key: DerivedKey::new(key),
    });
    context.skip_to(0x0102_0304_0506_0708);
    let clear = bytes("45000025000100004011 7CC57F0000017F000001");
    let text = [bytes("04D2162E0011A0C4"), vec![0x41; 9]].concat();
    let mut packet = Vec::new();
    let payload = [clear.clone(), text].concat();
    context.seal(4, 20, &payload, &mut packet).unwrap();
    let header = bytes("04010501112233440102030405060708");
    let sealed = bytes("8E3E2B1345C76BF95CDAC39B861762A0CFDFFBBEBBC6313A2B9DE064759CDD71C9");
    assert_eq!(packet, [header, clear, sealed].concat());
}

// SMT [15.3-3], [15.3-4]
#[test]
fn the_top_bit_of_an_spi_names_the_device_key_and_a_rotation_ends_the_older_ones() {
    let [first, second] = example_keys();
    let mut keys = MasterKeys::new(first);
    let old = keys.allocate(PspVersion::AesGcm128).unwrap();
    assert_eq!(old.spi >> 31, 0);
    let mut of_old = SendContext::new(old);
    keys.rotate(second);
    let new = keys.allocate(PspVersion::AesGcm256).unwrap();
    assert_eq!(new.spi >> 31, 1);
    let mut of_new = SendContext::new(new);
    for context in [&mut of_old, &mut of_new] {
        assert!(keys.open(&mut sealed(context, 100).1).is_ok());
    }
    keys.rotate(MasterKey::new([7; 32]));
    assert!(keys.open(&mut sealed(&mut of_new, 100).1).is_ok());
    let (_, mut packet) = sealed(&mut of_old, 100);
    assert_eq!(keys.open(&mut packet), Err(OpenFailed::Forged));
}

// SMT [15.3-2]
#[test]
fn no_spi_is_given_twice_under_one_device_key() {
    let mut keys = MasterKeys::new(MasterKey::new([1; 32]));
    let spis = [0; 3].map(|_| keys.allocate(PspVersion::AesGcm128).unwrap().spi);
    assert_eq!(spis, [1, 2, 3]);
    keys.skip_to((1 << 31) - 2);
    assert_eq!(keys.allocate(PspVersion::AesGcm128).unwrap().spi, (1 << 31) - 1);
    let refused = keys.allocate(PspVersion::AesGcm128).map(|of| of.spi);
    assert_eq!(refused, Err(SpisUsedUp));
    keys.rotate(MasterKey::new([2; 32]));
    assert_eq!(keys.allocate(PspVersion::AesGcm128).unwrap().spi, 1 << 31 | 1);
}

// SMT [15.3-7], [15.3-8]
#[test]
fn a_repeated_payload_is_another_packet_and_ivs_end() {
    let association = device().allocate(PspVersion::AesGcm128).unwrap();
    let mut context = SendContext::new(association);
    let [first, again] = [0; 2].map(|_| sealed(&mut context, 100).1);
    assert_eq!((first[15], again[15]), (1, 2));
    assert_ne!(first[60..], again[60..]);
    context.skip_to(u64::MAX);
    sealed(&mut context, 100);
    let mut out = vec![9];
    let refused = context.seal(253, 44, &[0; 100], &mut out);
    assert_eq!((refused, out), (Err(SealFailed::IvsUsedUp), vec![9]));
}

// SMT [15.3-6]
#[test]
fn a_crypt_offset_that_is_not_in_the_payload_or_the_field_is_refused() {
    let association = device().allocate(PspVersion::AesGcm128).unwrap();
    let mut context = SendContext::new(association);
    let mut out = Vec::new();
    for (clear, length) in [(42, 100), (256, 400), (104, 100), (usize::MAX, 100)] {
        let refused = context.seal(253, clear, &vec![0; length], &mut out);
        assert_eq!(refused, Err(SealFailed::BadCryptOffset), "{clear} of {length}");
    }
    assert!(out.is_empty());
    for (clear, length) in [(0, 0), (100, 100), (252, 300)] {
        out.clear();
        context.seal(253, clear, &vec![5; length], &mut out).unwrap();
        assert!(device().open(&mut out).is_ok());
        assert_eq!(out.len(), length + OVERHEAD_BYTES);
    }
    let refused = context.seal(253, 0, &vec![0; 65_536], &mut out);
    assert_eq!(refused, Err(SealFailed::TooLong));
}

// SMT [15.3-9]
#[test]
fn every_changed_bit_is_refused_and_the_packet_stays_as_it_came() {
    let keys = device();
    let mut allocating = device();
    let association = allocating.allocate(PspVersion::AesGcm128).unwrap();
    let (_, packet) = sealed(&mut SendContext::new(association), 70);
    assert!(keys.open(&mut packet.clone()).is_ok());
    for bit in 0..packet.len() * 8 {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let before = changed.clone();
        assert!(keys.open(&mut changed).is_err(), "bit {bit}");
        assert_eq!(changed, before, "bit {bit}");
    }
}

#[test]
fn no_packet_that_was_cut_short_panics() {
    let association = device().allocate(PspVersion::AesGcm256).unwrap();
    let (_, packet) = sealed(&mut SendContext::new(association), 70);
    for length in 0..packet.len() {
        assert!(device().open(&mut packet[..length].to_vec()).is_err());
    }
}

#[test]
fn a_packet_for_a_device_key_that_was_never_made_is_told() {
    let [first, _] = example_keys();
    let keys = MasterKeys::new(first);
    let mut packet = vec![0; 60];
    packet[..5].copy_from_slice(&[253, 1, 0, 1, 0x80]);
    assert_eq!(keys.open(&mut packet), Err(OpenFailed::NoKey));
}

#[test]
fn no_key_is_shown() {
    let association = device().allocate(PspVersion::AesGcm128).unwrap();
    let shown = std::format!("{:?} {association:?} {:?}", device(), example_keys());
    assert!(!shown.contains("52, 68") && shown.contains("MasterKey { .. }"));
}
