// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Describes a buffer of datagrams that leave together.

use crate::associations::AssociationHandle;
use crate::batch::FlowId;
use crate::limits::PRIORITY_LEVELS;
use crate::path::Path;

/// A contiguous buffer of datagrams for one destination.
///
/// The buffer itself is passed beside this: bytes `0..segment_size` are the first datagram, the
/// next `segment_size` the second, and so on; only the last may be shorter. The buffer may be one
/// stream instead, which the carrier cuts, and have records that the carrier seals: only the buffer
/// knows, and makes the [`Batch`](crate::Batch).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Where to, and from which of this host's addresses.
    pub path: Path,
    /// Bytes of each datagram but the last; at least 1. If the buffer is a stream, the bytes of it
    /// in each datagram.
    pub segment_size: usize,
    /// `0..=7`, 7 most urgent; becomes the top bits of DSCP where the carrier has that.
    pub priority: u8,
    /// The flow: the session, if the datagrams are one's.
    pub flow: FlowId,
    /// The association under which the carrier seals each datagram; `None` for datagrams that
    /// leave as they are.
    pub association: Option<AssociationHandle>,
}

impl Transmit {
    /// Datagrams of this size, of the least priority and of no flow.
    #[must_use]
    pub const fn new(path: Path, segment_size: usize) -> Self {
        Self { path, segment_size, priority: 0, flow: FlowId(0), association: None }
    }

    /// The datagrams in `bytes`, in order, if it is no stream.
    ///
    /// # Panics
    /// If `segment_size` is 0.
    pub fn segments<'a>(&self, bytes: &'a [u8]) -> core::slice::Chunks<'a, u8> {
        bytes.chunks(self.segment_size)
    }

    /// Checks what every carrier relies on.
    ///
    /// # Panics
    /// If `segment_size` is 0 or `priority` is above 7.
    pub fn assert_valid(&self) {
        assert!(self.segment_size > 0, "a segment has at least one byte");
        assert!(self.priority < PRIORITY_LEVELS, "a priority is 0..=7");
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{FlowId, Path, Transmit};
    use std::vec::Vec;

    fn transmit(segment_size: usize, priority: u8) -> Transmit {
        Transmit {
            path: Path::to("192.0.2.7:9".parse().unwrap()),
            segment_size,
            priority,
            flow: FlowId::default(),
            association: None,
        }
    }

    mod segments {
        use super::{Vec, transmit};

        #[test]
        fn only_the_last_is_shorter() {
            let transmit = transmit(4, 0);
            let lengths: Vec<usize> = transmit.segments(&[0; 10]).map(<[u8]>::len).collect();
            assert_eq!(lengths, [4, 4, 2]);
        }
    }

    mod assert_valid {
        use super::transmit;

        #[test]
        fn extremes_are_accepted() {
            transmit(1, 7).assert_valid();
        }

        #[test]
        #[should_panic(expected = "at least one byte")]
        fn empty_segment_is_the_callers_mistake() {
            transmit(0, 0).assert_valid();
        }

        #[test]
        #[should_panic(expected = "0..=7")]
        fn priority_eight_is_the_callers_mistake() {
            transmit(1, 8).assert_valid();
        }
    }
}
