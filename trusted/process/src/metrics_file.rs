// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file with a line of JSON for each moment.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file of metrics.
pub(crate) struct MetricsFile {
    file: File,
    has_failed: bool,
}

impl MetricsFile {
    /// Opens the file to append to it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, has_failed: false })
    }

    /// Appends a line. If that fails the process goes on, and says so once.
    pub(crate) fn write(&mut self, mut numbers: serde_json::Value) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        numbers["time_ms"] = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).into();
        let written = writeln!(self.file, "{numbers}");
        if let (Err(error), false) = (&written, self.has_failed) {
            tracing::error!(%error, "the file of metrics cannot be written");
        }
        self.has_failed = written.is_err();
    }
}
