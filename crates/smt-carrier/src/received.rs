// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Describes a buffer of datagrams that arrived together.

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
}

impl Received {
    /// Cuts `buffer`, the one that was given to the receive call, into its datagrams.
    ///
    /// Yields nothing for an empty datagram. Whatever the fields say this neither panics nor reads
    /// past the end of `buffer`.
    pub fn segments<'a>(&self, buffer: &'a mut [u8]) -> core::slice::ChunksMut<'a, u8> {
        let length = self.length.min(buffer.len());
        buffer[..length].chunks_mut(self.segment_size.max(1))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Path, Received};
    use std::vec::Vec;

    mod segments {
        use super::{Path, Received, Vec};

        fn lengths(length: usize, segment_size: usize, buffer: &mut [u8]) -> Vec<usize> {
            let received = Received {
                path: Path::to("192.0.2.7:9".parse().unwrap()),
                length,
                segment_size,
            };
            received
                .segments(buffer)
                .map(|datagram| datagram.len())
                .collect()
        }

        #[test]
        fn bytes_past_the_length_are_left_out() {
            assert_eq!(lengths(10, 4, &mut [0; 64]), [4, 4, 2]);
        }

        #[test]
        fn empty_datagram_yields_nothing() {
            assert_eq!(lengths(0, 0, &mut [0; 64]), []);
        }

        #[test]
        fn length_past_the_buffer_is_bounded() {
            assert_eq!(lengths(100, 4, &mut [0; 6]), [4, 2]);
        }
    }
}
