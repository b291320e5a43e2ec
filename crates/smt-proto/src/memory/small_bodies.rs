// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short bodies on their way to the application: one behind the other in a block that is used again
//! once all of it has been dropped, so that a short message allocates nothing in the steady state.
//!
//! A body that the application keeps holds its block: at most [`BLOCK`] bytes for one that is
//! shorter. Behind a backlog of the application bodies are copied out of it
//! (`Shared::body_to_wait`), or a peer could have few bytes counted and many kept. Longer bodies
//! have memory of their own (`body`, `buffer_pool`).

use bytes::{Bytes, BytesMut};

/// The blocks into which short bodies are put.
#[derive(Debug, Default)]
pub(crate) struct SmallBodies(BytesMut);

impl SmallBodies {
    /// A body with these bytes.
    pub(crate) fn of(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > SHORT {
            return Bytes::copy_from_slice(bytes);
        }
        if self.0.capacity() < bytes.len() {
            // The block is used again from its beginning if no body of it is held.
            self.0.reserve(BLOCK);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

/// The longest body in a block: as long as record 0 holds.
pub(crate) const SHORT: usize = 1_142;
/// Bytes of a block: a body of one byte that the application keeps for years may hold all of it. A
/// larger block would save little: a block that is dropped whole is used again.
const BLOCK: usize = 4 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn a_block_is_used_again_when_all_of_it_is_dropped() {
        let mut bodies = SmallBodies::default();
        let first = bodies.of(&[1; 1_000]);
        let address = first.as_ptr();
        drop(first);
        for number in 0..100 {
            let body = bodies.of(&[number; 1_000]);
            let offset = body.as_ptr() as usize - address as usize;
            assert!(offset < BLOCK, "another block: {offset}");
            assert_eq!(body, vec![number; 1_000]);
        }
    }

    #[test]
    fn kept_bodies_stay_as_they_are() {
        let mut bodies = SmallBodies::default();
        let kept: Vec<Bytes> = (0..100).map(|number| bodies.of(&[number; 700])).collect();
        for (number, body) in kept.into_iter().enumerate() {
            assert_eq!(body, vec![number as u8; 700]);
        }
    }
}
