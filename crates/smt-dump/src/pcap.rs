// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The classic format: a header of 24 bytes, then frames with 16 bytes before each.

use std::io::{self, Read};
use std::time::Duration;

use crate::frame::{Frame, LinkType, damaged, read_bytes, read_some};
use crate::magic::{JOINED, PcapMagic, begins_capture};

/// An open file.
#[derive(Debug)]
pub(crate) struct Pcap<R> {
    input: R,
    magic: PcapMagic,
    link: LinkType,
}

impl<R: Read> Pcap<R> {
    /// Reads the rest of the file's header.
    pub(crate) fn open(magic: PcapMagic, mut input: R) -> io::Result<Self> {
        let mut header = [0; 20];
        input.read_exact(&mut header)?;
        let [.., a, b, c, d] = header;
        // The upper bits say how long checksums are.
        let link = LinkType(magic.order.u32([a, b, c, d]) & 0xFFFF);
        Ok(Self { input, magic, link })
    }
}

impl<R> Pcap<R> {
    pub(crate) fn input(&self) -> &R {
        &self.input
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
        self.check(&header)?;
        let PcapMagic { order, fraction_ns } = self.magic;
        let number = |offset| order.u32_at(&header, offset).unwrap_or_default();
        let (seconds, fraction, length) = (number(0), number(4), number(8));
        let bytes = read_bytes(&mut self.input, length)?;
        Ok(Some(Frame {
            time: Duration::from_secs(seconds.into())
                + Duration::from_nanos(u64::from(fraction) * u64::from(fraction_ns)),
            link: self.link,
            order,
            original_length: (number(12) as usize).max(bytes.len()),
            bytes,
        }))
    }

    /// Refuses what no frame begins with.
    fn check(&self, header: &[u8; 16]) -> io::Result<()> {
        if *header == [0; 16] {
            return Err(damaged("zeros where a frame should begin"));
        }
        if begins_capture(header) {
            return Err(damaged(JOINED));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Order;

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
        Pcap::open(PcapMagic::of(*magic).unwrap(), rest).unwrap()
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
        fn zeros_and_another_capture_in_the_place_of_a_frame_are_told() {
            let section = b"\x0A\x0D\x0D\x0A\x1C\0\0\0\x4D\x3C\x2B\x1A\x01\0\0\0";
            let other = file(Order::Big, 0xA1B2_C3D4, 5);
            for (behind, told) in [
                (&[0; 512][..], "zeros"),
                (&other, "another capture"),
                (section, "another capture"),
            ] {
                let file = [&file(Order::Little, 0xA1B2_3C4D, 5), behind].concat();
                let mut pcap = open(&file);
                assert!(pcap.next_frame().unwrap().is_some());
                let error = pcap.next_frame().unwrap_err().to_string();
                assert!(error.starts_with(told), "{error}");
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
