// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why the kernel does not do what it was asked for. Words for people are left to its callers.

use crate::attestation::Epoch;

/// The caller's fault: the host asked for what it may not have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Misuse {
    /// The group is not valid: no member, members not in ascending order of their devices, this
    /// device not among them, an epoch of zero, or a quorum that the other members cannot reach.
    Group,
    /// The table of streams or of peers is full.
    Full,
    /// The stream is open already. It stays so until the device restarts.
    StreamExists,
    /// The device is no peer in this stream.
    NotPeer,
    /// The device does not know the peer's epoch, or has voted for a newer one that it has not
    /// admitted yet.
    NotSynchronized,
    /// The message is longer than 2³² - 1 bytes.
    TooLong,
    /// The counter has reached its end: the device must restart, in a new epoch.
    EpochEnded,
    /// The attestation is not among the last ones that the device keeps.
    Forgotten,
    /// The message is not the one that was attested.
    OtherMessage,
}

/// The message's fault: it was not taken, and no counter has moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// No attestation of this version, stream and algorithm, or its length is not the message's.
    Malformed,
    /// The MAC is wrong: forged, altered, or of a group with other members.
    Mac,
    /// The sender is no peer of the group. This device itself is none.
    NotPeer,
    /// This device has restarted and does not know yet where the sender's stream stands, or it has
    /// voted for a newer epoch of the sender.
    NotSynchronized,
    /// Authentic, but of an epoch of the sender that is not the admitted one.
    Epoch {
        /// The epoch that is admitted.
        admitted: Epoch,
    },
    /// Authentic, but taken before.
    Duplicate,
    /// Authentic, but an earlier message has not been taken.
    Gap {
        /// The counter that is to be taken next.
        expected: u64,
    },
    /// The votes are not for this, too few, not in ascending order of their voters, or of voters
    /// whose epoch is not the admitted one.
    Votes,
    /// The epoch is not newer than the admitted one, or the peer is synchronized already.
    NotNewer,
}
