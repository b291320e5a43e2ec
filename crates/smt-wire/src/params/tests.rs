// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use std::string::ToString;
use std::vec::Vec;

const PARAMS: Params<'_> = Params {
    versions: &[1],
    key_exchange: KeyExchange::Tls13,
    index: SessionIndex(0x0102_0304_0506_0708),
    suites: SUITES,
    index_bits: 16,
    record_size: 16_384,
    first_record_size: 1_142,
    window: 4_096,
    message_limit: 0x0400_0000,
    unscheduled: 60_000,
    datagram_limit: 8_972,
    stripes: 3,
    key_name: None,
    random: None,
    takes_bundles: false,
    part_window: None,
    psp_versions: None,
};
const SUITES: Suites<'_> = List::from_entries(&[0x1301, 0x1302]);

/// By hand from SPEC §6.3.
const BYTES: [u8; 60] = [
    1, 1, 1, // versions
    2, 1, 0, // key exchange
    3, 8, 1, 2, 3, 4, 5, 6, 7, 8, // index
    4, 4, 0x13, 0x01, 0x13, 0x02, // suites
    5, 1, 16, // index bits
    6, 2, 0x40, 0x00, // record size
    7, 2, 0x04, 0x76, // first record size
    8, 4, 0, 0, 0x10, 0x00, // window
    9, 4, 0x04, 0, 0, 0, // message limit
    10, 4, 0, 0, 0xEA, 0x60, // unscheduled
    11, 2, 0x23, 0x0C, // datagram limit
    12, 1, 3, // stripes
    16, 0, // cipher policy, unknown here
];

/// Without the unknown parameter at the end.
fn known() -> &'static [u8] {
    &BYTES[..58]
}

/// `known` without parameter `tag`.
fn without(tag: u8) -> Vec<u8> {
    let mut left = known();
    let mut kept = Vec::new();
    while let [next, length, ..] = *left {
        let (whole, rest) = left.split_at(2 + usize::from(length));
        if next != tag {
            kept.extend(whole);
        }
        left = rest;
    }
    kept
}

/// `known` with another value of parameter `tag`, in its place.
fn with(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = without(tag);
    let mut place = 0;
    while place < bytes.len() && bytes[place] < tag {
        place += 2 + usize::from(bytes[place + 1]);
    }
    let whole = [&[tag, value.len() as u8], value].concat();
    bytes.splice(place..place, whole);
    bytes
}

mod emit {
    use super::*;

    #[test]
    fn every_byte_is_where_the_specification_says() {
        let mut out = [0xFF; Params::LEN_MAX];
        assert_eq!(PARAMS.emit(&mut out), 58);
        assert_eq!(&out[..58], known());
        assert_eq!(out[58], 0xFF);
    }

    #[test]
    fn largest_parameters_fit_exactly() {
        let params = Params {
            versions: &[1; 255],
            suites: (&[0x1301; 127]).into(),
            key_exchange: KeyExchange::Registered,
            key_name: Some(&[7; 32]),
            random: Some(&[8; 32]),
            takes_bundles: true,
            part_window: Some(1 << 20),
            psp_versions: Some(&[9; 16]),
            ..PARAMS
        };
        let mut out = [0xFF; Params::LEN_MAX];
        assert_eq!(params.emit(&mut out), Params::LEN_MAX);
        assert_eq!(Params::parse(&out), Ok(params));
    }

    #[test]
    #[should_panic(expected = "at most 255 bytes")]
    fn too_many_suites_are_a_programmer_error() {
        Params { suites: (&[0x1301; 128]).into(), ..PARAMS }.emit(&mut [0; 1_000]);
    }
}

mod parse {
    use super::*;

    #[test]
    fn reads_what_emit_writes() {
        assert_eq!(Params::parse(known()), Ok(PARAMS));
    }

    #[test]
    fn bundles_are_taken_by_whoever_says_so() {
        let takes = Params { takes_bundles: true, ..PARAMS };
        assert_eq!(Params::parse(&[known(), &[15, 0]].concat()), Ok(takes));
        let longer = [known(), &[15, 1, 0]].concat();
        assert_eq!(Params::parse(&longer), Err(ParamsError::Length(15)));
    }

    // SMT [6.3-4]
    #[test]
    fn parts_are_taken_by_whoever_says_their_window() {
        let of = |window: u32| {
            let value = [&[17, 4][..], &window.to_be_bytes()].concat();
            Params::parse(&[known(), &value].concat()).map(|params| params.part_window)
        };
        for window in [4_096, 65_536, 1 << 30] {
            assert_eq!(of(window), Ok(Some(window)));
        }
        for window in [0, 4_095, (1 << 30) + 1, u32::MAX] {
            let value = u64::from(window);
            assert_eq!(of(window), Err(ParamsError::Range { tag: 17, value }));
        }
        let shorter = [known(), &[17, 1, 0]].concat();
        assert_eq!(Params::parse(&shorter), Err(ParamsError::Length(17)));
    }

    // SMT [6.3-25]
    #[test]
    fn packets_are_sealed_by_whoever_names_versions_of_psp() {
        let of = |versions: &[u8]| {
            let tag = [&[18, versions.len() as u8][..], versions].concat();
            Params::parse(&[known(), &tag].concat())
                .map(|params| params.psp_versions.map(<[u8]>::to_vec))
        };
        for versions in [&[1][..], &[1, 0], &[9; 16]] {
            assert_eq!(of(versions), Ok(Some(versions.to_vec())));
        }
        for versions in [&[][..], &[9; 17]] {
            assert_eq!(of(versions), Err(ParamsError::Length(18)));
        }
    }

    // SMT [6.3-2], [6.3-20]
    #[test]
    fn unknown_tags_are_ignored() {
        assert_eq!(Params::parse(&BYTES), Ok(PARAMS));
        assert_eq!(Params::parse(&[&[0, 1, 9], known(), &[255, 2, 9, 9]].concat()), Ok(PARAMS));
    }

    // SMT [6.3-3], [6.3-4]
    #[test]
    fn tags_one_to_twelve_are_mandatory() {
        for tag in 1..=12 {
            assert_eq!(Params::parse(&without(tag)), Err(ParamsError::Missing(tag)));
        }
        assert_eq!(Params::parse(&[]), Err(ParamsError::Missing(1)));
    }

    // SMT [6.3-1]
    #[test]
    fn tags_ascend_and_come_once() {
        let doubled = [known(), &[12, 1, 3]].concat();
        assert_eq!(Params::parse(&doubled), Err(ParamsError::Order(12)));
        let unsorted = [known(), &[255, 0, 254, 0]].concat();
        assert_eq!(Params::parse(&unsorted), Err(ParamsError::Order(254)));
    }

    #[test]
    fn every_cut_is_refused() {
        for length in 0..known().len() {
            assert!(Params::parse(&known()[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Params::parse(&BYTES[..59]), Err(ParamsError::Length(16)));
    }

    #[test]
    fn lengths_other_than_the_parameters_are_refused() {
        let lengths =
            [(2, 1), (3, 8), (5, 1), (6, 2), (7, 2), (8, 4), (9, 4), (10, 4), (11, 2), (12, 1)];
        for (tag, right) in lengths {
            for length in (0..=right + 1).filter(|&length| length != right) {
                let bytes = with(tag, &[0; 9][..length]);
                assert_eq!(Params::parse(&bytes), Err(ParamsError::Length(tag)), "{tag}: {length}");
            }
        }
        for (tag, value) in [(1, &[][..]), (4, &[]), (4, &[0x13]), (4, &[0x13, 1, 2])] {
            assert_eq!(Params::parse(&with(tag, value)), Err(ParamsError::Length(tag)));
        }
        assert_eq!(Params::parse(&with(13, &[0; 33])), Err(ParamsError::Length(13)));
        assert_eq!(Params::parse(&with(14, &[0; 31])), Err(ParamsError::Length(14)));
    }

    // SMT [6.3-4], [6.3-17], [6.3-7], [6.3-13], [6.3-16]
    #[test]
    fn values_out_of_range_are_refused_and_the_border_stands() {
        let cases: [(u8, &[u8], u64, &[u8]); 16] = [
            (2, &[3], 3, &[1]), // 1 then lacks a name, which is another error
            (2, &[4], 4, &[2]),
            (3, &[0; 8], 0, &[0, 0, 0, 0, 0, 0, 0, 1]),
            (5, &[7], 7, &[8]),
            (5, &[18], 18, &[17]),
            (6, &[0x40, 0x01], 16_385, &[0x40, 0x00]),
            (6, &[0, 63], 63, &[0x04, 0x76]),
            (7, &[0, 63], 63, &[0, 64]),
            (7, &[0x04, 0x77], 1_143, &[0x04, 0x76]),
            (8, &[0, 0, 0, 63], 63, &[0, 0, 0, 64]),
            (8, &[0, 1, 0, 1], 65_537, &[0, 1, 0, 0]),
            (10, &[0, 0, 0x04, 0x8B], 1_163, &[0, 0, 0x04, 0x8C]),
            (11, &[0x04, 0xAF], 1_199, &[0x04, 0xB0]),
            (12, &[9], 9, &[8]),
            (12, &[255], 255, &[0]),
            (2, &[0xF0], 0xF0, &[0xF1]),
        ];
        for (tag, outside, value, border) in cases {
            let bytes = with(tag, outside);
            let refused = Params::parse(&bytes);
            assert_eq!(refused, Err(ParamsError::Range { tag, value }), "{outside:?}");
            let bytes = with(tag, border);
            let at_border = Params::parse(&bytes);
            assert!(!matches!(at_border, Err(ParamsError::Range { .. })), "{tag}: {border:?}");
        }
    }

    // SMT [6.3-15]
    #[test]
    fn first_record_is_at_most_the_record_size() {
        // N0 = 1,142 > N = 1,141.
        let bytes = with(6, &[0x04, 0x75]);
        assert_eq!(Params::parse(&bytes), Err(ParamsError::Range { tag: 7, value: 1_142 }));
    }

    // SMT [6.3-3]
    #[test]
    fn registered_keys_need_name_and_random() {
        let registered = with(2, &[1]);
        assert_eq!(Params::parse(&registered), Err(ParamsError::Missing(13)));
        let named = [&registered[..], &[13, 0]].concat();
        assert_eq!(Params::parse(&named), Err(ParamsError::Missing(14)));
        let whole = [&named[..], &[14, 32], &[5; 32]].concat();
        let params = Params::parse(&whole).unwrap();
        assert_eq!((params.key_name, params.random), (Some(&[][..]), Some(&[5; 32])));
    }
}

mod error {
    use super::*;

    #[test]
    fn names_the_parameter_and_the_reason() {
        let text = ParamsError::Range { tag: 5, value: 7 }.to_string();
        assert_eq!(
            text,
            "the peer's parameter 5 (index bits) has the value 7, which is out of range"
        );
        let text = ParamsError::Missing(14).to_string();
        assert_eq!(text, "the peer's parameter 14 (random) is missing");
    }
}
