// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The groups of all runs, and their keys.

use std::sync::Arc;

use smt_attestation::{GroupSecret, SigningKey};
use smt_attestor::OwnDevice;

use crate::group::{Group, Options};

pub(super) fn secret() -> GroupSecret {
    GroupSecret::new([3; 32])
}

pub(super) fn signing_key(node: u32) -> SigningKey {
    SigningKey::new(&[node as u8 + 1; 32])
}

pub(super) fn device(group: &Group, node: u32) -> OwnDevice {
    group.library(node, signing_key(node), secret())
}

/// The numbers of runs without a plan.
pub(super) fn options() -> Options {
    Options { interval: 16, segment: 24, body: 256, sends: 8, ..Options::default() }
}

pub(super) fn group(nodes: u32, faults: u32, options: Options) -> Arc<Group> {
    let keys = (0..nodes).map(|it| signing_key(it).public_key()).collect();
    let epochs = vec![1; nodes as usize];
    Arc::new(Group { stream: 11, keys, epochs, faults, options })
}
