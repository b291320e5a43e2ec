// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a log, and its owner.

use serde::{Deserialize, Serialize};
use smt_attestor::Given;

use crate::digest::Digest;
use crate::encoding::encode;
use crate::node::{Node, Statements};

/// A record of the log.
#[derive(Deserialize, Serialize)]
pub(super) enum Record<S> {
    /// The random bytes of the node's start: always the first.
    Start(S),
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
    /// All that a device that outlives the node has given for the inputs before.
    Given(Vec<Given>),
    /// A part of the snapshot with which a log goes on behind its first record.
    Part(Vec<u8>),
    /// The snapshot is whole.
    Whole,
    /// The statements that have followed from all inputs before.
    Statements(Statements),
}

/// The owner of a log: a log of another one is refused.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The number of the device.
    pub device: u32,
    /// Its epoch.
    pub epoch: u64,
    /// The hash of all that the node depends on beside its inputs: members, keys, sizes.
    pub configuration: Digest,
}

impl Owner {
    pub(super) fn encode<N: Node>(&self) -> Vec<u8> {
        let Self { device, epoch, configuration } = *self;
        encode(&(log_name::<N>(), N::VERSION, device, epoch, configuration))
    }
}

/// The beginning of an owner. The version follows.
fn log_name<N: Node>() -> String {
    format!("SMT {} {}", N::SYSTEM, N::LOG)
}

/// The beginnings of the owners of logs of older versions.
pub(super) fn older<N: Node>() -> impl Iterator<Item = Vec<u8>> {
    (0..N::VERSION).map(|it| encode(&(log_name::<N>(), it)))
}
