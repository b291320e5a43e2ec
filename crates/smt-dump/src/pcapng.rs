// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The newer format: blocks, each with its type and length.
//!
//! A section header tells the byte order, interface descriptions the link types and clocks,
//! enhanced and simple packet blocks hold frames. All other blocks are passed over.

use std::io::{self, Read};
use std::time::Duration;

use crate::frame::{Frame, LinkType, Order, damaged, read_bytes, read_some};
use crate::magic::{JOINED, PcapMagic, byte_order, is_section};

/// An open file.
#[derive(Debug)]
pub(crate) struct Pcapng<R> {
    input: R,
    order: Order,
    /// The interfaces of the current section.
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// `if_tsresol`: a negative power of ten, or of two if the highest bit is set.
    resolution: u8,
}

impl<R> Pcapng<R> {
    pub(crate) fn input(&self) -> &R {
        &self.input
    }
}

impl<R: Read> Pcapng<R> {
    /// Reads the first section header, whose type has been read.
    pub(crate) fn open(input: R) -> io::Result<Self> {
        let mut pcapng = Self { input, order: Order::Little, interfaces: Vec::new() };
        pcapng.read_section_header()?;
        Ok(pcapng)
    }

    /// The next frame; `None` at the end.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let mut ty = [0; 4];
            match read_some(&mut self.input, &mut ty)? {
                0 => return Ok(None),
                4 => {}
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            if is_section(ty) {
                self.read_section_header()?;
                continue;
            }
            if PcapMagic::of(ty).is_some() {
                return Err(damaged(JOINED));
            }
            let mut length = [0; 4];
            self.input.read_exact(&mut length)?;
            let body = self.body(self.order.u32(length), 8)?;
            match self.order.u32(ty) {
                INTERFACE => self.add_interface(&body)?,
                ENHANCED_PACKET => return self.enhanced(&body).map(Some),
                SIMPLE_PACKET => return self.simple(&body).map(Some),
                _ => {}
            }
        }
    }

    /// Behind the type: length, byte order magic, and fields that are not needed.
    fn read_section_header(&mut self) -> io::Result<()> {
        let mut head = [0; 8];
        self.input.read_exact(&mut head)?;
        let [a, b, c, d, magic @ ..] = head;
        self.order = byte_order(&magic).ok_or_else(|| damaged("a section without a byte order"))?;
        self.interfaces.clear();
        self.body(self.order.u32([a, b, c, d]), 12)?;
        Ok(())
    }

    /// The rest of a block of which `read` bytes have been read, without the length that ends it.
    fn body(&mut self, length: u32, read: u32) -> io::Result<Vec<u8>> {
        let Some(rest) = length.checked_sub(read + 4).filter(|_| length.is_multiple_of(4)) else {
            return Err(damaged("a block of an impossible length"));
        };
        let body = read_bytes(&mut self.input, rest)?;
        self.input.read_exact(&mut [0; 4])?;
        Ok(body)
    }

    fn add_interface(&mut self, body: &[u8]) -> io::Result<()> {
        let order = self.order;
        let link =
            order.u16_at(body, 0).ok_or_else(|| damaged("an interface without a link type"))?;
        let mut resolution = MICROSECONDS;
        let mut options = body.get(8..).unwrap_or_default();
        while let (Some(code @ 1..), Some(length)) =
            (order.u16_at(options, 0), order.u16_at(options, 2))
        {
            let length = usize::from(length);
            if let (TIME_RESOLUTION, Some(value)) = (code, options.get(4)) {
                resolution = *value;
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(Interface { link: LinkType(link.into()), resolution });
        Ok(())
    }

    fn enhanced(&self, body: &[u8]) -> io::Result<Frame> {
        let number = |offset| {
            self.order.u32_at(body, offset).ok_or_else(|| damaged("a packet block cut short"))
        };
        let interface = self.interface(number(0)?)?;
        let ticks = u64::from(number(4)?) << 32 | u64::from(number(8)?);
        let bytes = body
            .get(20..)
            .and_then(|bytes| bytes.get(..number(12).ok()? as usize))
            .ok_or_else(|| damaged("a packet block shorter than its packet"))?;
        Ok(Frame {
            time: interface.time(ticks),
            link: interface.link,
            order: self.order,
            bytes: bytes.to_vec(),
            original_length: (number(16)? as usize).max(bytes.len()),
        })
    }

    /// Has no time, and belongs to the first interface.
    fn simple(&self, body: &[u8]) -> io::Result<Frame> {
        let original =
            self.order.u32_at(body, 0).ok_or_else(|| damaged("a packet block cut short"))? as usize;
        let bytes = &body[4..];
        Ok(Frame {
            time: Duration::ZERO,
            link: self.interface(0)?.link,
            order: self.order,
            bytes: bytes[..original.min(bytes.len())].to_vec(),
            original_length: original,
        })
    }

    fn interface(&self, number: u32) -> io::Result<Interface> {
        let interface = self.interfaces.get(number as usize);
        interface.copied().ok_or_else(|| damaged("a packet of an interface that is not described"))
    }
}

impl Interface {
    fn time(self, ticks: u64) -> Duration {
        let exponent = u32::from(self.resolution & 0x7F);
        let base: u128 = if self.resolution & 0x80 == 0 { 10 } else { 2 };
        let Some(per_second) = base.checked_pow(exponent) else {
            return Duration::ZERO;
        };
        let ticks = u128::from(ticks);
        let seconds = u64::try_from(ticks / per_second).unwrap_or(u64::MAX);
        // Below a second; of units finer than 10^-29 the multiplication would overflow.
        let ns = (ticks % per_second).checked_mul(1_000_000_000).map_or(0, |ns| ns / per_second);
        Duration::from_secs(seconds) + Duration::from_nanos(ns as u64)
    }
}

const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const TIME_RESOLUTION: u16 = 9;
const MICROSECONDS: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::magic::{BYTE_ORDER, SECTION_HEADER};

    fn block(ty: u32, body: &[u8], is_big: bool) -> Vec<u8> {
        let word = |value: u32| {
            if is_big { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        let length = word(body.len() as u32 + 12);
        [&word(ty), &length, body, &length].concat()
    }

    fn words(words: &[u32], is_big: bool) -> Vec<u8> {
        let word = |value: &u32| {
            if is_big { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        words.iter().flat_map(word).collect()
    }

    /// A section, an interface of nanoseconds and raw IP, an unknown block, and a packet.
    fn file(is_big: bool) -> Vec<u8> {
        let short = |value: u16| {
            if is_big { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        let interface = [
            &short(101)[..],
            &short(0),
            &words(&[65_535], is_big),
            &short(9),
            &short(1),
            &[9, 0, 0, 0],
            &short(0),
            &short(0),
        ];
        let time = 1_000_000_005_u64 * 1_000;
        let mut packet = words(&[0, (time >> 32) as u32, time as u32, 3, 9], is_big);
        packet.extend(b"abc\0");
        [
            block(SECTION_HEADER, &words(&[BYTE_ORDER, 0x0001_0000, !0, !0], is_big), is_big),
            block(INTERFACE, &interface.concat(), is_big),
            block(77, b"what", is_big),
            block(ENHANCED_PACKET, &packet, is_big),
        ]
        .concat()
    }

    mod next_frame {
        use super::*;

        #[test]
        fn both_orders_are_understood() {
            for is_big in [true, false] {
                let file = file(is_big);
                let mut pcapng = Pcapng::open(&file[4..]).unwrap();
                let frame = pcapng.next_frame().unwrap().unwrap();
                assert_eq!(frame.time, Duration::from_micros(1_000_000_005));
                assert_eq!((frame.link, frame.original_length), (LinkType(101), 9));
                assert_eq!(frame.bytes, b"abc");
                assert!(pcapng.next_frame().unwrap().is_none());
            }
        }

        #[test]
        fn a_file_cut_anywhere_ends_or_fails_but_never_panics() {
            let file = file(false);
            for end in 4..file.len() {
                if let Ok(mut pcapng) = Pcapng::open(&file[4..end]) {
                    while let Ok(Some(_)) = pcapng.next_frame() {}
                }
            }
        }

        #[test]
        fn garbage_in_any_byte_never_panics() {
            for place in 4..file(false).len() {
                let mut file = file(false);
                file[place] = 0xFF;
                if let Ok(mut pcapng) = Pcapng::open(&file[4..]) {
                    while let Ok(Some(_)) = pcapng.next_frame() {}
                }
            }
        }
    }
}
