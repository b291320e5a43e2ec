// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls for memory that only this process can read.

use std::ops::{Deref, DerefMut};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::ftruncate;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous, munmap};

/// How a value is kept from others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Secrecy {
    /// By `memfd_secret(2)`: its pages are in no other process's map, the kernel's included, so
    /// root cannot read them by `/proc/PID/mem`, and no dump has them.
    Secret,
    /// By `mlock(2)` and `MADV_DONTDUMP`: it is neither swapped out nor in a core dump.
    Locked,
}

/// A value in pages of its own. It is dropped, and with that wiped as far as it wipes itself.
pub struct SecretBox<T> {
    value: NonNull<T>,
    secrecy: Secrecy,
}

impl<T> SecretBox<T> {
    /// Moves a value into memory that is secret where the kernel can, and locked where it cannot.
    ///
    /// # Errors
    /// The operating system has no memory left, or the limit of locked memory (`ulimit -l`) is too
    /// low.
    pub fn new(value: T) -> Result<Self, Errno> {
        const { assert!(align_of::<T>() <= 4096, "a page is aligned enough") }
        let (start, secrecy) = match secret_pages(size_of::<T>()) {
            Ok(start) => (start, Secrecy::Secret),
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP) => {
                (locked_pages(size_of::<T>())?, Secrecy::Locked)
            }
            Err(error) => return Err(error),
        };
        let value_at = start.cast::<T>();
        // SAFETY: the pages are new, writable, large and aligned enough, and nobody else has them.
        unsafe { value_at.write(value) };
        Ok(Self { value: value_at, secrecy })
    }

    /// How the value is kept.
    #[must_use]
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }
}

// SAFETY: the box owns its value alone, as a `Box` does.
unsafe impl<T: Send> Send for SecretBox<T> {}

impl<T> Deref for SecretBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `new` wrote a value there, which lives until `drop`.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for SecretBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for SecretBox<T> {
    fn drop(&mut self) {
        // SAFETY: the value was written by `new`, and nobody has a reference.
        unsafe { self.value.drop_in_place() };
        // SAFETY: the mapping was made with this size. A failure is no more than a leak.
        let _ = unsafe { munmap(self.value.as_ptr().cast(), size_of::<T>().max(1)) };
    }
}

fn secret_pages(size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the call takes flags alone.
    let file = unsafe { libc::syscall(libc::SYS_memfd_secret, libc::O_CLOEXEC) };
    let Ok(file @ 0..) = i32::try_from(file) else {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::NOSYS));
    };
    // SAFETY: the kernel gave this file descriptor to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    ftruncate(&file, size.max(1) as u64)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice overlaps with nothing. The file
    // descriptor is closed at the end, so nobody shrinks it.
    let start =
        unsafe { mmap(std::ptr::null_mut(), size.max(1), access, MapFlags::SHARED, &file, 0)? };
    NonNull::new(start.cast()).ok_or(Errno::NOMEM)
}

fn locked_pages(size: usize) -> Result<NonNull<u8>, Errno> {
    let size = size.max(1);
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice overlaps with nothing.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), size, access, MapFlags::PRIVATE)? };
    // SAFETY: these are the pages that were mapped just now.
    unsafe { mlock(start, size) }?;
    // SAFETY: as above. The advice changes no content.
    unsafe { madvise(start, size, Advice::LinuxDontDump) }?;
    NonNull::new(start.cast()).ok_or(Errno::NOMEM)
}

/// Overwrites what earlier calls have left on the stack, in so many bytes: values that were moved
/// leave copies.
#[inline(never)]
pub fn clear_stack<const BYTES: usize>() {
    let mut bytes = [0_u8; BYTES];
    zeroize::Zeroize::zeroize(&mut bytes[..]);
    std::hint::black_box(&mut bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_in_secret_and_in_locked_memory() {
        let mut boxed = SecretBox::new([7_u64; 3000]).unwrap();
        boxed[2999] = 8;
        assert_eq!(boxed[..2], [7, 7]);
        assert_eq!(boxed[2999], 8);
        let start = locked_pages(100).unwrap();
        // SAFETY: the pages were mapped just now.
        unsafe { start.write(9) };
        // SAFETY: as above.
        assert_eq!(unsafe { start.read() }, 9);
    }
}
