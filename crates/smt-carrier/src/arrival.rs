// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that have arrived together, and what the network has marked on them.

use crate::keys::Opened;
use crate::path::Path;

/// Datagrams of one path that have arrived together: one, or several that the carrier coalesced.
///
/// The bytes come from the network: nothing in them is to be trusted. The records that
/// were opened are the carrier's own word ([`Opened`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival<'a> {
    /// Whence the datagrams came, and which address of ours they called.
    pub path: Path,
    /// All datagrams, one behind the other. Nothing, if what came was not for this carrier.
    pub bytes: &'a [u8],
    /// Bytes of each datagram but the last, which may be shorter.
    pub segment_size: usize,
    /// The marks that each of the datagrams carries.
    pub marks: Marks,
    /// The records that the carrier has opened, in the order in which they lie in `bytes`.
    pub opened: &'a [Opened],
    /// The SPI of the association under which the carrier has opened the datagrams
    /// ([`Associations`](crate::Associations)); `None` if they came without. This is the word of
    /// the carrier: a receiver has to know which peer it has given the association.
    pub spi: Option<u32>,
}

impl<'a> Arrival<'a> {
    /// One whole datagram without a mark.
    #[must_use]
    pub const fn datagram(path: Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, segment_size: bytes.len(), marks: Marks::NONE, opened: &[], spi: None }
    }

    /// The same with these records opened.
    #[must_use]
    pub const fn with_opened(mut self, opened: &'a [Opened]) -> Self {
        self.opened = opened;
        self
    }

    /// The same, opened under the association of this SPI.
    #[must_use]
    pub const fn with_spi(mut self, spi: Option<u32>) -> Self {
        self.spi = spi;
        self
    }

    /// The same with these marks.
    #[must_use]
    pub const fn with_marks(mut self, marks: Marks) -> Self {
        self.marks = marks;
        self
    }

    /// The datagrams, in order. Yields nothing for an empty datagram. Whatever the fields say this
    /// does not panic.
    pub fn segments(&self) -> core::slice::Chunks<'a, u8> {
        self.bytes.chunks(self.segment_size.max(1))
    }
}

/// The marks of the network on a datagram. Anybody on the way can forge them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Marks {
    /// Whether a switch has cut the datagram and left its beginning (NDP).
    pub trimmed: bool,
    /// The code point of explicit congestion notification; [`Ecn::NotEct`] if the carrier does not
    /// tell.
    pub ecn: Ecn,
}

impl Marks {
    /// No mark.
    pub const NONE: Self = Self { trimmed: false, ecn: Ecn::NotEct };
}

/// Code points of explicit congestion notification (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ecn {
    /// The sender's transport does not know ECN.
    #[default]
    NotEct,
    /// The sender's transport is ECN-capable: ECT(1).
    Ect1,
    /// The sender's transport is ECN-capable: ECT(0).
    Ect0,
    /// A switch has seen congestion: CE.
    Ce,
}

impl Ecn {
    /// The code point in the lowest two bits of an IPv4 TOS or IPv6 traffic class byte.
    #[must_use]
    pub const fn of_traffic_class(class: u8) -> Self {
        match class & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Arrival, Ecn, Marks, Path};
    use std::vec::Vec;

    mod segments {
        use super::{Arrival, Marks, Path, Vec};

        fn lengths(length: usize, segment_size: usize) -> Vec<usize> {
            let arrival = Arrival {
                path: Path::to("192.0.2.7:9".parse().unwrap()),
                bytes: &[0; 64][..length],
                segment_size,
                marks: Marks::NONE,
                opened: &[],
                spi: None,
            };
            arrival.segments().map(<[u8]>::len).collect()
        }

        #[test]
        fn only_the_last_is_shorter() {
            assert_eq!(lengths(10, 4), [4, 4, 2]);
        }

        #[test]
        fn an_empty_datagram_yields_nothing() {
            assert_eq!(lengths(0, 0), []);
        }

        #[test]
        fn a_segment_size_of_nothing_does_no_harm() {
            assert_eq!(lengths(2, 0), [1, 1]);
        }
    }

    mod of_traffic_class {
        use super::Ecn;

        #[test]
        fn dscp_does_not_matter() {
            for dscp in [0, 46, 63] {
                let found = [0, 1, 2, 3].map(|ecn| Ecn::of_traffic_class(dscp << 2 | ecn));
                assert_eq!(found, [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
            }
        }
    }
}
