// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of a member that is begun anew once it has grown: it would grow for ever.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use smt_journal::{FileDisk, JournalError, LogBytes, SnapshotLog};

use crate::state::rename;

/// Bytes by which a log grows before it is begun anew, unless a member's file says otherwise.
pub(crate) const GROWTH: u64 = 64 << 20;
/// The values that a member's file may give.
pub(crate) const GROWTH_RANGE: std::ops::Range<u32> = 65_536..1_073_741_825;
/// After an attempt to begin the log anew that has failed.
const PAUSE: Duration = Duration::from_secs(60);

/// When and where a log is begun anew.
pub struct NewLog {
    path: PathBuf,
    growth: u64,
    /// When it may be begun anew.
    next: Instant,
}

impl NewLog {
    /// For a log that this process has open.
    pub fn new(path: PathBuf, growth: u64) -> Self {
        let it = Self { path, growth, next: Instant::now() };
        // One that was being begun anew when the process was killed.
        let _ = fs::remove_file(it.new_path());
        it
    }

    /// The log.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the log has grown enough. A snapshot that is long is not written again for a little.
    pub fn is_due(&self, bytes: LogBytes) -> bool {
        bytes.growth >= self.growth.max(bytes.snapshot) && Instant::now() >= self.next
    }

    /// Begins the log of a state machine anew, in a file that gets the name of the old one.
    ///
    /// # Errors
    /// The new log has not the name of the old one. The process must end: what follows would be in
    /// the new log alone.
    pub fn begin<L: SnapshotLog<FileDisk>>(&mut self, log: &mut L) -> io::Result<()> {
        let before = log.log_bytes().length;
        let new = self.new_path();
        let disk = match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::from(error)),
            _ => FileDisk::open(&new),
        };
        match disk.map_err(L::Error::from).and_then(|disk| log.move_to(disk)) {
            // The old file is locked until the new one, which is locked too, has its name.
            Ok(_old) => {
                rename(&new, &self.path)?;
                tracing::info!(before, after = log.log_bytes().length, "log begun anew");
            }
            Err(error) => {
                tracing::error!(%error, "the log cannot be begun anew, and grows on");
                // The part of it that is written may have filled the disk.
                let _ = fs::remove_file(&new);
                self.next = Instant::now() + PAUSE;
            }
        }
        Ok(())
    }

    fn new_path(&self) -> PathBuf {
        self.path.with_extension("new")
    }
}
