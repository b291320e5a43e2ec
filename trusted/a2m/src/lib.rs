// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attested append-only memory: logs of which nobody can tell two stories (paper §C.2; Chun et al.,
//! SOSP 2007).
//!
//! Each log is a stream of the attestation kernel, so the kernel gives each position of a log
//! once. The entries are in memory that nobody trusts: an entry that was altered, exchanged or
//! moved is noticed when it is looked up. A log with the number 0, the manifest, has what was
//! truncated.
//!
//! 1. [`A2m::open`] audits all that the storage has, and begins an epoch.
//! 2. [`A2m::append`] attests an entry, [`A2m::commit`] makes all appended ones durable together.
//! 3. [`A2m::lookup`] reads without verifying, [`A2m::verified_lookup`] verifies.
//! 4. [`A2m::tail`] proves to a client with a fresh nonce where a log ends, by a signature.
//! 5. [`A2m::truncate`] forgets the beginning of a log, and the manifest says so.
#![forbid(unsafe_code)]

mod a2m;
mod audit;
mod disk;
mod entry;
mod error;
mod storage;

pub use a2m::{A2m, Identity, OwnDevice, Tail, verify_tail};
pub use disk::{Disk, Durability};
pub use entry::{CONTEXT_LEN_MAX, Entry, EntryKind, LogId, MANIFEST, STATEMENT_LEN, Statement};
pub use error::{A2mError, Fault, Refused};
pub use storage::{Memory, Storage};
