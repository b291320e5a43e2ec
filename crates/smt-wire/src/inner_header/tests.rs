// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::MessageId;

const REQUEST: InnerHeader = InnerHeader {
    true_length: 0x0102_0304,
    padded_length: 0x1112_1314,
    kind: Kind::Request,
    deadline_us: 0x2122_2324,
    reply_unscheduled: 0x3132_3334,
    failure: None,
    has_metadata: false,
    parts: PartMarks { reply_in_parts: false, more: false, number: 0 },
    window: 0x4142_4344,
    ack: Some(Ack { base: MessageId(0x5152_5354_5556_5758), bits: 0x6162_6364_6566_6768 }),
};

/// By hand from SPEC §5.2.
const BYTES: [u8; 40] = [
    0x01, 0x02, 0x03, 0x04, // true length
    0x11, 0x12, 0x13, 0x14, // padded length
    1, 0, 0, 0, // kind, flags, reserved
    0x21, 0x22, 0x23, 0x24, // deadline
    0x31, 0x32, 0x33, 0x34, // reply unscheduled
    0x41, 0x42, 0x43, 0x44, // window
    0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, // ack base
    0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, // ack bits
];

fn emitted(header: &InnerHeader) -> [u8; 40] {
    let mut out = [0xFF; 40];
    header.emit(&mut out);
    out
}

mod emit {
    use super::*;

    #[test]
    fn every_byte_is_where_the_specification_says() {
        assert_eq!(emitted(&REQUEST), BYTES);
    }

    #[test]
    fn no_ack_is_sixteen_zeros() {
        assert_eq!(emitted(&InnerHeader { ack: None, ..REQUEST })[24..], [0; 16]);
    }

    // SMT [5.2-1]
    #[test]
    fn what_is_for_requests_is_zero_in_other_kinds() {
        for kind in [Kind::Reply, Kind::Bundle] {
            let bytes = emitted(&InnerHeader { kind, ..REQUEST });
            assert_eq!(bytes[8..12], [kind as u8, 0, 0, 0]);
            assert_eq!(bytes[12..20], [0; 8]);
        }
    }

    #[test]
    fn a_one_way_message_has_a_deadline_and_expects_no_reply() {
        let kind = Kind::OneWay;
        let bytes = emitted(&InnerHeader { kind, ..REQUEST });
        assert_eq!(bytes[8..12], [3, 0, 0, 0]);
        assert_eq!(bytes[12..20], [0x21, 0x22, 0x23, 0x24, 0, 0, 0, 0]);
        let parsed = InnerHeader::parse(&bytes).unwrap();
        assert_eq!((parsed.kind, parsed.deadline_us), (kind, 0x2122_2324));
    }

    // SMT [5.8-1]
    #[test]
    fn metadata_is_a_flag_of_every_kind_but_bundles_and_parts() {
        for kind in (1..=5).map(|kind| Kind::of(kind).unwrap()) {
            let marked = InnerHeader { kind, has_metadata: true, ..REQUEST };
            let flags = match kind {
                Kind::Bundle | Kind::Part => 0,
                _ => 4,
            };
            assert_eq!(emitted(&marked)[9], flags);
            let parsed = InnerHeader::parse(&emitted(&marked)).unwrap();
            assert_eq!(parsed.has_metadata, flags == 4);
        }
    }

    // SMT [5.2-5]
    #[test]
    fn a_failure_is_two_flags_and_a_code_where_the_deadline_of_a_request_is() {
        for (not_run, flags) in [(false, 1), (true, 3)] {
            let code = 0x7172_7374;
            let bytes = emitted(&InnerHeader {
                kind: Kind::Reply,
                failure: Some(FailureMark { code, not_run }),
                ..REQUEST
            });
            assert_eq!(bytes[8..16], [2, flags, 0, 0, 0x71, 0x72, 0x73, 0x74]);
        }
    }

    #[test]
    fn only_a_reply_has_the_mark_of_a_failure() {
        for kind in [Kind::Request, Kind::OneWay, Kind::Bundle, Kind::Part] {
            let failure = Some(FailureMark { code: 7, not_run: true });
            let marked = InnerHeader { kind, failure, ..REQUEST };
            let unmarked = InnerHeader { kind, failure: None, ..REQUEST };
            assert_eq!(emitted(&marked), emitted(&unmarked));
        }
    }

    #[test]
    #[should_panic(expected = "padded length")]
    fn padded_below_true_is_a_programmer_error() {
        emitted(&InnerHeader { true_length: 1, padded_length: 40, ..REQUEST });
    }
}

mod parse {
    use super::*;

    #[test]
    fn reads_what_emit_writes() {
        assert_eq!(InnerHeader::parse(&BYTES), Ok(REQUEST));
    }

    // SMT [5.2-1]
    #[test]
    fn reserved_bytes_are_ignored() {
        let mut bytes = BYTES;
        bytes[10..12].fill(0xFF);
        assert_eq!(InnerHeader::parse(&bytes), Ok(REQUEST));
    }

    // SMT [5.9-2]
    #[test]
    fn a_part_has_its_number_where_the_deadline_of_a_request_is() {
        let header = InnerHeader {
            kind: Kind::Part,
            deadline_us: 0,
            reply_unscheduled: 0,
            parts: PartMarks { more: true, number: 0x2122_2324, ..PartMarks::default() },
            ..REQUEST
        };
        let mut bytes = BYTES;
        bytes[8..10].copy_from_slice(&[5, 0x10]);
        bytes[16..20].fill(0);
        assert_eq!(emitted(&header), bytes);
        assert_eq!(InnerHeader::parse(&bytes), Ok(header));
    }

    // SMT [5.9-2]
    #[test]
    fn a_reply_has_the_number_of_its_parts_where_a_request_has_the_unscheduled_bytes() {
        let mut bytes = BYTES;
        bytes[8] = 2;
        bytes[12..16].fill(0);
        let reply = InnerHeader::parse(&bytes).unwrap();
        assert_eq!(reply.parts.number, 0x3132_3334);
        assert_eq!(emitted(&reply), bytes);
    }

    // SMT [5.2-3]
    #[test]
    fn base_without_bits_is_no_ack() {
        let mut bytes = BYTES;
        bytes[32..].fill(0);
        assert_eq!(InnerHeader::parse(&bytes), Ok(InnerHeader { ack: None, ..REQUEST }));
    }

    // SMT [5.2-1]
    #[test]
    fn what_is_for_requests_is_ignored_in_other_kinds() {
        let mut bytes = BYTES;
        bytes[8] = 2;
        let reply = InnerHeader::parse(&bytes).unwrap();
        assert_eq!((reply.kind, reply.deadline_us, reply.reply_unscheduled), (Kind::Reply, 0, 0));
    }

    #[test]
    fn unknown_kinds_are_refused() {
        for kind in 0..=255 {
            let mut bytes = BYTES;
            bytes[8] = kind;
            assert_eq!(InnerHeader::parse(&bytes).is_ok(), (1..=5).contains(&kind), "kind {kind}");
        }
    }

    // SMT [5.2-1]
    #[test]
    fn padded_length_covers_header_and_true_length() {
        for (true_length, padded_length, stands) in [
            (0, 40, true),
            (0, 39, false),
            (1, 40, false),
            (u32::MAX - 40, u32::MAX, true),
            (u32::MAX - 39, u32::MAX, false),
            (u32::MAX, 39, false), // 40 + true length must not wrap
        ] {
            let mut bytes = BYTES;
            bytes[..4].copy_from_slice(&u32::to_be_bytes(true_length));
            bytes[4..8].copy_from_slice(&u32::to_be_bytes(padded_length));
            assert_eq!(
                InnerHeader::parse(&bytes).is_ok(),
                stands,
                "{true_length} of {padded_length}"
            );
        }
    }
}

mod extend_window {
    use super::*;

    fn extended(window: u32, known: u64) -> Option<u64> {
        InnerHeader { window, ..REQUEST }.extend_window(known)
    }

    #[test]
    fn moves_ahead_over_the_32_bit_border() {
        assert_eq!(extended(5, 5), Some(5));
        assert_eq!(extended(5, 0x1_FFFF_FFFF), Some(0x2_0000_0005));
        assert_eq!(extended(0x7FFF_FFFF, 0), Some(0x7FFF_FFFF));
    }

    // SMT [4.2-5], [5.2-4]
    #[test]
    fn never_goes_back() {
        assert_eq!(extended(4, 5), None);
        assert_eq!(extended(0x8000_0000, 0), None);
    }

    #[test]
    fn never_wraps() {
        assert_eq!(extended(0, u64::MAX), None);
    }
}
