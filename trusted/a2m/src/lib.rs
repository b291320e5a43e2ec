// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attested append-only memory: logs of which nobody can tell two stories (paper §C.2; Chun et al.,
//! SOSP 2007).
//!
//! The device remembers where each log ends, and attests the next entry alone, so it gives each
//! position of a log once, also over its restarts. The entries are in memory that nobody trusts: an
//! entry that was altered, exchanged or moved is noticed when it is looked up, and a log that was
//! rolled back when it is opened. A log with the number 0, the manifest, has what was truncated. A
//! device has one memory.
//!
//! 1. [`A2m::open_with`] audits all that the storage has against what the device has sealed;
//!    [`A2m::open`] does without a device of its own.
//! 2. [`A2m::append`] attests an entry, [`A2m::commit`] makes all appended ones durable together,
//!    and has the device seal them.
//! 3. [`A2m::lookup`] reads without verifying, [`A2m::verified_lookup`] verifies.
//! 4. [`A2m::tail`] proves to a client with a fresh nonce where a log ends, by a signature
//!    ([`verify_tail`]).
//! 5. [`A2m::truncate`] forgets the beginning of a log, and the manifest says so.
#![forbid(unsafe_code)]

mod a2m;
mod audit;
mod disk;
mod entry;
mod error;
mod storage;
mod tail;

pub use a2m::{A2m, Identity, OwnDevice};
pub use disk::{Disk, Durability};
pub use entry::{CONTEXT_LEN_MAX, Entry, MANIFEST};
pub use error::{A2mError, Fault, Refused};
pub use smt_device_client::{End, EntryKind, LogId, STATEMENT_LEN, Statement};
pub use storage::{Memory, Storage};
pub use tail::{Tail, TailError, verify_tail};
