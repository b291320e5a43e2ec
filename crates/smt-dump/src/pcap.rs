// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The classic format: a header of 24 bytes, then frames with 16 bytes before each.

use std::io::{self, Read};
use std::time::Duration;

use crate::capture::{Frame, Order, read_bytes, read_some};
use crate::link::LinkType;

/// The byte order and the unit of time that the first four bytes tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Magic {
    order: Order,
    /// Nanoseconds in a unit of the fraction of a second.
    fraction_ns: u32,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Pcap<R> {
    input: R,
    magic: Magic,
    link: LinkType,
}

impl Magic {
    /// `None`: the file is of another format.
    pub(crate) fn of(magic: [u8; 4]) -> Option<Self> {
        let (order, fraction_ns) = match magic {
            [0xA1, 0xB2, 0xC3, 0xD4] => (Order::Big, 1_000),
            [0xD4, 0xC3, 0xB2, 0xA1] => (Order::Little, 1_000),
            [0xA1, 0xB2, 0x3C, 0x4D] => (Order::Big, 1),
            [0x4D, 0x3C, 0xB2, 0xA1] => (Order::Little, 1),
            _ => return None,
        };
        Some(Self { order, fraction_ns })
    }

    /// Reads the rest of the file's header.
    pub(crate) fn open<R: Read>(self, mut input: R) -> io::Result<Pcap<R>> {
        let mut header = [0; 20];
        input.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        // The upper bits say how long checksums are.
        let link = LinkType(self.order.u32([a, b, c, d]) & 0xFFFF);
        Ok(Pcap { input, magic: self, link })
    }
}

impl<R: Read> Pcap<R> {
    /// The next frame; `None` at the end.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let mut header = [0; 16];
        match read_some(&mut self.input, &mut header)? {
            0 => return Ok(None),
            16 => {}
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        let Magic { order, fraction_ns } = self.magic;
        let number = |offset| order.u32_at(&header, offset).unwrap_or_default();
        let (seconds, fraction, length) = (number(0), number(4), number(8));
        let bytes = read_bytes(&mut self.input, length)?;
        Ok(Some(Frame {
            time: Duration::from_secs(seconds.into())
                + Duration::from_nanos(u64::from(fraction) * u64::from(fraction_ns)),
            link: self.link,
            original_length: (number(12) as usize).max(bytes.len()),
            bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(order: Order, magic: u32, fraction: u32) -> Vec<u8> {
        let bytes = |value: u32| match order {
            Order::Big => value.to_be_bytes(),
            Order::Little => value.to_le_bytes(),
        };
        let words = [magic, 0x0002_0004, 0, 0, 65_535, 276, 1_000, fraction, 3, 9];
        let mut file: Vec<u8> = words.into_iter().flat_map(bytes).collect();
        file.extend(b"abc");
        file
    }

    fn open(file: &[u8]) -> Pcap<&[u8]> {
        let (magic, rest) = file.split_first_chunk().unwrap();
        Magic::of(*magic).unwrap().open(rest).unwrap()
    }

    mod next_frame {
        use super::*;

        #[test]
        fn both_orders_and_both_clocks_are_understood() {
            for order in [Order::Big, Order::Little] {
                for (magic, fraction) in [(0xA1B2_C3D4, 5), (0xA1B2_3C4D, 5_000)] {
                    let file = file(order, magic, fraction);
                    let mut pcap = open(&file);
                    let frame = pcap.next_frame().unwrap().unwrap();
                    assert_eq!(frame.time, Duration::from_micros(1_000_000_005));
                    assert_eq!((frame.link, frame.original_length), (LinkType(276), 9));
                    assert_eq!(frame.bytes, b"abc");
                    assert!(pcap.next_frame().unwrap().is_none());
                }
            }
        }

        #[test]
        fn a_frame_cut_short_and_one_too_large_are_errors() {
            let mut file = file(Order::Big, 0xA1B2_C3D4, 0);
            assert!(open(&file[..file.len() - 1]).next_frame().is_err());
            assert!(open(&file[..30]).next_frame().is_err());
            file[32] = 0xFF;
            assert!(open(&file).next_frame().is_err());
        }
    }
}
