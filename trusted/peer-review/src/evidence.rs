// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evidence of a fault, which a third party checks with public keys alone.

use serde::{Deserialize, Serialize};
use smt_replica::Digest;

use crate::application::Application;
use crate::authenticator::Authenticator;
use crate::entry::{Entry, Input, head_of};
use crate::group::Group;
use crate::message::{decode, encode};
use crate::state::{At, Fault, State, state_digest};

/// Where a replay begins: before a checkpoint of the accused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Base {
    /// The index of the checkpoint.
    pub index: u64,
    /// The digest of the entry before it.
    pub previous: Digest,
    /// The state, whose hash the checkpoint has.
    pub state: Vec<u8>,
}

/// Evidence that a node's log is none of a correct node.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Evidence {
    /// A part of the log that the reference does not make.
    Log {
        /// The accused.
        node: u32,
        /// Where the part begins; nothing for the beginning of the log.
        base: Option<Base>,
        /// The entries from the checkpoint of `base` on. The device has signed the last one, and
        /// thereby all.
        entries: Vec<Entry>,
    },
    /// Two signed entries that are not of one log. A genuine device that was never rolled back
    /// signs two at one index not even for a liar.
    Conflict(Box<[Authenticator; 2]>),
}

/// A fault that was proved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Proof {
    /// The entry at this index has a fault.
    Faulty(u64, Fault),
    /// The entries at this index, or before it, are of two logs.
    Forked(u64),
}

/// Why evidence proves nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unproven {
    /// There is no such node, no entry, more entries than evidence needs, or too long a state.
    #[error("the evidence is malformed")]
    Malformed,
    /// The device of the accused has not signed this.
    #[error("the accused's device has not signed it")]
    Signature,
    /// The state is not the one that the accused's checkpoint has.
    #[error("the state is not the one of the accused's checkpoint")]
    State,
    /// A correct node may have made this.
    #[error("a correct node may have made this log")]
    NoFault,
}

impl Evidence {
    /// The accused.
    #[must_use]
    pub fn accused(&self) -> u32 {
        match self {
            Self::Log { node, .. } => *node,
            Self::Conflict(two) => two[0].node,
        }
    }

    /// Verifies the evidence, with the public keys of `group` and the application. `reference` is
    /// the application of any node.
    ///
    /// # Errors
    /// [`Unproven`]
    pub fn verify(&self, group: &Group, reference: &impl Application) -> Result<Proof, Unproven> {
        if self.accused() >= group.nodes() {
            return Err(Unproven::Malformed);
        }
        match self {
            Self::Log { node, base, entries } => {
                verify_log(*node, base.as_ref(), entries, group, reference)
            }
            Self::Conflict(two) => {
                if !conflict(&two[0], &two[1]) {
                    return Err(Unproven::NoFault);
                }
                let are_genuine = two.iter().all(|it| it.is_genuine(group));
                are_genuine.then_some(Proof::Forked(two[1].index)).ok_or(Unproven::Signature)
            }
        }
    }

    /// The evidence as bytes, to be kept and shown.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what [`Evidence::encode`] writes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        decode(bytes)
    }
}

/// Whether two statements of one node, each signed, are not of one log.
pub(crate) fn conflict(one: &Authenticator, other: &Authenticator) -> bool {
    let forked = one.index == other.index && one.digest() != other.digest();
    let unchained = one.index.checked_add(1) == Some(other.index) && other.previous != one.digest();
    one.node == other.node && (forked || unchained)
}

fn verify_log<A: Application>(
    node: u32,
    base: Option<&Base>,
    entries: &[Entry],
    group: &Group,
    reference: &A,
) -> Result<Proof, Unproven> {
    let (first, previous) = base.map_or((1, [0; 32]), |it| (it.index, it.previous));
    let most = group.options.interval.saturating_add(2 * group.options.segment as u64);
    let count = entries.len() as u64;
    let (Some(last), Some(end)) = (entries.last(), first.checked_add(count)) else {
        return Err(Unproven::Malformed);
    };
    // An index is a counter, and these begin at 1.
    let length = base.map_or(0, |it| it.state.len());
    if count > most || first == 0 || length > group.options.state {
        return Err(Unproven::Malformed);
    }
    let head = head_of(first, previous, entries);
    if !group.has_signed(node, end - 1, &head, &last.signature) {
        return Err(Unproven::Signature);
    }
    let own = reference.start(node);
    let mut state = match base {
        None => State::new(own),
        Some(base) => state_of(base, &entries[0].input, &own, group).ok_or(Unproven::State)?,
    };
    for (index, entry) in (first..end).zip(entries) {
        match state.apply(At { node, index, group }, &entry.input) {
            Err(fault) => return Ok(Proof::Faulty(index, fault)),
            Ok(made) if made.sent != entry.sent => {
                return Ok(Proof::Faulty(index, Fault::Outputs));
            }
            Ok(_) => {}
        }
    }
    Err(Unproven::NoFault)
}

/// The state before the first entry. The accused has signed it with its checkpoint.
fn state_of<A: Application>(
    base: &Base,
    first: &Input,
    own: &A,
    group: &Group,
) -> Option<State<A>> {
    let digest = state_digest(&base.state);
    let is_its = matches!(first, Input::Checkpoint { state } if *state == digest);
    is_its.then(|| State::decode(own, &base.state, group.nodes())).flatten()
}
