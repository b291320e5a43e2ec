// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segments as bytes: 12 bytes of header, then stream bytes or SACK blocks.
//!
//! | bytes | data            | acknowledgement                      |
//! |-------|-----------------|--------------------------------------|
//! | 0     | 0               | 1                                    |
//! | 1     | 0               | number of blocks, 128 more if marked |
//! | 2-3   | lane            | lane                                 |
//! | 4-11  | its first byte  | the next byte in order               |
//! | 12-   | stream bytes    | if any: 4 unused bytes, then blocks  |
//!
//! A block is where it begins and ends after the next byte in order. The fields that TCP has in
//! other places (ports, checksum) are charged all the same: see [`HEADER_LEN`].

use bytes::{BufMut, BytesMut};

use super::limits::{BLOCK_LEN, BLOCKS_HEADER_LEN, BLOCKS_MAX, HEADER_LEN};

/// The content of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Segment {
    Acknowledgement(Acknowledgement),
    /// Its stream bytes follow the header.
    Data(DataHeader),
}

/// Some of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct DataHeader {
    /// Which connection of the two hosts.
    pub(super) lane: u16,
    /// Place of its first byte in the stream.
    pub(super) start: u64,
}

/// The bytes that have arrived, as the receiver reports them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Acknowledgement {
    /// Which connection of the two hosts.
    pub(super) lane: u16,
    /// All bytes before this one are there.
    pub(super) next: u64,
    /// The segment that it answers was marked.
    pub(super) is_marked: bool,
    /// Blocks that have arrived beyond the next byte in order, the latest first; empty ones at the
    /// end.
    pub(super) blocks: [Block; BLOCKS_MAX],
}

/// Consecutive bytes of a stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Segment {
    /// `None` if it is neither, or so far on that no stream gets there.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [kind, flags, l0, l1, place @ ..] = *header;
        let (lane, place) = (u16::from_be_bytes([l0, l1]), u64::from_be_bytes(place));
        if place > PLACE_MAX {
            return None;
        }
        match kind {
            DATA => Some(Self::Data(DataHeader { lane, start: place })),
            ACKNOWLEDGEMENT => {
                let count = usize::from(flags & !MARKED);
                let is_whole = rest.len() == blocks_len(count) && count <= BLOCKS_MAX;
                is_whole.then(|| {
                    Self::Acknowledgement(Acknowledgement {
                        lane,
                        next: place,
                        is_marked: flags & MARKED != 0,
                        blocks: parse_blocks(place, rest),
                    })
                })
            }
            _ => None,
        }
    }
}

impl DataHeader {
    /// Appends the header.
    pub(super) fn emit(self, out: &mut BytesMut) {
        out.put_slice(&emit_header(DATA, 0, self.lane, self.start));
    }
}

impl Acknowledgement {
    /// Appends the whole packet.
    pub(super) fn emit(&self, out: &mut BytesMut) {
        let blocks = self.blocks.iter().take_while(|block| !block.is_empty());
        let count = blocks.clone().count();
        let flags = count as u8 | if self.is_marked { MARKED } else { 0 };
        out.put_slice(&emit_header(ACKNOWLEDGEMENT, flags, self.lane, self.next));
        if count > 0 {
            out.put_bytes(0, BLOCKS_HEADER_LEN);
        }
        for block in blocks {
            out.put_u32((block.start - self.next) as u32);
            out.put_u32((block.end - self.next) as u32);
        }
    }
}

impl Block {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

fn emit_header(kind: u8, flags: u8, lane: u16, place: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[0] = kind;
    header[1] = flags;
    header[2..4].copy_from_slice(&lane.to_be_bytes());
    header[4..].copy_from_slice(&place.to_be_bytes());
    header
}

fn parse_blocks(next: u64, bytes: &[u8]) -> [Block; BLOCKS_MAX] {
    let mut blocks = [Block::default(); BLOCKS_MAX];
    let encoded = bytes.get(BLOCKS_HEADER_LEN..);
    let encoded = encoded.unwrap_or_default().chunks_exact(BLOCK_LEN);
    for (block, encoded) in blocks.iter_mut().zip(encoded) {
        let [a, b, c, d, e, f, g, h] = *encoded else {
            break;
        };
        *block = Block {
            start: next + u64::from(u32::from_be_bytes([a, b, c, d])),
            end: next + u64::from(u32::from_be_bytes([e, f, g, h])),
        };
    }
    blocks
}

/// Bytes that so many blocks take.
fn blocks_len(count: usize) -> usize {
    match count {
        0 => 0,
        count => BLOCKS_HEADER_LEN + count * BLOCK_LEN,
    }
}

const DATA: u8 = 0;
const ACKNOWLEDGEMENT: u8 = 1;
const MARKED: u8 = 128;
/// Sums of this and lengths do not overflow.
const PLACE_MAX: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::limits::SEGMENT_MAX;
    use crate::net::packet::wire_len;

    const NEXT: u64 = 5_000_000_000;

    fn acknowledgement(blocks: [Block; BLOCKS_MAX]) -> BytesMut {
        let acknowledgement = Acknowledgement { lane: 7, next: NEXT, is_marked: true, blocks };
        let mut bytes = BytesMut::new();
        acknowledgement.emit(&mut bytes);
        bytes
    }

    fn block(start: u64, end: u64) -> Block {
        Block { start: NEXT + start, end: NEXT + end }
    }

    #[test]
    fn emitted_segments_parse() {
        let data = DataHeader { lane: 258, start: 1 << 40 };
        let mut bytes = BytesMut::new();
        data.emit(&mut bytes);
        bytes.put_bytes(9, 3);
        assert_eq!(Segment::parse(&bytes), Some(Segment::Data(data)));
        let (none, some) = (Block::default(), block(10, 20));
        for blocks in [[none; 3], [some, none, none], [some, block(1, 3), some]] {
            let parsed = Segment::parse(&acknowledgement(blocks));
            let expected = Acknowledgement { lane: 7, next: NEXT, is_marked: true, blocks };
            assert_eq!(parsed, Some(Segment::Acknowledgement(expected)));
        }
    }

    #[test]
    fn a_full_segment_fills_a_frame_and_an_acknowledgement_is_as_long_as_tcps() {
        assert_eq!(wire_len(HEADER_LEN + SEGMENT_MAX), 1_538);
        // IPv4 and TCP are 40 bytes: less than the shortest frame holds. With
        // three blocks they are 68.
        let bare = acknowledgement([Block::default(); 3]);
        assert_eq!(wire_len(bare.len()), 84);
        let full = acknowledgement([block(1, 2), block(3, 4), block(5, 6)]);
        assert_eq!(wire_len(full.len()), 38 + 68);
    }

    #[test]
    fn segment_cut_anywhere_in_its_header_or_blocks_is_refused() {
        let full = acknowledgement([block(1, 2), block(3, 4), block(5, 6)]);
        assert!((0..full.len()).all(|length| Segment::parse(&full[..length]).is_none()));
        let mut data = BytesMut::new();
        DataHeader { lane: 0, start: 0 }.emit(&mut data);
        assert!((0..HEADER_LEN).all(|length| Segment::parse(&data[..length]).is_none()));
    }
}
