// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of the log, by whose fault they are.

use std::io;

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process has the log open.
    #[error("your request: another process has the log open")]
    Locked,
    /// A block that was durable is damaged.
    #[error(
        "the host or its disk: the block at byte {0} of the log is damaged, though it was durable"
    )]
    Damaged(u64),
    /// No block is damaged, and the records in them are none, or not in an order that is written.
    #[error(
        "the host or its disk: the records of the log do not fit, though no block is damaged: it \
         was cut or put together from others"
    )]
    Unfit,
    /// The log is of another owner or configuration.
    #[error("your request: the log was written under another configuration")]
    OtherOwner,
    /// The log was written by an older version.
    #[error(
        "your request: an older version of this program has written the log, and this one does not \
         read it"
    )]
    OlderFormat,
    /// There is no salt for a new log.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// More was collected than a block takes.
    #[error("your request: more was collected than a block takes; commit when the log is full")]
    TooMuch,
    /// Reading or writing failed.
    #[error("the operating system: the log cannot be read or written")]
    Disk(#[from] io::Error),
    /// A write or sync has failed before. A second one would not bring back what it has lost.
    #[error("the operating system: the log takes nothing more, since a write has failed before")]
    Stopped,
}
