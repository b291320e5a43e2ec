// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The knowledge that all replicas and clients of a group start with.

use std::collections::BTreeMap;

use smt_attestation::{Algorithm, DeviceId, Epoch, Member, StreamId};
use smt_attestor::{Attestor, OwnDevice};
use smt_device_client::DeviceError;

/// Stable checkpoints of a stream are at most this many intervals apart.
pub const STREAM_INTERVALS: u64 = 8;

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
    #[doc(hidden)]
    pub keeps_history: bool,
    /// Statements that a device may be ahead of the log, if others than for users.
    #[cfg(feature = "sim")]
    #[doc(hidden)]
    pub unlogged_max: Option<usize>,
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
    /// While so many batches are under way, one that is not full waits: requests that come
    /// meanwhile go with it.
    pub pipeline: u64,
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
            pipeline: 1,
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

    /// Opens the group's stream of a member's device.
    ///
    /// # Errors
    /// Those of [`smt_device_client::Device::open`].
    pub fn open(&self, own: OwnDevice) -> Result<Attestor, DeviceError> {
        let members = (0..).zip(&self.epochs);
        let members: Vec<Member> = members
            .map(|(device, epoch)| Member { device: DeviceId(device), epoch: Epoch(*epoch) })
            .collect();
        let of_device = smt_attestation::Group {
            stream: StreamId(self.stream),
            algorithm: Algorithm::HmacSha256,
            quorum: u32::try_from(self.quorum()).unwrap_or(u32::MAX),
            members: &members,
        };
        #[allow(unused_mut, reason = "only simulations change it")]
        let mut attestor = Attestor::open(&of_device, own)?;
        #[cfg(feature = "sim")]
        if let Some(most) = self.unlogged_max {
            attestor.stop_after(most);
        }
        Ok(attestor)
    }

    /// How many replicas may lie or be down at once: f.
    pub fn faults(&self) -> usize {
        (self.replicas.saturating_sub(1) / 2) as usize
    }

    /// f + 1: at least one of so many is correct, and two such sets have a member in common.
    pub fn quorum(&self) -> usize {
        self.faults() + 1
    }

    /// Whether CHECKPOINTs for a place may come while another one is stable.
    pub fn is_checkpoint(&self, sequence: u64, stable: u64) -> bool {
        let Options { interval, window, .. } = self.options;
        let last = stable.saturating_add(window.saturating_mul(2));
        sequence.is_multiple_of(interval.max(1)) && sequence <= last
    }

    /// How many CHECKPOINTs of one replica may be after the stable one.
    pub fn checkpoints_max(&self) -> usize {
        let Options { interval, window, .. } = self.options;
        usize::try_from(window.saturating_mul(2) / interval.max(1)).unwrap_or(usize::MAX)
    }

    /// The leader of a view.
    pub fn leader(&self, view: u64) -> u32 {
        u32::try_from(view % u64::from(self.replicas.max(1))).unwrap_or(0)
    }

    /// Statements of a stream from one of its checkpoints to the next. They are some for each
    /// replica at least: what states the checkpoints has checkpoints itself.
    pub fn stream_interval(&self) -> u64 {
        let least = u64::from(self.replicas) * 4;
        (self.options.retained / STREAM_INTERVALS).max(least).max(1)
    }

    /// Statements of a stream that are taken after its stable checkpoint, at most.
    pub fn stream_window(&self) -> u64 {
        self.stream_interval().saturating_mul(STREAM_INTERVALS)
    }
}
