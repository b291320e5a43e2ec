// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The knowledge that all replicas and clients of a group start with.

use std::collections::BTreeMap;

/// The public key of a client or of a replica's host (Ed25519).
pub type PublicKey = [u8; 32];

/// A replica group, as its operator has formed it. All members have the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// How many replicas there are, n = 2f + 1. Their devices are 0 to n - 1.
    pub replicas: u32,
    /// The number of the group's stream.
    pub stream: u32,
    /// The epoch of each device when the group was formed.
    pub epochs: Vec<u64>,
    /// The keys of clients, by their numbers.
    pub clients: BTreeMap<u32, PublicKey>,
    /// The keys with which the replicas sign replies.
    pub reply_keys: Vec<PublicKey>,
    /// Sizes and timeouts.
    pub options: Options,
    /// Whether replicas keep all that they execute, for simulations to compare.
    #[cfg(feature = "sim")]
    pub(crate) keeps_history: bool,
    /// Statements that a device may be ahead of the log, if others than for users.
    #[cfg(feature = "sim")]
    pub(crate) unlogged_max: Option<usize>,
}

/// Sizes and timeouts of a group.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most requests of a batch.
    pub batch: usize,
    /// The longest operation of a request, in bytes.
    pub operation: usize,
    /// A checkpoint is made after each so many batches.
    pub interval: u64,
    /// How many batches are ordered at most beyond the stable checkpoint.
    pub window: u64,
    /// How many statements of each stream a replica keeps for others, who missed some.
    pub retained: u64,
    /// After so many ticks without an answer a replica wants another leader, and a client asks all.
    pub timeout: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batch: 16,
            operation: 65_536,
            interval: 64,
            window: 256,
            retained: 4096,
            timeout: 20,
        }
    }
}

impl Group {
    /// A group with a replica for each key of replies, whose devices are in epoch 1.
    pub fn new(
        stream: u32,
        clients: BTreeMap<u32, PublicKey>,
        reply_keys: Vec<PublicKey>,
        options: Options,
    ) -> Self {
        let replicas = u32::try_from(reply_keys.len()).unwrap_or(u32::MAX);
        Self {
            replicas,
            stream,
            epochs: vec![1; reply_keys.len()],
            clients,
            reply_keys,
            options,
            #[cfg(feature = "sim")]
            keeps_history: false,
            #[cfg(feature = "sim")]
            unlogged_max: None,
        }
    }

    /// How many replicas may lie or be down at once: f.
    pub fn faults(&self) -> usize {
        (self.replicas.saturating_sub(1) / 2) as usize
    }

    /// f + 1: at least one of so many is correct, and two such sets have a member in common.
    pub fn quorum(&self) -> usize {
        self.faults() + 1
    }

    /// The leader of a view.
    pub(crate) fn leader(&self, view: u64) -> u32 {
        u32::try_from(view % u64::from(self.replicas.max(1))).unwrap_or(0)
    }
}
