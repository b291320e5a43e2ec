// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory in which a carrier receives.

use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use std::sync::{Mutex, TryLockError};

/// A buffer for whole batches, made when it is needed first.
///
/// One thread uses it at a time, mostly always the same one. Another that receives meanwhile gets
/// memory of its own, so that nobody waits for a thread that waits for datagrams.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer(Mutex<Vec<u8>>);

impl ReceiveBuffer {
    /// Lends the buffer, [`RECEIVE_BUFFER_BYTES`] of it.
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut buffer = match self.0.try_lock() {
            Ok(buffer) => buffer,
            // The bytes of a batch whose taker has panicked are written over.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return work(&mut vec![0; RECEIVE_BUFFER_BYTES]),
        };
        if buffer.is_empty() {
            buffer.resize(RECEIVE_BUFFER_BYTES, 0);
        }
        work(&mut buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_borrowers_have_memory_of_their_own() {
        let buffer = ReceiveBuffer::default();
        buffer.lend(|first| {
            first[0] = 1;
            buffer.lend(|second| {
                assert_eq!((second.len(), second[0]), (RECEIVE_BUFFER_BYTES, 0));
            });
            assert_eq!(first.len(), RECEIVE_BUFFER_BYTES);
        });
    }

    #[test]
    fn a_borrower_that_panics_leaves_the_buffer_usable() {
        let buffer = ReceiveBuffer::default();
        let panicking = std::panic::AssertUnwindSafe(|| buffer.lend(|_| panic!("a taker")));
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(buffer.lend(|buffer| buffer.len()), RECEIVE_BUFFER_BYTES);
    }
}
