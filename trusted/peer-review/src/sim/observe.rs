// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For models of small sizes: all of a node's state as bytes, and the parts of entries
//! that a liar makes itself.

use std::sync::Arc;

use smt_attestor::{Attestor, AttestorError};
use smt_replica::Digest;

use crate::authenticator::{Authenticator, Receipt, SentMessage};
use crate::group::{Group, Options};
use crate::message::encode;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::sim::group;
use crate::tree::{Content, Tree};

/// A group of three, of which one lies, with the shortest times: an audit begins with the second
/// tick, and who has not answered is suspected in the next one.
#[must_use]
pub fn group() -> Arc<Group> {
    let group = Group::clone(&group::group(3, 1, group::options()));
    let options = Options { resend: 1, complain: 1, audit: 2, suspect: 1, ..group.options };
    Arc::new(Group { options, ..group })
}

/// The device of a node, a liar's too, before its first entry.
///
/// # Errors
/// The kernel refuses the group.
pub fn device(group: &Group, node: u32) -> Result<Attestor, AttestorError> {
    group.open(group::device(group, node))
}

/// A correct node of a chain of three, of which node 0 is the source.
/// Nothing if its device refuses the group.
#[must_use]
pub fn node(group: &Arc<Group>, own: u32) -> Option<Node<Tree>> {
    let (device, secret) = (group::device(group, own), [own as u8; 32]);
    Node::new(group.clone(), device, secret, &Tree::new(3, 1)).ok()
}

/// All of a node as bytes. Two nodes with the same do the same on the same inputs.
#[must_use]
pub fn state(node: &Node<Tree>) -> Vec<u8> {
    node.snapshot()
}

/// How many messages to a receiver have no receipt.
#[must_use]
pub fn waiting(node: &Node<Tree>, receiver: u32) -> usize {
    node.host.outboxes.get(&receiver).map_or(0, Outbox::count)
}

/// The bytes by which a node forwards a part of the stream.
#[must_use]
pub fn content(number: u64, bytes: &[u8]) -> Vec<u8> {
    encode(&Content { number, bytes: bytes.to_vec() })
}

/// The hash of a message's bytes, as entries have it.
#[must_use]
pub fn body_digest(body: &[u8]) -> Digest {
    crate::authenticator::body_digest(body)
}

/// The receipt that an entry gives for a message.
#[must_use]
pub fn receipt(authenticator: Authenticator, message: &SentMessage) -> Receipt {
    Receipt::new(authenticator, message)
}
