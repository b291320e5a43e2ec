// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of all runs, and its keys.

use std::collections::BTreeMap;

use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_attestor::OwnDevice;
use smt_replica::{Group, Options, SigningKey};

use crate::node::Identity;

/// The correct clients, and one that lies.
pub(crate) const CLIENTS: [u32; 3] = [1, 2, 3];
pub(crate) const LIAR_CLIENT: u32 = 4;

pub(crate) fn client_key(client: u32) -> SigningKey {
    SigningKey::from_bytes(&[client as u8 + 100; 32])
}

pub(crate) fn reply_key(node: u32) -> SigningKey {
    SigningKey::from_bytes(&[node as u8 + 1; 32])
}

pub(crate) fn identity(node: u32) -> Identity {
    let device = OwnDevice::Library { secret: secret(), start: start(node), signing_key: None };
    Identity { device, reply_key: reply_key(node) }
}

pub(crate) fn start(node: u32) -> Start {
    Start { device: DeviceId(node), epoch: Epoch(1), nonce: [0; 16] }
}

pub(crate) fn secret() -> GroupSecret {
    GroupSecret::new([3; 32])
}

pub(crate) fn group(nodes: u32) -> Group {
    let clients = CLIENTS.into_iter().chain([LIAR_CLIENT]);
    let clients: BTreeMap<_, _> =
        clients.map(|it| (it, client_key(it).verifying_key().to_bytes())).collect();
    let reply_keys = (0..nodes).map(|it| reply_key(it).verifying_key().to_bytes()).collect();
    let options =
        Options { operation: 64, window: 8, interval: 4, timeout: 20, ..Options::default() };
    Group {
        keeps_history: true,
        unlogged_max: Some(2),
        ..Group::new(9, clients, reply_keys, options)
    }
}
