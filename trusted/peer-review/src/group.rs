// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The nodes, their public keys and their witnesses: all that a third party must know.

use smt_attestation::{
    Algorithm, DeviceId, Epoch, GroupSecret, Header, Kind, Member, SigningKey, Start, StreamId,
    verify_signature,
};
use smt_attestor::{Attestor, AttestorError, OwnDevice};
use smt_replica::{Digest, PublicKey, SignatureBytes};

/// The numbers that all nodes of a group agree upon. A tick is the time between two calls of
/// [`crate::Node::tick`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Each entry whose index is a multiple of it is a checkpoint. Evidence is bounded by it.
    pub interval: u64,
    /// The longest message or local input, in bytes. An application that sends longer ones, or more
    /// at once than `sends`, is not fit for the group: it ends the node.
    pub body: usize,
    /// The longest state of a node with its numbers of messages, in bytes.
    pub state: usize,
    /// The most messages that one entry sends.
    pub sends: usize,
    /// How many entries a node keeps for witnesses, and messages for a receiver, at most.
    pub retained: usize,
    /// The most entries of an answer to an audit.
    pub segment: usize,
    /// Ticks between two sendings of a message that has no receipt.
    pub resend: u32,
    /// Ticks without a receipt after which a sender tells the witnesses.
    pub complain: u32,
    /// Ticks between two audits of one witness. A node records them no closer than at half of it.
    pub audit: u32,
    /// Ticks after which a witness suspects a node that has not answered.
    pub suspect: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: 64,
            body: 65_536,
            state: 1 << 20,
            sends: 64,
            retained: 4096,
            segment: 64,
            resend: 3,
            complain: 8,
            audit: 10,
            suspect: 40,
        }
    }
}

impl Options {
    /// Messages without a receipt, from which on a node takes no further ones of others but some
    /// that witnesses bring: a quarter of what it keeps for a receiver, and 1,024 at most.
    pub(crate) fn held_from(&self) -> usize {
        (self.retained / 4).clamp(1, 1024)
    }
}

/// Why nodes and numbers make no group. The caller must form another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// There are too few nodes for a node's witnesses, one of which is correct.
    #[error("the group has {nodes} nodes, and with {faults} that may lie it needs two more")]
    TooFew {
        /// The nodes.
        nodes: u32,
        /// How many of a node's witnesses may lie.
        faults: u32,
    },
    /// Each node has one key and one epoch.
    #[error("the group has {keys} keys and {epochs} epochs of devices")]
    Epochs {
        /// How many keys there are.
        keys: usize,
        /// How many epochs there are.
        epochs: usize,
    },
    /// The node is none of the group's.
    #[error("the group has no node {0}")]
    NoNode(u32),
    /// With this number the protocol does not work.
    #[error("the group's option `{name}` is less than {least}")]
    Option {
        /// The name in [`Options`].
        name: &'static str,
        /// Its least value.
        least: u64,
    },
}

/// A group of nodes. All of it is public.
#[derive(Clone, Debug)]
pub struct Group {
    /// The stream in which the devices attest.
    pub stream: u32,
    /// The public keys of the devices, by node.
    pub keys: Vec<PublicKey>,
    /// The epochs of the devices, by node. A device that has restarted is no member any more.
    pub epochs: Vec<u64>,
    /// At most so many of the witnesses of one node lie.
    pub faults: u32,
    /// Numbers of the protocol.
    pub options: Options,
}

impl Group {
    /// Whether nodes can run with these numbers.
    ///
    /// # Errors
    /// [`GroupError`]
    pub fn check(&self) -> Result<(), GroupError> {
        let (nodes, faults) = (self.nodes(), self.faults);
        if faults.checked_add(2).is_none_or(|least| nodes < least) {
            return Err(GroupError::TooFew { nodes, faults });
        }
        let (keys, epochs) = (self.keys.len(), self.epochs.len());
        if keys != epochs {
            return Err(GroupError::Epochs { keys, epochs });
        }
        let it = &self.options;
        let numbers = [
            // With a checkpoint at each index nothing else has a place in the log.
            ("interval", it.interval, 2),
            // Audits are recorded at half of it.
            ("audit", it.audit.into(), 2),
            ("segment", it.segment as u64, 1),
            ("retained", it.retained as u64, 1),
            ("sends", it.sends as u64, 1),
            ("resend", it.resend.into(), 1),
            ("complain", it.complain.into(), 1),
            ("suspect", it.suspect.into(), 1),
        ];
        match numbers.into_iter().find(|it| it.1 < it.2) {
            Some((name, _, least)) => Err(GroupError::Option { name, least }),
            None => Ok(()),
        }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.keys.len()).unwrap_or(u32::MAX)
    }

    /// The witnesses of a node: the f + 1 nodes after it, one of which is correct.
    pub fn witnesses(&self, node: u32) -> impl Iterator<Item = u32> + use<> {
        let (nodes, count) = (self.nodes(), (self.faults + 1).min(self.nodes().saturating_sub(1)));
        (1..=count).map(move |it| (node + it) % nodes)
    }

    /// Whether a node is a witness of another.
    #[must_use]
    pub fn is_witness(&self, witness: u32, node: u32) -> bool {
        self.witnesses(node).any(|it| it == witness)
    }

    /// Whether the device of `node` has attested a digest under a counter, and signed it.
    pub(crate) fn has_signed(
        &self,
        node: u32,
        counter: u64,
        digest: &Digest,
        signature: &SignatureBytes,
    ) -> bool {
        let place = node as usize;
        let (Some(key), Some(epoch)) = (self.keys.get(place), self.epochs.get(place)) else {
            return false;
        };
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream: StreamId(self.stream),
            device: DeviceId(node),
            length: digest.len() as u32,
            epoch: Epoch(*epoch),
            counter,
        };
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&signature[0]);
        bytes[32..].copy_from_slice(&signature[1]);
        verify_signature(key, &header.encode(), digest, &bytes)
    }

    /// Refuses a device that has restarted: none is admitted again.
    pub(crate) fn refuse_other_epoch(&self, own: Start) -> Result<(), AttestorError> {
        let Start { device, epoch, .. } = own;
        match self.epochs.get(device.0 as usize).copied().unwrap_or(0) {
            group if group == epoch.0 => Ok(()),
            group => Err(AttestorError::OtherEpoch { device: epoch.0, group }),
        }
    }

    /// Opens the group's stream of a node's device.
    ///
    /// # Errors
    /// The device is in another epoch than the group has of it, or cannot have such a group.
    pub(crate) fn open(&self, own: OwnDevice) -> Result<Attestor, AttestorError> {
        self.refuse_other_epoch(own.start())?;
        let members = (0..).zip(&self.epochs);
        let members: Vec<Member> = members
            .map(|(device, epoch)| Member { device: DeviceId(device), epoch: Epoch(*epoch) })
            .collect();
        let of_device = smt_attestation::Group {
            stream: StreamId(self.stream),
            algorithm: Algorithm::HmacSha256,
            quorum: self.nodes().saturating_sub(1).max(1),
            members: &members,
        };
        Ok(Attestor::open(&of_device, own)?)
    }

    /// The kernel in this process as a node's device. The caller vouches that the epoch was never
    /// used before. The secret keys MACs that no node of this crate relies on.
    #[must_use]
    pub fn library(&self, node: u32, signing_key: SigningKey, secret: GroupSecret) -> OwnDevice {
        let epoch = self.epochs.get(node as usize).copied().unwrap_or(0);
        let start = Start { device: DeviceId(node), epoch: Epoch(epoch), nonce: [0; 16] };
        OwnDevice::Library { secret, start, signing_key: Some(Box::new(signing_key)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_no_witness_of_its_own_and_has_one_more_than_may_lie() {
        for (nodes, faults) in [(2, 1), (4, 1), (6, 2), (3, 2)] {
            let keys = vec![[0; 32]; nodes];
            let epochs = vec![1; nodes];
            let group = Group { stream: 1, keys, epochs, faults, options: Options::default() };
            for node in 0..group.nodes() {
                let witnesses: Vec<u32> = group.witnesses(node).collect();
                assert_eq!(witnesses.len(), (faults as usize + 1).min(nodes - 1));
                assert!(
                    !witnesses.contains(&node) && witnesses.iter().all(|it| *it < nodes as u32)
                );
                assert!(group.is_witness(witnesses[0], node) && !group.is_witness(node, node));
            }
        }
    }

    #[test]
    fn a_group_without_enough_witnesses_or_with_useless_numbers_is_refused() {
        let group = |nodes: usize, faults: u32, options: Options| {
            let (keys, epochs) = (vec![[0; 32]; nodes], vec![1; nodes]);
            Group { stream: 1, keys, epochs, faults, options }.check()
        };
        let good = Options::default();
        assert_eq!(group(3, 1, good), Ok(()));
        assert_eq!(group(2, 1, good), Err(GroupError::TooFew { nodes: 2, faults: 1 }));
        let faults = u32::MAX;
        assert_eq!(group(3, faults, good), Err(GroupError::TooFew { nodes: 3, faults }));
        let refused = |options: Options| match group(3, 1, options) {
            Err(GroupError::Option { name, .. }) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(Options { interval: 1, ..good }), "interval");
        assert_eq!(refused(Options { audit: 1, ..good }), "audit");
        assert_eq!(refused(Options { segment: 0, ..good }), "segment");
        assert_eq!(refused(Options { retained: 0, ..good }), "retained");
        let keys = vec![[0; 32]; 3];
        let uneven = Group { stream: 1, keys, epochs: vec![1], faults: 1, options: good };
        assert_eq!(uneven.check(), Err(GroupError::Epochs { keys: 3, epochs: 1 }));
    }
}
