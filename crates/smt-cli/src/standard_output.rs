// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Standard output, whose errors say that it is what they are about.
//!
//! Not here: one that a shell has closed (`>&-`). Rust's runtime has opened /dev/null in its place
//! before `main`, which takes all output.

use std::io::{self, StdoutLock, Write, stdout};

/// Opens it for one writer.
pub(crate) fn standard_output() -> StandardOutput {
    StandardOutput(stdout().lock())
}

/// Standard output. Its errors have the system's kind and a text that names it.
pub(crate) struct StandardOutput(StdoutLock<'static>);

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        named(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        named(self.0.flush())
    }
}

/// The result with standard output in the text of its error.
pub(crate) fn named<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| {
        io::Error::new(error.kind(), format!("writing to standard output: {error}"))
    })
}
