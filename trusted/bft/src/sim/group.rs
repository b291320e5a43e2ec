// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of a run, and the keys of all its members.

use smt_attestation::{GroupSecret, Start};
use smt_attestor::OwnDevice;
use smt_replica::{Group, Options, SigningKey};

use crate::replica::Identity;

/// The client whose key liars have.
pub(crate) const LIAR_CLIENT: u32 = 9;
/// Clients that are correct.
pub(super) const CLIENTS: [u32; 3] = [1, 2, 3];

pub(crate) fn secret() -> GroupSecret {
    GroupSecret::new([3; 32])
}

/// The key of a client in simulations.
pub(crate) fn client_key(client: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(1, client))
}

pub(crate) fn reply_key(replica: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(2, replica))
}

fn seed_of(kind: u8, number: u32) -> [u8; 32] {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    seed
}

/// The group of simulations: small sizes, so that checkpoints and full windows come soon.
pub(crate) fn group(replicas: u32) -> Group {
    let options = Options {
        batch: 4,
        operation: 1024,
        interval: 4,
        window: 12,
        pipeline: 1,
        retained: 1500,
        timeout: 12,
    };
    let of_client = |it: u32| (it, client_key(it).verifying_key().to_bytes());
    let clients = CLIENTS.into_iter().chain([LIAR_CLIENT]).map(of_client).collect();
    let reply_keys = (0..replicas).map(|it| reply_key(it).verifying_key().to_bytes()).collect();
    Group {
        keeps_history: true,
        unlogged_max: Some(2),
        ..Group::new(7, clients, reply_keys, options)
    }
}

pub(crate) fn identity(start: Start) -> Identity {
    Identity { device: library(start), reply_key: reply_key(start.device.0) }
}

pub(crate) fn library(start: Start) -> OwnDevice {
    OwnDevice::Library { secret: secret(), start, signing_key: None }
}
