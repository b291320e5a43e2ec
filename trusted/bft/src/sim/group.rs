// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of a run.

use smt_attestation::Start;
use smt_attestor::OwnDevice;
use smt_replica::sim::{members, node_key, secret};
use smt_replica::{Group, Options};

use crate::replica::Identity;

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
    let (clients, reply_keys) = members(replicas);
    Group {
        keeps_history: true,
        unlogged_max: Some(2),
        ..Group::new(7, clients, reply_keys, options)
    }
}

pub(crate) fn identity(start: Start) -> Identity {
    Identity { device: library(start), reply_key: node_key(start.device.0) }
}

pub(crate) fn library(start: Start) -> OwnDevice {
    OwnDevice::Library { secret: secret(), start, signing_key: None }
}
