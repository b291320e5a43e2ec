// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first bytes of captures of both formats, by which they are known.

use crate::frame::Order;

/// The byte order and the unit of time that the first four bytes tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PcapMagic {
    pub(crate) order: Order,
    /// Nanoseconds in a unit of the fraction of a second.
    pub(crate) fraction_ns: u32,
}

impl PcapMagic {
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
}

/// Whether a section begins like this, and so a file of this format: it reads the same in both
/// orders.
pub(crate) fn is_section(start: [u8; 4]) -> bool {
    u32::from_be_bytes(start) == SECTION_HEADER
}

/// The byte order of a section by the bytes behind its type and length; `None`: it is none.
pub(crate) fn byte_order(magic: &[u8]) -> Option<Order> {
    match u32::from_be_bytes(*magic.first_chunk()?) {
        BYTE_ORDER => Some(Order::Big),
        order if order.swap_bytes() == BYTE_ORDER => Some(Order::Little),
        _ => None,
    }
}

/// Whether a capture of either format begins so, instead of a frame of the years 1975 or 2056.
pub(crate) fn begins_capture(header: &[u8; 16]) -> bool {
    let [a, b, c, d, rest @ ..] = header;
    let is_pcap = PcapMagic::of([*a, *b, *c, *d]).is_some_and(|PcapMagic { order, .. }| {
        [order.u16_at(rest, 0), order.u16_at(rest, 2)] == VERSION.map(Some)
    });
    is_pcap || is_section([*a, *b, *c, *d]) && byte_order(&rest[4..]).is_some()
}

/// Where a second file has been put behind the first.
pub(crate) const JOINED: &str = "another capture begins here; mergecap joins captures";

/// Major and minor number.
const VERSION: [u16; 2] = [2, 4];

pub(crate) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(crate) const BYTE_ORDER: u32 = 0x1A2B_3C4D;
