// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The knowledge that all nodes and clients of a group start with.

use std::collections::BTreeMap;

use smt_attestation::{Algorithm, DeviceId, Epoch, GroupSecret, Member, Start, StreamId};
use smt_attestor::Attestor;
use smt_device_client::DeviceError;
use smt_replica::{OwnDevice, PublicKey};

/// The epoch of all devices. One that has restarted in another has stopped.
pub(crate) const EPOCH: Epoch = Epoch(1);

/// A group of 2f + 1 nodes.
#[derive(Clone, Debug)]
pub struct Group {
    /// The number of the group's stream.
    pub stream: u32,
    /// The keys with which the nodes sign endorsements. Their devices are 0 to n - 1.
    pub nodes: Vec<PublicKey>,
    /// The keys of clients, by their numbers.
    pub clients: BTreeMap<u32, PublicKey>,
    /// Sizes.
    pub options: Options,
}

/// Sizes of a group, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest operation of a request.
    pub operation: usize,
    /// The longest step. A node whose protocol makes a longer one stops before it attests it.
    pub step: usize,
    /// The steps of each stream that a node keeps for others, with some 256 for each; the last one
    /// is always kept. A node that is further behind has stopped.
    pub retained: usize,
    /// The steps of each stream that go at once to a node that lacks them.
    pub resend: usize,
}

impl Options {
    /// The longest step that any group may have: SMT takes no message above 64 MiB.
    pub const STEP_MAX: usize = 60 << 20;
}

impl Default for Options {
    fn default() -> Self {
        Self { operation: 65_536, step: Self::STEP_MAX, retained: 64 << 20, resend: 1 << 20 }
    }
}

impl Group {
    /// How many nodes there are.
    pub fn size(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// The kernel in this process as the device of a node, in the group's stream.
    ///
    /// # Errors
    /// Those of [`smt_device_client::Device::open`].
    pub(crate) fn open(&self, secret: GroupSecret, own: u32) -> Result<Attestor, DeviceError> {
        let start = Start { device: DeviceId(own), epoch: EPOCH, nonce: [0; 16] };
        let members = (0..self.size()).map(|it| Member { device: DeviceId(it), epoch: EPOCH });
        let members: Vec<Member> = members.collect();
        let of_device = smt_attestation::Group {
            stream: StreamId(self.stream),
            algorithm: Algorithm::HmacSha256,
            quorum: u32::try_from(self.quorum()).unwrap_or(u32::MAX),
            members: &members,
        };
        Attestor::open(&of_device, OwnDevice::Library { secret, start, signing_key: None })
    }

    /// f + 1: at least one of so many nodes is correct.
    pub fn quorum(&self) -> usize {
        self.nodes.len().saturating_sub(1) / 2 + 1
    }
}
