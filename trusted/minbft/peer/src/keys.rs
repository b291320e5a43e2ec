// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of a group that lives as long as this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_attestation::GroupSecret;
use smt_bft::Client;
use smt_device_client::SecretNumber;
use smt_loopback::GivenSecret;
use smt_replica::{Group, Options, SigningKey};

/// The number of the group's stream.
const STREAM: u32 = 1;

/// A group, and all its keys. They follow from numbers: comparisons and tests have no secrets.
#[derive(Clone)]
pub struct GroupKeys {
    /// The group as its members know it.
    pub group: Arc<Group>,
}

impl GroupKeys {
    /// The number under which devices have the group's secret.
    pub const SECRET: SecretNumber = SecretNumber(1);

    /// A group of so many replicas and clients, whose numbers begin at 0.
    #[must_use]
    pub fn new(replicas: u32, clients: u32, options: Options) -> Self {
        let key =
            |kind, number| SigningKey::from_bytes(&seed(kind, number)).verifying_key().to_bytes();
        let clients: BTreeMap<u32, _> = (0..clients).map(|it| (it, key(CLIENT, it))).collect();
        let reply_keys = (0..replicas).map(|it| key(REPLICA, it)).collect();
        Self { group: Arc::new(Group::new(STREAM, clients, reply_keys, options)) }
    }

    /// The secret with which devices attest, for a device process.
    #[must_use]
    pub fn given_secret() -> GivenSecret {
        GivenSecret { number: Self::SECRET, bytes: seed(0, 0) }
    }

    /// The secret with which devices attest.
    #[must_use]
    pub fn secret() -> GroupSecret {
        GroupSecret::new(seed(0, 0))
    }

    /// The key with which a replica signs replies.
    #[must_use]
    pub fn reply_key(&self, replica: u32) -> SigningKey {
        SigningKey::from_bytes(&seed(REPLICA, replica))
    }

    /// A client that has made no request.
    #[must_use]
    pub fn client(&self, number: u32) -> Client {
        let key = SigningKey::from_bytes(&seed(CLIENT, number));
        Client::new(self.group.clone(), number, key, 0)
    }
}

const REPLICA: u8 = 1;
const CLIENT: u8 = 2;

fn seed(kind: u8, number: u32) -> [u8; 32] {
    let mut seed = [0x5a; 32];
    seed[0] = kind;
    seed[1..5].copy_from_slice(&number.to_be_bytes());
    seed
}
