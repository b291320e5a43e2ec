// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Votes for a device that has restarted.

use crate::attestation::{Attestation, DeviceId, Epoch};

/// Bytes of a vote, which is attested like a message.
pub const VOTE_LEN: usize = 40;

/// One start of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Start {
    /// The device.
    pub device: DeviceId,
    /// Its epoch, above those of all its earlier starts.
    pub epoch: Epoch,
    /// Random bytes that nobody knows before the start. Votes repeat them, which shows that they
    /// are younger. Not secret.
    pub nonce: [u8; 16],
}

/// A statement on a newcomer's start, and on a peer that the newcomer must know.
///
/// | offset | bytes | field |
/// |---|---|---|
/// | 0 | 4 | newcomer |
/// | 4 | 8 | its new epoch |
/// | 12 | 16 | the nonce of its start |
/// | 28 | 4 | peer: the voter itself or another member |
/// | 32 | 8 | the peer's epoch, as the voter's kernel has it |
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Vote {
    /// The start of the device that has restarted.
    pub newcomer: Start,
    /// A member: the voter itself, or one of its peers.
    pub peer: DeviceId,
    /// The epoch of that member. The voter's kernel fills it in, not its host.
    pub peer_epoch: Epoch,
}

impl Vote {
    /// The attested bytes, numbers big-endian.
    pub fn encode(&self) -> [u8; VOTE_LEN] {
        let mut bytes = [0; VOTE_LEN];
        bytes[0..4].copy_from_slice(&self.newcomer.device.0.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.newcomer.epoch.0.to_be_bytes());
        bytes[12..28].copy_from_slice(&self.newcomer.nonce);
        bytes[28..32].copy_from_slice(&self.peer.0.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.peer_epoch.0.to_be_bytes());
        bytes
    }
}

/// A vote with its attestation. It takes a counter of the voter's stream, like any message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ballot {
    /// The vote.
    pub vote: Vote,
    /// Its attestation, of the kind [`crate::Kind::Vote`].
    pub attestation: Attestation,
}
