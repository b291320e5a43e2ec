// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::{
    Abort, AbortCode, Ack, AssociationFields, Grant, LIST_MAX, MessageId, Packet, VERSION, parse,
};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const HEADER: ControlHeader = ControlHeader {
    epoch: 2,
    session: SessionIndex(0x0102_0304_0506_0708),
    number: ControlNumber { stripe: 0x1112, counter: 0x1314_1516_1718 },
};

/// A whole packet with 0xEE as its sealed part.
fn packet(body: &Body<'_>) -> Vec<u8> {
    let mut out = vec![0xEE; ControlHeader::packet_len(body)];
    let aad = HEADER.emit(VERSION, body, &mut out);
    assert_eq!(aad + body.sealed_len(), out.len());
    out
}

/// Replaces the body of a packet and corrects its length field.
fn with_body(ty: PacketType, body: &[u8]) -> Vec<u8> {
    let mut bytes = packet(&Body::Probe { padding: body.len() + body::sealed_len(ty) - 16 });
    bytes[1] = ty as u8;
    bytes[28..][..body.len()].copy_from_slice(body);
    bytes
}

mod emit {
    use super::*;

    /// By hand from SPEC §3.4 and §8.
    const GRANT: [u8; 52] = [
        0x01, 0x21, 0x02, 0, 0x50, 0, 0, 68, 0, 0, 0, 0, // prefix
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // session index
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // number
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, // id
        0x31, 0x32, 0x33, 0x34, // granted
        0x41, 0x42, 0x43, 0x44, // received
        7, 0, 0, 0, 0, 0, 0, 0, // priority
    ];

    // SMT [2-1]
    #[test]
    fn every_byte_is_where_the_specification_says() {
        let grants = [Grant {
            id: MessageId(0x2122_2324_2526_2728),
            granted: 0x3132_3334,
            received: 0x4142_4344,
            priority: 7,
        }];
        let mut out = [0xFF; 60];
        assert_eq!(HEADER.emit(VERSION, &Body::Grant((&grants).into()), &mut out), 52);
        assert_eq!(out[..52], GRANT);
        assert_eq!(out[52..], [0xFF; 8], "the tag's place is the caller's");
    }

    #[test]
    fn bodies_that_are_no_lists_are_where_the_specification_says() {
        let abort = Abort { id: MessageId(0x0102), code: AbortCode::TooLarge.code() };
        let cases: [(Body<'_>, u8, &[u8]); 14] = [
            (Body::Confirm, 0x20, &[]),
            (Body::Abort(abort), 0x2B, &[0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 0, 0, 0, 0, 0]),
            (Body::Window { limit: 0x0102 }, 0x2C, &[0, 0, 0, 0, 0, 0, 1, 2]),
            (Body::WindowRequest, 0x2D, &[]),
            (Body::KeyUpdateRequest { epoch: 0x0102 }, 0x2E, &[0, 0, 1, 2]),
            (Body::EpochDone { epoch: 0x0102 }, 0x2F, &[0, 0, 1, 2]),
            (Body::EpochAck { epoch: 0x0102 }, 0x30, &[0, 0, 1, 2]),
            (Body::Ping(0x0102), 0x31, &[0, 0, 0, 0, 0, 0, 1, 2]),
            (Body::Probe { padding: 3 }, 0x33, &[0, 0, 0]),
            (Body::ProbeAck { size: 0x0102 }, 0x34, &[0, 0, 1, 2]),
            (Body::Close { code: 0x0102 }, 0x35, &[1, 2, 0, 0, 0, 0, 0, 0]),
            (
                Body::Association(AssociationFields {
                    serial: 0x0102,
                    spi: 0x8000_0304,
                    version: 1,
                }),
                0x38,
                &[0, 0, 1, 2, 0x80, 0, 3, 4, 1, 0, 0, 0],
            ),
            (Body::AssociationAck { serial: 0x0102 }, 0x39, &[0, 0, 1, 2]),
            (Body::AssociationRequest { serial: 0x0102 }, 0x3A, &[0, 0, 1, 2]),
        ];
        for (body, ty, expected) in cases {
            let bytes = packet(&body);
            assert_eq!(bytes[1], ty);
            assert_eq!(&bytes[28..28 + expected.len()], expected, "{body:?}");
            assert_eq!(usize::from(bytes[7]), bytes.len());
        }
    }

    #[test]
    fn confirm_counts_the_token() {
        assert_eq!(ControlHeader::packet_len(&Body::Confirm), 60);
        assert_eq!(packet(&Body::Confirm)[6..8], [0, 60]);
    }

    #[test]
    fn association_counts_the_key() {
        let association = Body::Association(AssociationFields { serial: 1, spi: 2, version: 0 });
        assert_eq!(ControlHeader::packet_len(&association), 28 + 12 + 32 + 16);
    }

    #[test]
    #[should_panic(expected = "1 to 64 entries")]
    fn empty_list_is_a_programmer_error() {
        packet(&Body::Busy((&[]).into()));
    }

    #[test]
    #[should_panic(expected = "1 to 64 entries")]
    fn long_list_is_a_programmer_error() {
        packet(&Body::Busy((&[MessageId(0); LIST_MAX + 1]).into()));
    }

    #[test]
    #[should_panic(expected = "65,535")]
    fn packet_beyond_the_length_field_is_a_programmer_error() {
        packet(&Body::Probe { padding: 65_536 - 44 });
    }
}

mod parse {
    use super::*;

    #[test]
    fn cuts_aad_and_tag() {
        let bytes = packet(&Body::Ping(5));
        let (Packet::Control(control), _) = parse(VERSION, &bytes).unwrap() else {
            panic!("control")
        };
        assert_eq!(control.header, HEADER);
        assert_eq!(control.body, Body::Ping(5));
        assert_eq!((control.aad, control.sealed), bytes.split_at(36));
    }

    #[test]
    fn confirm_has_token_and_tag_sealed() {
        let bytes = packet(&Body::Confirm);
        let (Packet::Control(control), _) = parse(VERSION, &bytes).unwrap() else {
            panic!("control")
        };
        assert_eq!((control.aad.len(), control.sealed), (28, &[0xEE; 32][..]));
    }

    // SMT [8-1]
    #[test]
    fn lists_of_one_and_of_sixty_four_stand() {
        let acks = [Ack { base: MessageId(9), bits: 5 }; LIST_MAX];
        for list in [&acks[..1], &acks[..]] {
            let bytes = packet(&Body::Ack(list.into()));
            let (Packet::Control(control), _) = parse(VERSION, &bytes).unwrap() else {
                panic!("control")
            };
            assert_eq!(control.body, Body::Ack(list.into()));
        }
    }

    /// Each type takes exactly the sizes that SPEC §8 names, of all up to 65 of the longest entry.
    // SMT [8-2]
    #[test]
    fn bodies_of_another_size_are_malformed() {
        for ty in PacketType::ALL.into_iter().filter(|ty| ty.is_control()) {
            let sizes: Vec<usize> = match ty as u8 {
                0x20 | 0x2D => vec![0],
                0x21 => (1..=64).map(|n| n * 24).collect(),
                0x22 | 0x24 | 0x36 => (1..=64).map(|n| n * 16).collect(),
                0x23 | 0x25..=0x2A | 0x37 => (1..=64).map(|n| n * 8).collect(),
                0x2B => vec![16],
                0x2C | 0x31 | 0x32 | 0x35 => vec![8],
                0x2E..=0x30 | 0x34 | 0x39 | 0x3A => vec![4],
                0x38 => vec![12],
                0x33 => (0..=65 * 24).collect(),
                other => panic!("0x{other:02x} is not in the specification"),
            };
            for size in 0..=65 * 24 {
                let parsed = parse(VERSION, &with_body(ty, &vec![0; size])).is_ok();
                assert_eq!(parsed, sizes.contains(&size), "{ty} of {size} bytes");
            }
        }
    }

    // SMT [8-15]
    #[test]
    fn an_unknown_abort_code_means_that_the_request_may_have_run() {
        for code in [1, 2, 3, 4, 5] {
            assert_eq!(AbortCode::from_code(code).code(), code);
        }
        for code in [0, 6, u16::MAX] {
            assert_eq!(AbortCode::from_code(code), AbortCode::Dropped);
        }
    }

    #[test]
    fn reserved_bytes_of_entries_are_ignored() {
        let mut body = [0; 24];
        body[17..].fill(0xFF);
        let bytes = with_body(PacketType::Grant, &body);
        let (Packet::Control(control), _) = parse(VERSION, &bytes).unwrap() else {
            panic!("control")
        };
        let none = Grant { id: MessageId(0), granted: 0, received: 0, priority: 0 };
        assert_eq!(control.body, Body::Grant((&[none]).into()));
    }
}

mod display {
    use super::*;

    fn line(body: Body<'_>) -> std::string::String {
        let bytes = packet(&body);
        parse(VERSION, &bytes).unwrap().0.to_string()
    }

    #[test]
    fn names_type_session_number_and_entries() {
        let ids = [MessageId(12), MessageId(16)];
        assert_eq!(
            line(Body::NeedAck((&ids).into())),
            "NEED_ACK epoch 2 session 0102030405060708 number 4370/20976974042904 id 12, id 16"
        );
    }

    #[test]
    fn is_one_line_for_every_body() {
        let grants = [Grant { id: MessageId(12), granted: 60_000, received: 1_142, priority: 3 }];
        let start = "epoch 2 session 0102030405060708 number 4370/20976974042904";
        let cases = [
            (Body::Confirm, "CONFIRM", ""),
            (
                Body::Grant((&grants).into()),
                "GRANT",
                " id 12 granted 60000 received 1142 priority 3",
            ),
            (Body::EpochDone { epoch: 4 }, "EPOCH_DONE", " of 4"),
            (Body::Window { limit: 4_096 }, "WINDOW", " limit 4096"),
            (Body::ProbeAck { size: 8_972 }, "PROBE_ACK", " size 8972"),
            (Body::Close { code: 1 }, "CLOSE", " code 1"),
        ];
        for (body, name, end) in cases {
            assert_eq!(line(body), std::format!("{name} {start}{end}"));
        }
    }
}
