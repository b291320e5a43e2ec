// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA: bytes of a message's record stream (SPEC §3.3).
//!
//! Nothing in the header changes the sender's state, and no field of it is believed before record 0
//! of the message has opened. The payload is opaque here: `smt-record` gives its bytes their
//! meaning.

use core::fmt;

use crate::error::ParseError;
use crate::field::{put, u32_at, u64_at};
use crate::ids::{MessageId, SessionIndex};
use crate::packet_type::PacketType;
use crate::prefix::{Prefix, header_words};

/// The 36 bytes before a DATA packet's payload.
///
/// Kernel or NIC segmentation repeats them in each packet of one send; so they are the same for
/// all its packets but the offset, which the sender writes into each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataHeader {
    /// Low 8 bits of the epoch that sealed the records in this packet. Set by the sender; a NIC
    /// that seals finds its key by it.
    pub epoch: u8,
    /// These bytes were sent before. Set by the sender, for traces only; a NIC ignores it.
    pub retransmit: bool,
    /// Chosen by the receiver in the handshake. A NIC may steer by it.
    pub session: SessionIndex,
    /// Set by the initiator. A NIC may steer by its low bits, the stripe, and takes the record
    /// number's high part from it.
    pub id: MessageId,
    /// Padded length of the message in inner bytes (P of SPEC §5.2). Set by the sender.
    pub message_length: u32,
    /// Place of the payload's first byte in the record stream (SPEC §5.3). Set by the sender; a
    /// NIC that cuts segments adds each one's distance to it.
    pub offset: u32,
}

impl DataHeader {
    /// Bytes of the header.
    pub const LEN: usize = 36;

    /// Writes the header of a packet that goes to the end of its datagram (length 0).
    pub fn emit(&self, version: u8, out: &mut [u8; Self::LEN]) {
        self.write(version, 0, out);
    }

    /// Writes the header of a packet with `payload_len` bytes, after which another packet stands.
    ///
    /// # Panics
    /// If `payload_len` is 0 or the packet longer than 65,535 bytes.
    pub fn emit_sized(&self, version: u8, payload_len: usize, out: &mut [u8; Self::LEN]) {
        assert!(payload_len > 0, "DATA carries at least one byte");
        let length = u16::try_from(Self::LEN + payload_len).expect("DATA is at most 65,535 bytes");
        self.write(version, length, out);
    }

    /// Reads the header of a DATA packet that the network has cut (SPEC §9.10): its first bytes, at
    /// least these 36. Bytes behind them are not looked at.
    ///
    /// # Errors
    /// The bytes are not the beginning of a DATA packet of this version, or too few.
    pub fn of_trimmed(version: u8, bytes: &[u8]) -> Result<Self, ParseError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN }>() else {
            return Err(ParseError::Truncated);
        };
        let prefix = bytes.first_chunk().ok_or(ParseError::Truncated)?;
        let prefix = Prefix::read(prefix);
        if prefix.version != version {
            return Err(ParseError::UnknownVersion(prefix.version));
        }
        if prefix.ty != PacketType::Data as u8
            || prefix.header_words != header_words(PacketType::Data)
        {
            return Err(ParseError::Malformed("a trimmed packet that is not DATA"));
        }
        Ok(Self::read(&prefix, bytes))
    }

    fn read(prefix: &Prefix, bytes: &[u8; Self::LEN]) -> Self {
        Self {
            epoch: prefix.epoch,
            retransmit: prefix.flags & Prefix::RETRANSMIT != 0,
            session: SessionIndex(u64_at(bytes, field::SESSION)),
            id: MessageId(u64_at(bytes, field::ID)),
            message_length: u32_at(bytes, field::MESSAGE_LENGTH),
            offset: u32_at(bytes, field::OFFSET),
        }
    }

    fn write(&self, version: u8, length: u16, out: &mut [u8; Self::LEN]) {
        let flags = if self.retransmit { Prefix::RETRANSMIT } else { 0 };
        let prefix = Prefix::new(version, PacketType::Data, length);
        Prefix { epoch: self.epoch, flags, ..prefix }.write(out);
        put(out, field::SESSION, &self.session.0.to_be_bytes());
        put(out, field::ID, &self.id.0.to_be_bytes());
        put(out, field::MESSAGE_LENGTH, &self.message_length.to_be_bytes());
        put(out, field::OFFSET, &self.offset.to_be_bytes());
    }
}

/// A DATA packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Data<'a> {
    /// Its header.
    pub header: DataHeader,
    /// At least one byte of the record stream.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// Parses a packet of exactly its length.
    pub(crate) fn parse(prefix: &Prefix, packet: &'a [u8]) -> Result<Self, ParseError> {
        let Some((bytes, payload)) = packet.split_first_chunk::<{ DataHeader::LEN }>() else {
            return Err(ParseError::Truncated);
        };
        if payload.is_empty() {
            return Err(ParseError::Malformed("DATA without a payload"));
        }
        let header = DataHeader::read(prefix, bytes);
        Ok(Self { header, payload })
    }
}

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataHeader { epoch, retransmit, session, id, message_length, offset } = self.header;
        write!(
            f,
            "DATA epoch {epoch} session {session} id {id} length {message_length} offset {offset} payload {}",
            self.payload.len()
        )?;
        if retransmit { f.write_str(" retransmit") } else { Ok(()) }
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        SESSION = 12..20;
        ID = 20..28;
        MESSAGE_LENGTH = 28..32;
        OFFSET = 32..36;
    }
}

const _: () = assert!(field::SESSION.start == Prefix::LEN);
const _: () = assert!(field::OFFSET.end == DataHeader::LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, VERSION, parse};
    use std::string::ToString;

    const HEADER: DataHeader = DataHeader {
        epoch: 3,
        retransmit: true,
        session: SessionIndex(0x0102_0304_0506_0708),
        id: MessageId(0x1112_1314_1516_1718),
        message_length: 0x2122_2324,
        offset: 0x3132_3334,
    };
    /// By hand from SPEC §3.1 and §3.3.
    const BYTES: [u8; 36] = [
        0x01, 0x01, 0x03, 0x01, 0xB0, 0, 0, 0, 0, 0, 0, 0, // prefix
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // session index
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // message id
        0x21, 0x22, 0x23, 0x24, // message length
        0x31, 0x32, 0x33, 0x34, // offset
    ];

    mod emit {
        use super::*;

        // SMT [2-1], [3.1-3], [15.2-8]
        #[test]
        fn every_byte_is_where_the_specification_says() {
            let mut out = [0xFF; 36];
            HEADER.emit(VERSION, &mut out);
            assert_eq!(out, BYTES);
        }
    }

    mod emit_sized {
        use super::*;

        #[test]
        fn length_counts_the_header() {
            let mut out = [0xFF; 36];
            HEADER.emit_sized(VERSION, 0x100, &mut out);
            let mut expected = BYTES;
            expected[6..8].copy_from_slice(&[0x01, 0x24]);
            assert_eq!(out, expected);
        }

        #[test]
        #[should_panic(expected = "at least one byte")]
        fn without_payload_is_a_programmer_error() {
            HEADER.emit_sized(VERSION, 0, &mut [0; 36]);
        }
    }

    mod parse {
        use super::*;
        use std::vec::Vec;

        fn datagram(payload: &[u8]) -> Vec<u8> {
            [&BYTES, payload].concat()
        }

        #[test]
        fn length_zero_goes_to_the_datagrams_end() {
            let datagram = datagram(b"abc");
            let (packet, rest) = parse(VERSION, &datagram).unwrap();
            assert_eq!(packet, Packet::Data(Data { header: HEADER, payload: b"abc" }));
            assert_eq!(rest, b"");
        }

        #[test]
        fn stated_length_leaves_the_rest() {
            let mut datagram = datagram(b"abc");
            datagram[7] = 38;
            let (packet, rest) = parse(VERSION, &datagram).unwrap();
            assert_eq!(packet, Packet::Data(Data { header: HEADER, payload: b"ab" }));
            assert_eq!(rest, b"c");
        }

        // SMT [2-2]
        #[test]
        fn reserved_bits_and_bytes_are_ignored() {
            let mut datagram = datagram(b"abc");
            datagram[3] |= 0xFE;
            datagram[5] = 0xFF;
            datagram[8..12].fill(0xFF);
            let (packet, _) = parse(VERSION, &datagram).unwrap();
            assert_eq!(packet, Packet::Data(Data { header: HEADER, payload: b"abc" }));
        }

        #[test]
        fn reserved_flags_are_not_retransmit() {
            let mut datagram = datagram(b"abc");
            datagram[3] = 0xFE;
            let (Packet::Data(data), _) = parse(VERSION, &datagram).unwrap() else {
                panic!("DATA")
            };
            assert!(!data.header.retransmit);
        }

        // SMT [3.3-1]
        #[test]
        fn without_payload_is_malformed() {
            let refused = Err(ParseError::Malformed("DATA without a payload"));
            assert_eq!(parse(VERSION, &BYTES), refused);
            let mut datagram = datagram(b"abc");
            datagram[7] = 36;
            assert_eq!(parse(VERSION, &datagram), refused);
        }
    }

    mod of_trimmed {
        use super::*;

        // SMT [9.10-6]
        #[test]
        fn the_header_is_enough_and_what_follows_is_not_looked_at() {
            assert_eq!(DataHeader::of_trimmed(VERSION, &BYTES), Ok(HEADER));
            let mut longer = [&BYTES[..], b"abc"].concat();
            longer[6..8].copy_from_slice(&1_472_u16.to_be_bytes());
            assert_eq!(DataHeader::of_trimmed(VERSION, &longer), Ok(HEADER));
        }

        #[test]
        fn nothing_else_is_taken_for_one() {
            let short = DataHeader::of_trimmed(VERSION, &BYTES[..35]);
            assert_eq!(short, Err(ParseError::Truncated));
            let other = DataHeader::of_trimmed(0xF1, &BYTES);
            assert_eq!(other, Err(ParseError::UnknownVersion(VERSION)));
            for (place, value) in [(1, PacketType::Grant as u8), (4, 0x50)] {
                let mut bytes = BYTES;
                bytes[place] = value;
                let refused = DataHeader::of_trimmed(VERSION, &bytes);
                assert!(matches!(refused, Err(ParseError::Malformed(_))));
            }
        }
    }

    mod display {
        use super::*;

        #[test]
        fn is_one_line() {
            let header = DataHeader {
                epoch: 0,
                retransmit: false,
                session: SessionIndex::new(1, 1),
                id: MessageId(12),
                message_length: 104,
                offset: 0,
            };
            let line =
                "DATA epoch 0 session 0000000100000001 id 12 length 104 offset 0 payload 126";
            assert_eq!(Data { header, payload: &[0; 126] }.to_string(), line);
            let again = DataHeader { retransmit: true, ..header };
            let line = std::format!("{line} retransmit");
            assert_eq!(Data { header: again, payload: &[0; 126] }.to_string(), line);
        }
    }
}
