// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors, by whose fault they are.

use std::io;

use smt_attestation::Refusal;
use smt_device_client::{DeviceError, LogId};

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The caller asked for what there is not.
    Caller,
    /// The stored log is not what the device attested: the host, its disk, or an attacker.
    Host,
    /// The operating system failed.
    Environment,
    /// A limit of the device is reached.
    Limit,
}

/// Why an operation of the memory failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum A2mError {
    /// The log has no entry yet.
    #[error("log {0} does not exist")]
    UnknownLog(u32),
    /// The manifest is written by truncations only.
    #[error("log 0 is the manifest, which only truncations write")]
    Manifest,
    /// The log ends before that number.
    #[error("log {log} has no entry {sequence}: it ends at {highest}")]
    Beyond {
        /// The log.
        log: u32,
        /// The number that was asked for.
        sequence: u64,
        /// The last one there is.
        highest: u64,
    },
    /// No log has such a number.
    #[error("{0} is no number of a log: they are below 2^24")]
    NoLog(u32),
    /// The log was truncated.
    #[error("entry {sequence} of log {log} is forgotten: the log was truncated to {lowest}")]
    Forgotten {
        /// The log.
        log: u32,
        /// The number that was asked for.
        sequence: u64,
        /// The first one there is.
        lowest: u64,
    },
    /// A context is too long.
    #[error("the context has {0} bytes, more than 16 MiB")]
    TooLong(usize),
    /// The entry is not what the device attested.
    #[error("entry {sequence} of log {log} was altered: {why}")]
    Altered {
        /// The log.
        log: u32,
        /// The number under which it was found.
        sequence: u64,
        /// The kernel's reason.
        why: Refused,
    },
    /// The entry is genuine, but stands in another place than its own.
    #[error("entry {sequence} of log {log} stands in a place that is not its own")]
    Misplaced {
        /// The log.
        log: u32,
        /// The number under which it was found.
        sequence: u64,
    },
    /// Something that was durable is gone.
    #[error("the log was rolled back: {0}")]
    RolledBack(&'static str),
    /// A log was written by an earlier version.
    #[error("an earlier version wrote the log: read it with that one, and begin a new one")]
    OlderVersion,
    /// The device remembers a log beyond what is stored, or another one.
    #[error(
        "log {log} is rolled back or altered: its device has sealed it up to entry {sealed}, and \
         {stored} entries of it are stored: bring the newest files back"
    )]
    NotSealed {
        /// The log.
        log: u32,
        /// The sequence number of its sealed end.
        sealed: u64,
        /// How many entries up to that number are stored.
        stored: u64,
    },
    /// A record that was durable is damaged.
    #[error("the record at byte {0} of the log is damaged, though it was durable")]
    Damaged(u64),
    /// The file of the anchor is damaged or missing.
    #[error("the anchor is damaged or missing")]
    Anchor,
    /// Another process has the log open.
    #[error("another process has the log open")]
    Locked,
    /// Reading or writing failed.
    #[error("the storage failed")]
    Storage(#[from] io::Error),
    /// The memory was opened to read, or its storage has failed before. Opened again, it has what
    /// was durable.
    #[error("the memory takes no more entries until it is opened again")]
    Stopped,
    /// The device is full, its counter has run out, or it is a process that has ended.
    #[error("the device does not attest")]
    Device(#[source] DeviceError),
}

impl A2mError {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnknownLog(_)
            | Self::Manifest
            | Self::Beyond { .. }
            | Self::Forgotten { .. }
            | Self::NoLog(_)
            | Self::OlderVersion
            | Self::TooLong(_) => Fault::Caller,
            Self::Altered { .. }
            | Self::Misplaced { .. }
            | Self::RolledBack(_)
            | Self::NotSealed { .. }
            | Self::Damaged(_)
            | Self::Anchor => Fault::Host,
            Self::Locked | Self::Stopped | Self::Storage(_) => Fault::Environment,
            Self::Device(error) => match error.fault() {
                smt_device_client::Fault::Limit => Fault::Limit,
                smt_device_client::Fault::Caller => Fault::Caller,
                _ => Fault::Environment,
            },
        }
    }

    pub(crate) fn altered(log: LogId, sequence: u64, why: Refused) -> Self {
        Self::Altered { log: log.0, sequence, why }
    }
}

/// Why an entry does not verify.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The kernel does not know the attestation.
    #[error("its attestation does not fit ({0:?})")]
    Attestation(Refusal),
    /// The context is another one.
    #[error("its context is not the attested one")]
    Context,
}
