// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Buffers of bodies that the application has dropped, kept for bodies to come.
//!
//! An allocator gives large buffers back to the system, and the next body pays for its pages again:
//! a fault for each 4 KB, which costs as much as opening them and more. A buffer from here has its
//! pages, and has been initialised.
//!
//! 1. [`BufferPool::take`] yields a buffer of at least as many bytes as asked for, from the pool or
//!    a new one.
//! 2. A buffer comes back when it is dropped, be it by the core or as the last [`bytes::Bytes`] of
//!    a body. Beyond the bound, buffers of the size class that takes most room are freed.
//!
//! No thread waits for the lock: a buffer that finds it taken is allocated, or freed, as if there
//! were no pool.
//!
//! A buffer still holds its former bytes. They are never visible: a body is delivered when all of
//! its records have opened, and they cover all of it.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use spin::mutex::SpinMutex;

/// A pool of free buffers. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct BufferPool(Arc<SpinMutex<FreeLists>>);

/// A buffer that comes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    buffer_pool: BufferPool,
}

#[derive(Debug)]
struct FreeLists {
    /// Buffers by their size.
    by_class: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    bytes_max: usize,
}

impl BufferPool {
    /// A pool without buffers, which will never hold more than `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Arc::new(SpinMutex::new(FreeLists { by_class: Vec::new(), bytes: 0, bytes_max })))
    }

    /// A buffer of at least `least` bytes: a free one that has `most` if there is one, else any
    /// that will do, else a new one.
    pub(crate) fn take(&self, least: usize, most: usize) -> Buffer {
        let recycled = self.0.try_lock().and_then(|mut free_lists| {
            let recycled = free_lists.take(most);
            recycled.or_else(|| free_lists.take(least))
        });
        Buffer {
            bytes: recycled.unwrap_or_else(|| vec![0; Class::of(least).size()]),
            buffer_pool: self.clone(),
        }
    }
}

impl FreeLists {
    /// A free buffer of at least as many bytes, and at most about half as many more.
    fn take(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let first = Class::of(bytes).0.min(self.by_class.len());
        let free_lists = self.by_class[first..].iter_mut();
        let recycled = free_lists.take(STEPS / 2 + 1).find_map(Vec::pop)?;
        self.bytes -= recycled.len();
        Some(recycled)
    }

    /// Keeps a buffer, and frees others if there are too many.
    fn put(&mut self, recycled: Vec<u8>) {
        if recycled.len() > self.bytes_max {
            return;
        }
        let class = Class::of(recycled.len()).0;
        if self.by_class.len() <= class {
            self.by_class.resize_with(class + 1, Vec::new);
        }
        self.bytes += recycled.len();
        self.by_class[class].push(recycled);
        while self.bytes > self.bytes_max {
            let room = |list: &&mut Vec<Vec<u8>>| list.len() * list.first().map_or(0, Vec::len);
            let largest = self.by_class.iter_mut().max_by_key(room);
            let Some(given_back) = largest.and_then(Vec::pop) else {
                return;
            };
            self.bytes -= given_back.len();
        }
    }
}

impl Buffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = core::mem::take(&mut self.bytes);
        if let Some(mut free_lists) = self.buffer_pool.0.try_lock() {
            free_lists.put(bytes);
        }
    }
}

/// A size of buffers: four to each doubling, so that at most a fifth of one is not needed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Class(usize);

impl Class {
    /// The smallest class that holds `bytes` bytes.
    fn of(bytes: usize) -> Self {
        let doublings = (bytes.max(LEAST) / LEAST).ilog2() as usize;
        let base = LEAST << doublings;
        let step = base / STEPS;
        Self(doublings * STEPS + (bytes.max(base) - base).div_ceil(step))
    }

    fn size(self) -> usize {
        let base = LEAST << (self.0 / STEPS);
        base + self.0 % STEPS * (base / STEPS)
    }
}

/// Bytes of the smallest buffer.
const LEAST: usize = 4_096;
/// Size classes to a doubling.
const STEPS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_it_is_for_and_little_more() {
        let mut bytes = 1;
        while bytes < 1 << 30 {
            for bytes in [bytes - 1, bytes, bytes + 1] {
                let size = Class::of(bytes).size();
                assert!(size >= bytes, "{bytes} B in {size} B");
                assert!(size <= LEAST.max(bytes + bytes / 4), "{size} B for {bytes} B");
                assert_eq!(Class::of(size).size(), size, "a buffer finds its own place");
            }
            bytes += bytes / 7 + 1;
        }
    }

    #[test]
    fn a_dropped_buffer_is_taken_again() {
        let buffer_pool = BufferPool::new(1 << 20);
        let mut buffer = buffer_pool.take(10_000, 10_000);
        buffer.bytes_mut()[0] = 7;
        let size = buffer.bytes().len();
        drop(buffer);
        assert_eq!(buffer_pool.0.lock().bytes, size);
        let again = buffer_pool.take(6_000, 9_000);
        assert_eq!((again.bytes()[0], again.bytes().len()), (7, size));
        assert_eq!(buffer_pool.0.lock().bytes, 0);
    }

    #[test]
    fn a_free_buffer_for_the_whole_body_comes_before_one_for_its_beginning() {
        let buffer_pool = BufferPool::new(1 << 20);
        let (small, large) = (buffer_pool.take(10_000, 0), buffer_pool.take(100_000, 0));
        drop((small, large));
        let (first, second) =
            (buffer_pool.take(10_000, 100_000), buffer_pool.take(10_000, 100_000));
        assert!(first.bytes().len() >= 100_000);
        assert!(second.bytes().len() < 20_000);
    }

    #[test]
    fn a_much_larger_one_is_not_wasted() {
        let buffer_pool = BufferPool::new(1 << 20);
        drop(buffer_pool.take(100_000, 100_000));
        assert!(buffer_pool.take(10_000, 10_000).bytes().len() < 20_000);
    }

    #[test]
    fn the_size_class_that_takes_most_room_is_freed_beyond_the_bound() {
        let buffer_pool = BufferPool::new(100_000);
        let small: Vec<Buffer> = (0..20).map(|_| buffer_pool.take(5_000, 5_000)).collect();
        drop(small);
        assert!(buffer_pool.0.lock().bytes > 90_000);
        drop(buffer_pool.take(40_000, 40_000));
        let free_lists = buffer_pool.0.lock();
        assert!(free_lists.bytes <= 100_000);
        let of = |bytes| free_lists.by_class[Class::of(bytes).0].len();
        assert_eq!((of(40_000), of(5_000)), (1, 11));
        drop(free_lists);
        drop(buffer_pool.take(200_000, 200_000));
        assert!(buffer_pool.0.lock().take(200_000).is_none(), "larger than the bound");
    }
}
