// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State machines whose log begins with a snapshot of them.

use crate::error::JournalError;

/// Bytes of a log that begins with a snapshot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogBytes {
    /// All of them.
    pub length: u64,
    /// Those of the snapshot.
    pub snapshot: u64,
    /// Those behind it. When they are as many as those of the snapshot, it is worth the work to
    /// begin the log anew.
    pub growth: u64,
}

/// A state machine with a log that can be begun anew: it would grow for ever.
pub trait SnapshotLog<D> {
    /// Why it cannot be.
    type Error: std::error::Error + From<JournalError>;
    /// Bytes of the log.
    fn log_bytes(&self) -> LogBytes;
    /// Begins the log anew on an empty disk, with all that the state machine knows, and returns the
    /// old disk, which is as it was. The caller puts the new disk into its place, durably, before
    /// anything else: what follows is in the new log alone. Inputs that wait for a commit are kept.
    ///
    /// # Errors
    /// Those of the state machine. The old log goes on.
    fn move_to(&mut self, disk: D) -> Result<D, Self::Error>;
}
