// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Describes datagrams that one call has put into a buffer.

use smt_carrier::{Arrival, Marks, Path};

/// The contents that a receive call put into a buffer: one datagram, or several of one path that
/// came coalesced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Received {
    pub(crate) path: Path,
    /// Bytes in the buffer, all datagrams together.
    pub(crate) length: usize,
    /// Bytes of each datagram but the last, which may be shorter.
    pub(crate) segment_size: usize,
    pub(crate) marks: Marks,
}

impl Received {
    /// The datagrams in the buffer, as the carrier hands them over.
    pub(crate) fn arrival<'a>(&self, buffer: &'a [u8]) -> Arrival<'a> {
        Arrival {
            path: self.path,
            bytes: &buffer[..self.length.min(buffer.len())],
            segment_size: self.segment_size,
            marks: self.marks,
            opened: &[],
            spi: None,
        }
    }
}
