// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this is still the process in which something was made, or a copy of it (`fork`).
//!
//! A counter goes up in every child: so a look costs one load, where `getpid` is a system call. A
//! process that was made by the bare system call, past the C library, is not noticed.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process in which this value was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Process(u32);

impl Process {
    /// This process.
    #[must_use]
    pub fn this() -> Self {
        static COUNTED: Once = Once::new();
        COUNTED.call_once(count_forks);
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process is the one, and not a copy of it.
    #[must_use]
    pub fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

fn count_forks() {
    // SAFETY: the handler is a function of this program that lives as long as it, and may run in a
    // child of a process with threads, where only what signal handlers may do is permitted: it adds
    // to an atomic number.
    let refused = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
    assert_eq!(refused, 0, "the C library has no memory for a handler");
}

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Forks between the first process and this one, since the first [`Process::this`].
static FORKS: AtomicU32 = AtomicU32::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_another_process() {
        let here = Process::this();
        assert!(here.is_this());
        // SAFETY: the child does nothing but load a number and end.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let status = i32::from(!here.is_this());
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(status) };
        }
        assert!(child > 0, "no process for a child");
        let mut status = 0;
        // SAFETY: the number is that of a child of this process, and the place that of a number.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, libc::WEXITSTATUS(status)), (child, 1));
        assert!(here.is_this(), "it is the child that is a copy");
    }
}
