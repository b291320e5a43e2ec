// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that the kernel had not yet cut when they were captured (segmentation offload).
//!
//! A capture on the sending host, or on loopback, shows all datagrams of one send call as one large
//! one. They all have the same size but the last, which may be smaller. The size is found by
//! trying: at every multiple of it a packet must begin, and every piece must be packets from its
//! beginning to its end. Ciphertext passes for a packet's first 12 bytes with a probability of some
//! 2^-60, so a size that fits is the right one.

use smt_wire::{PLAINTEXT_VERSION, VERSION, parse};

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

/// A DATA header and a byte.
const SEGMENT_BYTES_MIN: usize = 37;
/// 0 is that of a version answer.
const VERSIONS: [u8; 3] = [0, VERSION, PLAINTEXT_VERSION];

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::{DataHeader, MessageId, SessionIndex};

    /// DATA packets of one send call; the payload is noise that never repeats.
    fn batch(segment: usize, last: usize, segments: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for number in 0..segments {
            let length = if number + 1 == segments {
                last
            } else {
                segment
            };
            let header = DataHeader {
                epoch: 0,
                retransmit: false,
                session: SessionIndex::new(1, 1),
                id: MessageId(4),
                message_length: 100_000,
                offset: (number * (segment - DataHeader::LEN)) as u32,
            };
            let mut bytes = [0; DataHeader::LEN];
            header.emit(VERSION, &mut bytes);
            out.extend(bytes);
            let noise = |place: usize| (place * place * 7 + number * 13 + place / 3) as u8;
            out.extend((DataHeader::LEN..length).map(noise));
        }
        out
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
