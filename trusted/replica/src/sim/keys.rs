// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of all members of simulated groups.

use std::collections::BTreeMap;

use ed25519_dalek::SigningKey;
use smt_attestation::GroupSecret;

use crate::group::PublicKey;

/// The client whose key liars have.
pub const LIAR_CLIENT: u32 = 9;
/// Clients that are correct.
pub const CLIENTS: [u32; 3] = [1, 2, 3];

/// The secret of the devices.
#[must_use]
pub fn secret() -> GroupSecret {
    GroupSecret::new([3; 32])
}

/// The key of a client.
#[must_use]
pub fn client_key(client: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(1, client))
}

/// The key with which the host of a node signs.
#[must_use]
pub fn node_key(node: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(2, node))
}

fn seed_of(kind: u8, number: u32) -> [u8; 32] {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    seed
}

/// The public keys of all clients, by number, and of the hosts of `nodes` nodes.
#[must_use]
pub fn members(nodes: u32) -> (BTreeMap<u32, PublicKey>, Vec<PublicKey>) {
    let public = |it: SigningKey| it.verifying_key().to_bytes();
    let clients = CLIENTS.into_iter().chain([LIAR_CLIENT]);
    let clients = clients.map(|it| (it, public(client_key(it)))).collect();
    (clients, (0..nodes).map(|it| public(node_key(it))).collect())
}
