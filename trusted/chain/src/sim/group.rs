// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of all runs.

use smt_attestation::{DeviceId, Epoch, Start};
use smt_attestor::OwnDevice;
use smt_replica::sim::{members, node_key, secret};
use smt_replica::{Group, Options};

use crate::node::Identity;

pub(crate) fn identity(node: u32) -> Identity {
    let device = OwnDevice::Library { secret: secret(), start: start(node), signing_key: None };
    Identity { device, reply_key: node_key(node) }
}

pub(crate) fn start(node: u32) -> Start {
    Start { device: DeviceId(node), epoch: Epoch(1), nonce: [0; 16] }
}

pub(crate) fn group(nodes: u32) -> Group {
    let (clients, reply_keys) = members(nodes);
    let options =
        Options { operation: 64, window: 8, interval: 4, timeout: 20, ..Options::default() };
    Group {
        keeps_history: true,
        unlogged_max: Some(2),
        ..Group::new(9, clients, reply_keys, options)
    }
}
