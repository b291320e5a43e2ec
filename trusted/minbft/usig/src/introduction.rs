// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The devices for which the numbers of replicas stand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestation::{Header, Kind, Member};
use usig::ReplicaId;

/// A device and its epoch: what `usig` calls a remote attestation.
///
/// It is a claim, and takes its force from the group's key: `verify` takes attestations of this
/// device and epoch alone, and only members of the group can have made them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Introduction {
    /// The device's number.
    pub device: u32,
    /// Its epoch.
    pub epoch: u64,
}

/// The introductions that are taken.
#[derive(Clone, Debug)]
pub enum Parties {
    /// Replica N has device N, in the epoch in which the group was formed. No host can put another
    /// device or a restarted one in that place: its counters would begin anew, and it could tell
    /// two stories.
    OfGroup(Vec<Member>),
    /// The last introduction of a replica counts, as in the implementations of the crate `usig`.
    /// The caller vouches for each.
    AsIntroduced,
}

/// The parties that were introduced so far.
#[derive(Debug)]
pub(crate) struct Introduced {
    taken: Parties,
    known: BTreeMap<ReplicaId, Introduction>,
}

impl Introduced {
    pub(crate) fn new(taken: Parties) -> Self {
        Self { taken, known: BTreeMap::new() }
    }

    /// Takes an introduction. False if it is refused.
    pub(crate) fn add(&mut self, replica: ReplicaId, it: Introduction) -> bool {
        let is_taken = match &self.taken {
            Parties::OfGroup(members) => {
                let is_it = |member: &Member| {
                    let (device, epoch) = (member.device.0, member.epoch.0);
                    Introduction { device, epoch } == it
                };
                replica.as_u64() == u64::from(it.device) && members.iter().any(is_it)
            }
            Parties::AsIntroduced => true,
        };
        if is_taken {
            self.known.insert(replica, it);
        }
        is_taken
    }

    pub(crate) fn get(&self, replica: ReplicaId) -> Option<&Introduction> {
        self.known.get(&replica)
    }
}

impl Introduction {
    /// Whether an attestation, if its MAC is right, is a message of this device.
    pub(crate) fn is_of(&self, header: &Header) -> bool {
        let (device, epoch) = (header.device.0, header.epoch.0);
        header.kind == Kind::Message && *self == Self { device, epoch }
    }
}
