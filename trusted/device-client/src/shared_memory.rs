// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls for memory that two processes map.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::memfd_create;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::WORDS;

const BYTES: usize = WORDS * 8;
/// The size cannot change: a process that shrank it would kill the other one at its next access.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory of [`WORDS`] words that another process may change at any time. All access is by atomic
/// operations, so that such a change is no data race.
#[derive(Debug)]
pub struct SharedMemory(NonNull<AtomicU64>);

impl SharedMemory {
    /// Makes memory of zeros, and a file descriptor for the other process.
    ///
    /// # Errors
    /// The operating system has no memory or no file descriptor left.
    pub fn create() -> io::Result<(Self, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"smt-device", flags)?;
        ftruncate(&file, BYTES as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok((Self::map(&file)?, file))
    }

    /// Maps what another process has made by [`SharedMemory::create`].
    ///
    /// # Errors
    /// It has another size or may change its size; the operating system failed.
    pub fn open(file: impl AsFd) -> io::Result<Self> {
        let is_sealed = fcntl_get_seals(&file)?.contains(SEALS);
        if !is_sealed || fstat(&file)?.st_size != BYTES as i64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Self::map(file)
    }

    /// One word. Panics beyond [`WORDS`]; callers know the layout.
    #[must_use]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        #[cfg(feature = "hostile")]
        crate::hostile::before_access(self, index);
        &self.words()[index]
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has WORDS words, is aligned to a page, and lives as long as `self`.
        // Its size is sealed. AtomicU64 allows changes by others at any time, and all bits are
        // valid.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), WORDS) }
    }

    fn map(file: impl AsFd) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice overlaps with nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), BYTES, access, flags, file, 0)? };
        NonNull::new(start.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size, and no reference outlives `self`.
        // A failure leaves the mapping, which is no more than a leak.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

// SAFETY: the mapping belongs to no thread, and its words are atomic.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn both_mappings_have_the_same_words() {
        let (device, file) = SharedMemory::create().unwrap();
        let host = SharedMemory::open(&file).unwrap();
        host.word(WORDS - 1).store(7, Ordering::Relaxed);
        assert_eq!(device.word(WORDS - 1).load(Ordering::Relaxed), 7);
    }

    #[test]
    fn the_host_cannot_shrink_the_memory_under_the_device() {
        let (_memory, file) = SharedMemory::create().unwrap();
        assert!(ftruncate(&file, 0).is_err());
        assert!(ftruncate(&file, 2 * BYTES as u64).is_err());
    }

    #[test]
    fn memory_that_may_shrink_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"unsealed", flags).unwrap();
        ftruncate(&file, BYTES as u64).unwrap();
        assert!(SharedMemory::open(&file).is_err());
        fcntl_add_seals(&file, SEALS).unwrap();
        assert!(SharedMemory::open(&file).is_ok());
    }
}
