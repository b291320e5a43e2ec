// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Describes a buffer of datagrams that arrived together.

use crate::arrival::{Arrival, Marks};
use crate::path::Path;

/// The contents that a receive call put into the caller's buffer: one datagram, or several of one
/// path that the carrier coalesced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    /// Whence the datagrams came, and which address of ours they called.
    pub path: Path,
    /// Bytes in the buffer, all datagrams together.
    pub length: usize,
    /// Bytes of each datagram but the last, which may be shorter.
    pub segment_size: usize,
    /// The marks that each of the datagrams carries.
    pub marks: Marks,
}

impl Received {
    /// The datagrams in `buffer`, the one that was given to the receive call. Whatever the fields
    /// say this neither panics nor reads past the end of `buffer`.
    pub fn arrival<'a>(&self, buffer: &'a [u8]) -> Arrival<'a> {
        Arrival {
            path: self.path,
            bytes: &buffer[..self.length.min(buffer.len())],
            segment_size: self.segment_size,
            marks: self.marks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, Path, Received};

    #[test]
    fn a_length_past_the_buffer_is_bounded() {
        let received = Received {
            path: Path::to("192.0.2.7:9".parse().unwrap()),
            length: 100,
            segment_size: 4,
            marks: Marks::NONE,
        };
        assert_eq!(received.arrival(&[0; 6]).bytes.len(), 6);
    }
}
