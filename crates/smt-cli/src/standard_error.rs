// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words on standard error.
//!
//! Its reader may have gone, and the disk behind it be full: that must end nothing, least of all a
//! server (`eprintln!` panics). With -q only what failed is told.

use std::fmt::Display;
use std::io::{self, Write, stderr};

use tracing::level_filters::LevelFilter;

/// Tells a line, unless nothing is to be told.
pub(crate) fn tell(line: impl Display) {
    tell_part(format_args!("{line}\n"));
}

/// The same without an end of the line.
pub(crate) fn tell_part(words: impl Display) {
    if LevelFilter::current() >= LevelFilter::WARN {
        let _ = write!(stderr(), "{words}");
    }
}

/// Tells of a failure in a line.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// Where log lines go. It never fails.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
