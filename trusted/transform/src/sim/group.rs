// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The group of a run.

use smt_replica::sim::{members, node_key, secret};

use crate::group::{Group, Options};
use crate::node::Identity;

pub(crate) fn identity(device: u32) -> Identity {
    Identity { secret: secret(), device, key: node_key(device) }
}

pub(crate) fn group(size: u32) -> Group {
    let (clients, nodes) = members(size);
    Group { stream: 5, nodes, clients, options: Options { operation: 64, ..Options::default() } }
}
