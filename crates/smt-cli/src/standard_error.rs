// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words on standard error: lines for people, or JSON objects of the log's form.
//!
//! Its reader may have gone, and the disk behind it be full: that must end nothing, least of all a
//! server (`eprintln!` panics). With -q only what failed is told.

use std::fmt::Display;
use std::io::{self, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tracing::level_filters::LevelFilter;

use crate::moment;

/// From now on lines are JSON objects.
pub(crate) fn write_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Tells a line, unless nothing is to be told.
pub(crate) fn tell(line: impl Display) {
    if LevelFilter::current() >= LevelFilter::WARN {
        write_line("INFO", line);
    }
}

/// Tells words without an end of the line.
#[cfg(any(feature = "perf", feature = "sim"))]
pub(crate) fn tell_part(words: impl Display) {
    if LevelFilter::current() >= LevelFilter::WARN {
        let _ = write!(stderr(), "{words}");
    }
}

/// Tells of a failure in a line.
pub(crate) fn complain(line: impl Display) {
    write_line("ERROR", line);
}

fn write_line(level: &str, line: impl Display) {
    let line = match IS_JSON.load(Ordering::Relaxed) {
        false => format!("{line}\n"),
        true => {
            let (timestamp, message) = (moment::now(), line.to_string());
            let object = json!({ "timestamp": timestamp, "level": level, "message": message });
            format!("{object}\n")
        }
    };
    let _ = stderr().write_all(line.as_bytes());
}

static IS_JSON: AtomicBool = AtomicBool::new(false);

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
