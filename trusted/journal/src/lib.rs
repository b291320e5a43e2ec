// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A write-ahead log: records are appended, and durable together after [`Journal::commit`].
//!
//! 1. [`Journal::open`] hands out the records of the log, and cuts off what a crash tore.
//! 2. [`Journal::append`] collects records in memory.
//! 3. [`Journal::commit`] writes them as one block, and returns when the disk has it.
//! 4. [`Journal::begin`] writes a snapshot to another disk, which the caller puts into the place of
//!    a log that has grown.
//!
//! A state machine with [`SnapshotLog`] can begin its log anew.
//!
//! A block is written only after the one before is on the disk. A crash therefore tears the last
//! block at most: a bad block with a good one behind it was damaged, and the log is refused.
//! Damage of the last block alone looks like a torn one. A record with the bytes of a block is
//! none: each log has a random salt in its checksums, which those who choose records do not know.
#![forbid(unsafe_code)]

mod block;
mod disk;
mod error;
mod file;
mod journal;
#[cfg(feature = "model")]
mod model;
mod snapshot_log;

pub use disk::Disk;
pub use error::JournalError;
pub use file::FileDisk;
pub use journal::{Journal, SNAPSHOT_PART};
#[cfg(feature = "model")]
pub use model::ModelDisk;
pub use snapshot_log::{LogBytes, SnapshotLog};
