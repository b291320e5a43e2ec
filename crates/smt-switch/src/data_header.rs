// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clear header of a DATA packet (SPEC §3.1, §3.3).

/// Bytes of the header.
pub const DATA_HEADER_BYTES: usize = 36;

/// The fields of a DATA header by which a switch may act. All of them are hints: an endpoint
/// believes them when the record behind them has opened, and a switch never learns whether it has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataHeader {
    /// The receiver's index of the session.
    pub session: u64,
    /// The message's id.
    pub id: u64,
    /// Bytes of the message, padding included.
    pub message_length: u32,
    /// Where the payload begins in the message's record stream.
    pub offset: u32,
    /// The bytes were sent before.
    pub is_retransmission: bool,
    /// The packet is all that the datagram has.
    pub is_alone: bool,
}

impl DataHeader {
    /// Reads the first packet of a datagram. `None` if that is no DATA packet of version 1, if it
    /// is malformed, or if it has no payload, as one that was trimmed before.
    #[must_use]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let (header, payload) = datagram.split_first_chunk::<DATA_HEADER_BYTES>()?;
        let is_data = header[VERSION] == 1
            && header[TYPE] == DATA
            && header[HEADER_WORDS] == DATA_HEADER_WORDS
            && !payload.is_empty();
        if !is_data {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([header[LENGTH], header[LENGTH + 1]]));
        let is_whole = length == 0 || (DATA_HEADER_BYTES + 1..=datagram.len()).contains(&length);
        is_whole.then(|| Self {
            session: u64_at(header, SESSION),
            id: u64_at(header, ID),
            message_length: u32_at(header, MESSAGE_LENGTH),
            offset: u32_at(header, OFFSET),
            is_retransmission: header[FLAGS] & RETRANSMIT != 0,
            is_alone: length == 0 || length == datagram.len(),
        })
    }
}

fn u64_at(header: &[u8; DATA_HEADER_BYTES], at: usize) -> u64 {
    let bytes = header[at..at + 8].iter();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn u32_at(header: &[u8; DATA_HEADER_BYTES], at: usize) -> u32 {
    let bytes = header[at..at + 4].iter();
    bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
}

const VERSION: usize = 0;
const TYPE: usize = 1;
const FLAGS: usize = 3;
const HEADER_WORDS: usize = 4;
const LENGTH: usize = 6;
const SESSION: usize = 12;
const ID: usize = 20;
const MESSAGE_LENGTH: usize = 28;
const OFFSET: usize = 32;

const DATA: u8 = 0x01;
const DATA_HEADER_WORDS: u8 = 0xB0;
const RETRANSMIT: u8 = 0x01;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::samples::data;
    use proptest::prelude::*;
    use smt_wire::{Packet, PacketType, VERSION, parse};

    proptest! {
        /// Whatever the bytes are, a packet is DATA to both readers or to none.
        #[test]
        fn both_readers_of_the_format_agree(
            random in proptest::collection::vec(any::<u8>(), 0..80),
            is_formed in any::<bool>(),
            length in prop_oneof![Just(0u16), 0u16..90],
        ) {
            let mut bytes = random;
            if is_formed && bytes.len() > 8 {
                bytes[..2].copy_from_slice(&[1, 1]);
                bytes[4] = 0xB0;
                bytes[6..8].copy_from_slice(&length.to_be_bytes());
            }
            let theirs = parse(VERSION, &bytes).ok();
            let theirs = theirs.filter(|(packet, _)| packet.packet_type() == PacketType::Data);
            let own = DataHeader::read(&bytes);
            prop_assert_eq!(own.is_some(), theirs.is_some());
            if let (Some(own), Some((Packet::Data(packet), rest))) = (own, theirs) {
                prop_assert_eq!(own.session, packet.header.session.0);
                prop_assert_eq!(own.id, packet.header.id.0);
                prop_assert_eq!(own.message_length, packet.header.message_length);
                prop_assert_eq!(own.offset, packet.header.offset);
                prop_assert_eq!(own.is_alone, rest.is_empty());
                prop_assert_eq!(own.is_retransmission, packet.header.retransmit);
            }
        }
    }

    #[test]
    fn a_packet_of_another_version_type_or_shape_is_none() {
        let whole = data(7, 100);
        assert!(DataHeader::read(&whole).is_some());
        for (at, byte) in [(0, 2), (0, 0xF1), (1, 0x21), (1, 0x10), (4, 0x50)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(DataHeader::read(&other), None, "byte {at} is {byte}");
        }
        for length in 0..=DATA_HEADER_BYTES {
            assert_eq!(DataHeader::read(&whole[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_packet_with_another_behind_it_is_not_alone() {
        let mut datagram = data(7, 100);
        datagram[6..8].copy_from_slice(&136u16.to_be_bytes());
        assert!(DataHeader::read(&datagram).unwrap().is_alone);
        datagram.extend_from_slice(&[0; 50]);
        assert!(!DataHeader::read(&datagram).unwrap().is_alone);
        datagram.truncate(135);
        assert_eq!(DataHeader::read(&datagram), None);
    }
}
