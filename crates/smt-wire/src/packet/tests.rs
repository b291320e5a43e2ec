// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::{PLAINTEXT_VERSION, SessionIndex, VERSION};
use std::string::ToString;
use std::vec::Vec;

const RESET: Reset = Reset { index: SessionIndex(0x0102_0304_0506_0708), token: [0xA7; 16] };
const COOKIE: Cookie<'_> = Cookie { destination: SessionIndex(0x11), cookie: &[1, 2, 3] };
const UNAVAILABLE: Unavailable =
    Unavailable { destination: SessionIndex(0x0102_0304_0506_0708), code: 0x0A01 };
const ANSWER: VersionAnswer<'_> = VersionAnswer { versions: &[1, 7] };
const ANSWER_BYTES: [u8; 14] = [0, 0x12, 0, 0, 0x50, 0, 0, 14, 0, 0, 0, 0, 1, 7];

fn reset_bytes(version: u8) -> [u8; 36] {
    let mut out = [0xFF; 36];
    RESET.emit(version, &mut out);
    out
}

mod parse {
    use super::*;

    #[test]
    fn splits_packets_one_after_the_other() {
        let mut datagram: Vec<u8> = reset_bytes(VERSION).into();
        datagram.extend(ANSWER_BYTES);
        datagram.extend(reset_bytes(VERSION));
        let (first, rest) = parse(VERSION, &datagram).unwrap();
        let (second, rest) = parse(VERSION, rest).unwrap();
        let (third, rest) = parse(VERSION, rest).unwrap();
        assert_eq!(first, Packet::Reset(RESET));
        assert_eq!(second, Packet::VersionAnswer(ANSWER));
        assert_eq!(third, Packet::Reset(RESET));
        assert_eq!(parse(VERSION, rest), Err(ParseError::Empty));
    }

    #[test]
    fn reset_is_where_the_specification_says() {
        let mut expected = [0xA7; 36];
        expected[..12].copy_from_slice(&[0x01, 0x13, 0, 0, 0x50, 0, 0, 36, 0, 0, 0, 0]);
        expected[12..20].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(reset_bytes(VERSION), expected);
    }

    #[test]
    fn cookie_is_where_the_specification_says() {
        let mut out = [0xFF; 24];
        assert_eq!(COOKIE.emit(VERSION, &mut out), 23);
        let expected =
            [1, 0x11, 0, 0, 0x50, 0, 0, 23, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 1, 2, 3, 0xFF];
        assert_eq!(out, expected);
        assert_eq!(parse(VERSION, &out[..23]), Ok((Packet::Cookie(COOKIE), &[][..])));
    }

    #[test]
    fn unavailable_is_where_the_specification_says() {
        let mut out = [0xFF; 22];
        UNAVAILABLE.emit(VERSION, &mut out);
        let expected =
            [1, 0x15, 0, 0, 0x50, 0, 0, 22, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x0A, 0x01];
        assert_eq!(out, expected);
        let whole = Packet::Unavailable(UNAVAILABLE);
        assert_eq!(parse(VERSION, &out), Ok((whole, &[][..])));
    }

    #[test]
    fn cookie_has_one_to_64_bytes() {
        let mut bytes = [0; 100];
        bytes[..8].copy_from_slice(&[1, 0x11, 0, 0, 0x50, 0, 0, 0]);
        for length in 12..=100_u8 {
            bytes[7] = length;
            assert_eq!(
                parse(VERSION, &bytes).is_ok(),
                (21..=84).contains(&length),
                "{length} bytes"
            );
        }
    }

    // SMT [3.1-1]
    #[test]
    fn version_answer_is_understood_in_every_version() {
        let mut out = [0xFF; 15];
        assert_eq!(ANSWER.emit(&mut out), 14);
        assert_eq!(out[..14], ANSWER_BYTES);
        for version in [VERSION, 2, PLAINTEXT_VERSION] {
            assert_eq!(parse(version, &out[..14]), Ok((Packet::VersionAnswer(ANSWER), &[][..])));
        }
    }

    #[test]
    fn version_answer_needs_version_byte_zero_and_a_version() {
        let mut bytes = ANSWER_BYTES;
        bytes[0] = VERSION;
        assert!(matches!(parse(VERSION, &bytes), Err(ParseError::Malformed(_))));
        let mut bytes = ANSWER_BYTES;
        bytes[7] = 12;
        assert_eq!(parse(VERSION, &bytes), Err(ParseError::Malformed("VERSION without a version")));
    }

    // SMT [14-1]
    #[test]
    fn plaintext_and_encrypted_versions_do_not_mix() {
        let (plaintext, encrypted) = (reset_bytes(PLAINTEXT_VERSION), reset_bytes(VERSION));
        assert_eq!(parse(VERSION, &plaintext), Err(ParseError::UnknownVersion(0xF1)));
        assert_eq!(parse(PLAINTEXT_VERSION, &encrypted), Err(ParseError::UnknownVersion(1)));
        assert!(parse(PLAINTEXT_VERSION, &plaintext).is_ok());
    }

    #[test]
    fn unknown_version_is_told_by_the_first_byte_alone() {
        for version in 2..=255 {
            assert_eq!(parse(VERSION, &[version]), Err(ParseError::UnknownVersion(version)));
        }
        assert_eq!(parse(VERSION, &[0]), Err(ParseError::Truncated));
        assert_eq!(parse(VERSION, &[0, 0x01]), Err(ParseError::UnknownVersion(0)));
        assert_eq!(parse(VERSION, &[VERSION]), Err(ParseError::Truncated));
    }

    // SMT [3.2-1], [3.2-2]
    #[test]
    fn unknown_type_says_where_the_rest_begins() {
        let mut datagram: Vec<u8> = [1, 0x14, 0, 0, 0x50, 0, 0, 20, 0, 0, 0, 0].into();
        datagram.resize(20, 0xFF);
        datagram.extend(reset_bytes(VERSION));
        let Err(ParseError::UnknownType { ty: 0x14, length }) = parse(VERSION, &datagram) else {
            panic!("0x14 is reserved");
        };
        assert_eq!(parse(VERSION, &datagram[length..]), Ok((Packet::Reset(RESET), &[][..])));
    }

    #[test]
    fn unknown_type_of_no_length_takes_the_whole_datagram() {
        let datagram = [1, 0x3B, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(parse(VERSION, &datagram), Err(ParseError::UnknownType { ty: 0x3B, length: 0 }));
    }

    #[test]
    fn unknown_type_past_the_datagram_is_truncated() {
        let datagram = [1, 0x38, 0, 0, 0x50, 0, 0, 14, 0, 0, 0, 0, 1];
        assert_eq!(parse(VERSION, &datagram), Err(ParseError::Truncated));
    }

    // SMT [3.1-4]
    #[test]
    fn other_header_words_are_malformed() {
        for words in 0..=255 {
            let mut reset = reset_bytes(VERSION);
            reset[4] = words;
            assert_eq!(parse(VERSION, &reset).is_ok(), words == 0x50);
            let mut data = [0; 40];
            data[..5].copy_from_slice(&[1, 0x01, 0, 0, words]);
            assert_eq!(parse(VERSION, &data).is_ok(), words == 0xB0);
        }
    }

    // SMT [3.1-5]
    #[test]
    fn length_zero_is_malformed_but_in_data() {
        for ty in PacketType::ALL.into_iter().filter(|&ty| ty != PacketType::Data) {
            let mut bytes = [0; 80];
            let version = if ty == PacketType::VersionAnswer { 0 } else { VERSION };
            bytes[..5].copy_from_slice(&[version, ty as u8, 0, 0, 0x50]);
            let refused = Err(ParseError::Malformed("length 0 in a packet that is not DATA"));
            assert_eq!(parse(VERSION, &bytes), refused, "{ty}");
        }
    }

    #[test]
    fn length_below_the_headers_is_refused() {
        for ty in PacketType::ALL {
            let mut bytes = [0; 80];
            let version = if ty == PacketType::VersionAnswer { 0 } else { VERSION };
            let words = if ty == PacketType::Data { 0xB0 } else { 0x50 };
            bytes[..5].copy_from_slice(&[version, ty as u8, 0, 0, words]);
            for length in 1..=12 {
                bytes[7] = length;
                assert!(parse(VERSION, &bytes).is_err(), "{ty} of {length} bytes");
            }
        }
    }
}

mod display {
    use super::*;

    #[test]
    fn is_one_line_without_secrets() {
        assert_eq!(Packet::Reset(RESET).to_string(), "RESET session 0102030405060708");
        assert_eq!(Packet::Cookie(COOKIE).to_string(), "COOKIE session 0000000000000011 cookie 3");
        assert_eq!(Packet::VersionAnswer(ANSWER).to_string(), "VERSION 1 7");
        assert_eq!(
            Packet::Unavailable(UNAVAILABLE).to_string(),
            "UNAVAILABLE session 0102030405060708 code 2561"
        );
        let handshake = Handshake {
            destination: SessionIndex(0),
            source: SessionIndex::new(1, 1),
            flight: 1,
            cookie: &[],
            flight_length: 1_500,
            offset: 0,
            fragment: &[0; 100],
        };
        assert_eq!(
            Packet::Handshake(handshake).to_string(),
            "HANDSHAKE session 0000000000000000 source 0000000100000001 flight 1 length 1500 \
             offset 0 fragment 100 cookie 0"
        );
    }
}
