// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output, whose errors say that it is what they are about.
//!
//! A shell closes it by `>&-`. Rust's runtime then opens /dev/null in its place before `main`, and
//! all output would be lost without a word. [`note_whether_closed`] looks before the runtime does.

use std::io::{self, StdoutLock, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes whether this process was started without standard output. Called before `main`, when no
/// thread and nothing of the runtime is there yet; it makes one system call.
pub(crate) fn note_whether_closed() {
    // SMT's programs never close it, so a later call could tell no more.
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    IS_CLOSED.store(flags.is_err(), Ordering::Relaxed);
}

/// # Errors
/// The process was started without it.
pub(crate) fn check_open() -> io::Result<()> {
    match IS_CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::other("it is closed")),
        false => Ok(()),
    }
}

/// Opens it for one writer.
pub(crate) fn standard_output() -> StandardOutput {
    StandardOutput(stdout().lock())
}

/// Standard output. Its errors have the system's kind and a text that names it.
pub(crate) struct StandardOutput(StdoutLock<'static>);

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        named(check_open().and_then(|()| self.0.write(bytes)))
    }

    fn flush(&mut self) -> io::Result<()> {
        named(check_open().and_then(|()| self.0.flush()))
    }
}

/// The result with standard output in the text of its error.
pub(crate) fn named<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| {
        io::Error::new(error.kind(), format!("writing to standard output: {error}"))
    })
}

static IS_CLOSED: AtomicBool = AtomicBool::new(false);
