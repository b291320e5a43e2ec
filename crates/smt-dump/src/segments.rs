// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that the kernel had not yet cut when they were captured (segmentation offload).
//!
//! A capture on the sending host, or on loopback, shows all datagrams of one send call as one large
//! one. They all have the same size but the last, which may be smaller. The size is found by
//! trying: at every multiple of it a packet must begin, and every piece must be packets from its
//! beginning to its end. Ciphertext passes for a packet's first 12 bytes with a probability of some
//! 2^-60, so a size that fits is the right one.
//!
//! A packet that a device has cut from a segment natively over IP has the segment's offset; its own
//! follows from what the device has counted (SPEC §15.2).

use std::borrow::Cow;

use smt_wire::native::unmark_segment;
use smt_wire::{DataHeader, PLAINTEXT_VERSION, ParseError, VERSION, parse};

use crate::datagram::{CarrierKind, Datagram};

/// The payload of a datagram with its own offset in it. A segment that was captured before it was
/// cut is longer than its stride, and has the right one.
///
/// # Errors
/// The packet has no place in any segment: a receiver drops it.
pub(crate) fn with_own_offset<'a>(datagram: &Datagram<'a>) -> Result<Cow<'a, [u8]>, ParseError> {
    let payload = datagram.payload;
    let header = payload.split_first_chunk::<{ DataHeader::LEN }>();
    let (CarrierKind::Native, Some((header, rest))) = (datagram.carrier, header) else {
        return Ok(payload.into());
    };
    let stride = u16::from_be_bytes([header[STRIDE], header[STRIDE + 1]]);
    if rest.len() + datagram.missing > usize::from(stride) {
        return Ok(payload.into());
    }
    let mut own = *header;
    unmark_segment(&mut own, datagram.identification)?;
    Ok([&own[..], rest].concat().into())
}

/// The datagrams in what was captured as one; at least one.
pub(crate) fn split(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let size = segment_size(payload).unwrap_or(payload.len());
    payload.chunks(size.max(1))
}

fn segment_size(payload: &[u8]) -> Option<usize> {
    (SEGMENT_BYTES_MIN..payload.len()).find(|&size| {
        begins_packet(payload, &payload[size..]) && payload.chunks(size).all(is_packets)
    })
}

/// A cheap look: version and reserved bytes as in the first packet.
fn begins_packet(first: &[u8], bytes: &[u8]) -> bool {
    bytes.first() == first.first()
        && bytes.get(5) == Some(&0)
        && bytes.get(8..12) == Some(&[0; 4][..])
}

/// Whether these are packets from the beginning to the end.
fn is_packets(mut bytes: &[u8]) -> bool {
    while let Some(&version) = bytes.first() {
        match parse(version, bytes) {
            Ok((_, rest)) if VERSIONS.contains(&version) => bytes = rest,
            _ => return false,
        }
    }
    true
}

/// Refuses DATA in a packet of PSP that claims a place in a segment: a receiver drops it (SPEC
/// [15.3-11]).
///
/// # Errors
/// It claims one.
pub(crate) fn refuse_place(datagram: &[u8]) -> Result<(), ParseError> {
    let Some(mut header) = datagram.first_chunk::<{ DataHeader::LEN }>().copied() else {
        return Ok(());
    };
    // No packet of a segment has the identification 0.
    unmark_segment(&mut header, Some(0))
        .map_err(|_| ParseError::Malformed("a packet in PSP that claims a place in a segment"))
}

/// Where a segment's DATA header has the stride (SPEC §15.2).
const STRIDE: usize = 10;
/// A DATA header and a byte.
const SEGMENT_BYTES_MIN: usize = 37;
/// 0 is that of a version answer.
const VERSIONS: [u8; 3] = [0, VERSION, PLAINTEXT_VERSION];

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::{DataHeader, MessageId, SessionIndex};

    fn header(offset: u32) -> [u8; DataHeader::LEN] {
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session: SessionIndex::new(1, 1),
            id: MessageId(4),
            message_length: 100_000,
            offset,
        };
        let mut bytes = [0; DataHeader::LEN];
        header.emit(VERSION, &mut bytes);
        bytes
    }

    /// DATA packets of one send call; the payload is noise that never repeats.
    fn batch(segment: usize, last: usize, segments: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for number in 0..segments {
            let length = if number + 1 == segments { last } else { segment };
            out.extend(header((number * (segment - DataHeader::LEN)) as u32));
            let noise = |place: usize| (place * place * 7 + number * 13 + place / 3) as u8;
            out.extend((DataHeader::LEN..length).map(noise));
        }
        out
    }

    mod with_own_offset {
        use super::*;
        use smt_wire::Packet;
        use smt_wire::native::mark_segment;

        /// The offset of a packet of a segment from offset 500 on, with a stride of 1,400.
        fn offset(payload: usize, is_last: bool, carrier: CarrierKind, id: Option<u16>) -> u32 {
            let bytes = marked(payload, is_last);
            let own = with_own_offset(&datagram(&bytes, carrier, id)).unwrap();
            match parse(VERSION, &own) {
                Ok((Packet::Data(data), _)) => data.header.offset,
                other => panic!("{other:?}"),
            }
        }

        fn marked(payload: usize, is_last: bool) -> Vec<u8> {
            let mut bytes = header(500);
            mark_segment(&mut bytes, 1_400.try_into().unwrap());
            if !is_last {
                bytes[5] = 0;
            }
            [&bytes[..], &vec![9; payload]].concat()
        }

        fn datagram(payload: &[u8], carrier: CarrierKind, id: Option<u16>) -> Datagram<'_> {
            Datagram {
                carrier,
                source: "10.0.0.1:1".parse().unwrap(),
                target: "10.0.0.2:2".parse().unwrap(),
                payload,
                missing: 0,
                cut_off: 0,
                packet: payload,
                payload_at: 0,
                transport_at: 0,
                protocol_at: 9,
                identification: id,
                psp: None,
            }
        }

        // SMT [15.2-6], [15.2-7]
        #[test]
        fn it_follows_from_the_place_in_the_segment() {
            let native = CarrierKind::Native;
            assert_eq!(offset(1_400, false, native, Some(1)), 500);
            assert_eq!(offset(1_400, false, native, Some(3)), 500 + 2 * 1_400);
            assert_eq!(offset(7, true, native, Some(4)), 500 + 3 * 1_400);
            assert_eq!(offset(1_400, false, native, None), 500);
            assert_eq!(offset(1_400, true, native, None), 1_900);
        }

        #[test]
        fn a_segment_that_is_not_cut_yet_has_it_in_its_header() {
            assert_eq!(offset(2_000, true, CarrierKind::Native, Some(1)), 500);
            assert_eq!(offset(2_000, true, CarrierKind::Native, None), 500);
        }

        #[test]
        fn other_carriers_have_no_segments() {
            assert_eq!(offset(1_400, true, CarrierKind::Udp, Some(3)), 500);
        }

        #[test]
        fn none_may_be_claimed_in_psp() {
            assert!(refuse_place(&marked(1_400, false)).is_err());
            let mut alone = marked(1_400, false);
            alone[STRIDE..STRIDE + 2].fill(0);
            assert_eq!(refuse_place(&alone), Ok(()));
            assert_eq!(refuse_place(&alone[..30]), Ok(()));
        }

        #[test]
        fn a_packet_without_a_place_is_an_error() {
            let bytes = marked(1_400, false);
            let datagram = datagram(&bytes, CarrierKind::Native, Some(0));
            assert!(with_own_offset(&datagram).is_err());
        }
    }

    mod split {
        use super::*;

        #[test]
        fn a_batch_is_cut_where_the_kernel_would() {
            for (segment, last, segments) in [(1_200, 1_200, 2), (1_472, 700, 40), (8_972, 37, 7)] {
                let batch = batch(segment, last, segments);
                let lengths: Vec<usize> = split(&batch).map(<[u8]>::len).collect();
                let mut expected = vec![segment; segments - 1];
                expected.push(last);
                assert_eq!(lengths, expected);
            }
        }

        #[test]
        fn one_datagram_stays_one() {
            for length in [37, 1_200, 65_000] {
                let datagram = batch(length, length, 1);
                assert_eq!(split(&datagram).count(), 1, "{length}");
            }
        }

        #[test]
        fn what_is_no_packet_stays_whole() {
            assert_eq!(split(&[7; 3_000]).count(), 1);
            assert_eq!(split(&[]).count(), 0);
        }
    }
}
