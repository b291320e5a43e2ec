// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::{Packet, VERSION};

const HANDSHAKE: Handshake<'_> = Handshake {
    destination: SessionIndex(0x0102_0304_0506_0708),
    source: SessionIndex(0x1112_1314_1516_1718),
    flight: 3,
    cookie: &[0xC0, 0xC1],
    flight_length: 0x2122,
    offset: 0x1132,
    fragment: &[0xF0, 0xF1, 0xF2],
};

/// By hand from SPEC §6.2, with two zeros behind.
const BYTES: [u8; 47] = [
    0x01, 0x10, 0, 0, 0x50, 0, 0, 47, 0, 0, 0, 0, // prefix
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // destination index
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // source index
    3, 2, 0, 3, // flight, cookie length, fragment length
    0, 0, 0x21, 0x22, // flight length
    0, 0, 0x11, 0x32, // offset
    0xC0, 0xC1, 0xF0, 0xF1, 0xF2, 0, 0,
];

mod emit {
    use super::*;

    // SMT [2-1], [3.1-2]
    #[test]
    fn every_byte_is_where_the_specification_says() {
        let mut out = [0xFF; 48];
        assert_eq!(HANDSHAKE.emit(VERSION, 47, &mut out), 47);
        assert_eq!(out[..47], BYTES);
        assert_eq!(out[47], 0xFF);
    }

    #[test]
    fn padding_never_shortens() {
        let mut out = [0xFF; 48];
        assert_eq!(HANDSHAKE.emit(VERSION, 0, &mut out), 45);
        assert_eq!(out[6..8], [0, 45]);
        assert_eq!(HANDSHAKE.packet_len(), 45);
    }

    #[test]
    #[should_panic(expected = "past its flight's end")]
    fn fragment_past_the_flight_is_a_programmer_error() {
        Handshake { flight_length: 0x1134, ..HANDSHAKE }.emit(VERSION, 0, &mut [0; 64]);
    }
}

mod parse {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
        crate::parse(VERSION, bytes).map(|(packet, _)| packet)
    }

    /// `BYTES` with some of them replaced.
    fn changed<const N: usize>(place: usize, value: [u8; N]) -> [u8; 47] {
        let mut bytes = BYTES;
        bytes[place..place + N].copy_from_slice(&value);
        bytes
    }

    #[test]
    fn reads_what_emit_writes() {
        assert_eq!(parse(&BYTES), Ok(Packet::Handshake(HANDSHAKE)));
    }

    #[test]
    fn padding_is_not_looked_at() {
        assert_eq!(parse(&changed(45, [0xFF, 0xFF])), Ok(Packet::Handshake(HANDSHAKE)));
    }

    #[test]
    fn fragment_may_end_with_its_flight_but_not_later() {
        assert!(parse(&changed(36, 0x211F_u32.to_be_bytes())).is_ok());
        assert!(parse(&changed(36, 0x2120_u32.to_be_bytes())).is_err());
        assert!(parse(&changed(36, u32::MAX.to_be_bytes())).is_err(), "must not wrap");
    }

    #[test]
    fn lengths_past_the_packet_are_malformed() {
        assert!(parse(&changed(29, [4])).is_ok());
        assert!(parse(&changed(29, [5])).is_err(), "fragment past the end");
        assert!(parse(&changed(29, [8])).is_err(), "cookie past the end");
        assert!(parse(&changed(30, [0, 6])).is_err());
        assert!(parse(&changed(30, [0xFF, 0xFF])).is_err());
    }

    // SMT [6.2-3]
    #[test]
    fn source_index_zero_is_malformed() {
        assert!(parse(&changed(20, [0; 8])).is_err());
        assert!(parse(&changed(12, [0; 8])).is_ok(), "the destination may be 0");
    }

    // SMT [6.2-3]
    #[test]
    fn flights_are_one_to_seven() {
        for flight in 0..=255 {
            assert_eq!(
                parse(&changed(28, [flight])).is_ok(),
                (1..=7).contains(&flight),
                "{flight}"
            );
        }
    }

    // SMT [6.2-3]
    #[test]
    fn flight_is_at_most_65536_bytes() {
        assert!(parse(&changed(32, 65_536_u32.to_be_bytes())).is_ok());
        assert!(parse(&changed(32, 65_537_u32.to_be_bytes())).is_err());
    }

    #[test]
    fn cookie_is_at_most_64_bytes() {
        let mut bytes = [0; 200];
        bytes[..47].copy_from_slice(&BYTES);
        bytes[7] = 200;
        bytes[29] = 64;
        assert!(parse(&bytes).is_ok());
        bytes[29] = 65;
        assert!(parse(&bytes).is_err());
    }
}
