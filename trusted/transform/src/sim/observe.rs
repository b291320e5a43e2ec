// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For models of small sizes: all of a node's state as a digest, and the parts that
//! properties are about.

use std::fmt::Write;
use std::sync::Arc;

use smt_attestation::GroupSecret;
use smt_device_client::DeviceError;
use smt_replica::SigningKey;
use smt_replica::sim::{client_key, node_key};

use crate::client::Client;
use crate::counter::Counter;
use crate::group::Group;
use crate::node::{Identity, Node};

/// The parts of a node that a model looks at.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The hash of all of its state. Two nodes with the same do the same on the same inputs.
    pub fingerprint: [u8; 32],
    /// Each node as this one has followed it.
    pub followed: Vec<Followed>,
}

/// A node as another one has followed it.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The counter up to which its steps were taken.
    pub taken: u64,
    /// The counter up to which its steps are here.
    pub held: u64,
    /// It has made a step that the protocol does not make.
    pub is_faulty: bool,
    /// Its run of the protocol.
    pub machine: Counter,
}

/// The group of a model.
#[must_use]
pub fn group(nodes: u32) -> Group {
    crate::sim::group::group(nodes)
}

/// The secret of that group, which all its devices have.
#[must_use]
pub fn secret() -> GroupSecret {
    smt_replica::sim::secret()
}

/// The key with which a node's host signs endorsements, a liar's too.
#[must_use]
pub fn host_key(node: u32) -> SigningKey {
    node_key(node)
}

/// A correct node.
///
/// # Errors
/// Those of [`Node::new`].
pub fn node(group: &Arc<Group>, own: u32) -> Result<Node<Counter>, DeviceError> {
    let nodes = group.size();
    let identity = Identity { secret: secret(), device: own, key: host_key(own) };
    Node::new(group.clone(), identity, |it| Counter::new(it, nodes))
}

/// A client that has made no request yet.
#[must_use]
pub fn client(group: &Arc<Group>, number: u32) -> Client {
    Client::new(group, number, client_key(number), ([0; 16], 0))
}

/// Looks at a node.
#[must_use]
pub fn observe(node: &Node<Counter>) -> Observed {
    let followed = node.histories.iter().map(|it| Followed {
        taken: it.taken,
        held: it.held(),
        is_faulty: it.is_faulty,
        machine: it.machine().clone(),
    });
    Observed { fingerprint: fingerprint(node), followed: followed.collect() }
}

fn fingerprint(node: &Node<Counter>) -> [u8; 32] {
    let mut all = String::new();
    // Writing to a string does not fail. Times are left out at which steps were sent again: the
    // steps themselves do not depend on them.
    let _ = write!(all, "{}{:?}{:?}", node.own, node.protocol(), node.requests);
    let _ = write!(all, "{:?}{:?}{:?}", node.waited, node.unanswered, node.calls);
    for it in &node.histories {
        let _ = write!(all, "{}{}{:?}", it.taken, it.is_faulty, it.machine());
        let _ = write!(all, "{:?}{:?}", it.inbox, it.armed);
        it.kept().for_each(|it| {
            let _ = write!(all, "{it:?}");
        });
    }
    crate::message::digest("state", &[all.as_bytes()])
}
