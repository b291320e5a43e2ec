// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for values that come and go, used again: a message that leaves alone allocates nothing in
//! the steady state.
//!
//! A value that is dropped instead of given back is freed as usual: nothing depends on its return.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// A value of a [`ObjectPool`].
#[derive(Debug)]
pub(crate) struct Pooled<T>(Box<Option<T>>);

/// Memory that waits for the next values.
#[derive(Debug)]
pub(crate) struct ObjectPool<T> {
    free: Vec<Box<Option<T>>>,
    /// The number of values whose memory is kept.
    most: usize,
}

impl<T> ObjectPool<T> {
    /// A pool that keeps memory for at most `most` values.
    pub(crate) const fn new(most: usize) -> Self {
        Self { free: Vec::new(), most }
    }

    /// Puts a value into memory that waits, or into new memory.
    pub(crate) fn put(&mut self, value: T) -> Pooled<T> {
        let mut place = self.free.pop().unwrap_or_default();
        *place = Some(value);
        Pooled(place)
    }

    /// Drops a value; its memory waits for the next one.
    pub(crate) fn take_back(&mut self, Pooled(mut place): Pooled<T>) {
        *place = None;
        if self.free.len() < self.most {
            self.free.push(place);
        }
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().as_ref().expect(FULL)
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().as_mut().expect(FULL)
    }
}

const FULL: &str = "it is emptied only when it is given back";

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn memory_is_used_again_and_what_was_in_it_is_dropped_at_once() {
        let (mut pool, value) = (ObjectPool::new(1), Rc::new(7));
        let (first, second) = (pool.put(Rc::clone(&value)), pool.put(Rc::clone(&value)));
        let address = &raw const *first;
        pool.take_back(first);
        pool.take_back(second);
        assert_eq!((Rc::strong_count(&value), pool.free.len()), (1, 1));
        let third = pool.put(value);
        assert_eq!((&raw const *third, **third), (address, 7));
    }
}
