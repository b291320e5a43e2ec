// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of quotes, as their public areas describe them.

use smt_device::tpm::{QuotingKeyFault, judge_quoting_key};

/// The attributes of a good key (part 2, section 8.3).
const ATTRIBUTES: u32 = 0x0005_0472;

/// A public area: ECC, SHA-256, no policy, no cipher, ECDSA with SHA-256, P-256, and a point.
pub(crate) fn area(change: impl FnOnce(&mut u32)) -> Vec<u8> {
    let mut attributes = ATTRIBUTES;
    change(&mut attributes);
    let mut area = vec![0, 0x23, 0, 0x0b];
    area.extend(attributes.to_be_bytes());
    area.extend([0, 0, 0, 0x10, 0, 0x18, 0, 0x0b, 0, 3, 0, 0x10]);
    for half in [[1; 32], [2; 32]] {
        area.extend([0, 32]);
        area.extend(half);
    }
    area
}

#[test]
fn a_key_that_signs_more_than_its_tpms_word_is_refused() {
    let point = judge_quoting_key(&area(|_| ())).unwrap();
    assert_eq!(point, std::array::from_fn(|place| 1 + place as u8 / 32));
    let changes: [(u32, QuotingKeyFault); 8] = [
        (1 << 16, QuotingKeyFault::NotRestricted),
        (1 << 18, QuotingKeyFault::NotSigning),
        (1 << 17, QuotingKeyFault::Decrypts),
        (1 << 1, QuotingKeyFault::NotFixed),
        (1 << 4, QuotingKeyFault::NotFixed),
        (1 << 5, QuotingKeyFault::MadeOutside),
        (1 << 6, QuotingKeyFault::Other),
        (1 << 7, QuotingKeyFault::Other),
    ];
    for (bit, fault) in changes {
        let judged = judge_quoting_key(&area(|attributes| *attributes ^= bit));
        assert_eq!(judged, Err(fault), "bit {bit:#x}");
    }
}

#[test]
fn a_public_area_with_another_field_or_length_is_refused() {
    let good = area(|_| ());
    for place in 0..good.len() - 68 {
        let mut altered = good.clone();
        altered[place] ^= 1;
        assert!(judge_quoting_key(&altered).is_err(), "byte {place}");
    }
    for length in 0..good.len() {
        assert!(judge_quoting_key(&good[..length]).is_err(), "{length} bytes");
    }
    assert!(judge_quoting_key(&[&good[..], &[0]].concat()).is_err());
}
