// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of a run, and all its keys.

use smt_attestation::GroupSecret;
use smt_replica::SigningKey;

use crate::group::{Group, Options};
use crate::node::Identity;

/// The client whose key liars have.
pub(crate) const LIAR_CLIENT: u32 = 9;
/// The other clients.
pub(crate) const CLIENTS: [u32; 3] = [1, 2, 3];

pub(crate) fn client_key(client: u32) -> SigningKey {
    SigningKey::from_bytes(&[client as u8; 32])
}

pub(crate) fn node_key(node: u32) -> SigningKey {
    SigningKey::from_bytes(&[100 + node as u8; 32])
}

pub(crate) fn identity(device: u32) -> Identity {
    Identity { secret: GroupSecret::new([3; 32]), device, key: node_key(device) }
}

pub(crate) fn group(nodes: u32) -> Group {
    let key = |it: SigningKey| it.verifying_key().to_bytes();
    Group {
        stream: 5,
        nodes: (0..nodes).map(|it| key(node_key(it))).collect(),
        clients: CLIENTS
            .into_iter()
            .chain([LIAR_CLIENT])
            .map(|it| (it, key(client_key(it))))
            .collect(),
        options: Options { operation: 64, ..Options::default() },
    }
}
