// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results that a node's user polls for.

use smt_attestation::DeviceId;

use crate::memory::{Denied, Region, RegionKey};

/// The number of a read or write that this node began.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ticket(pub u64);

/// Something that a member's device has attested, and this device has taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Completion {
    /// The member.
    pub from: DeviceId,
    /// The completed operation.
    pub outcome: Outcome,
}

/// The kind of a completion.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// A message.
    Message(Vec<u8>),
    /// Memory that the member lets others use.
    Announced(Vec<Region>),
    /// The member has written into memory of this node.
    Written {
        /// The memory.
        key: RegionKey,
        /// The first byte that was written.
        offset: u64,
        /// How many bytes.
        length: u64,
    },
    /// A read of this node is done, or denied.
    Read(Ticket, Result<Vec<u8>, Denied>),
    /// A write of this node is done, or denied.
    Wrote(Ticket, Result<(), Denied>),
    /// A read or write of this node has no answer, and its completion is none: the member has
    /// restarted. Whether a write was done is not known. It was perhaps done before the restart,
    /// in memory that is gone, or is done afterwards, in memory that has the same key.
    Lost(Ticket),
}
