// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures 11 to 14: the throughput and latency of BFT, chain replication and PeerReview over
//! devices of each kind, beside crash-tolerant replication inside of TEEs.

mod batches;
mod bft;
mod catching_up;
mod chain;
mod cpu;
mod crash_tolerant;
mod device;
mod disk;
mod figures;
mod in_memory;
mod instructions;
mod over_smt;
mod peer_review;
mod requester;
mod system;

use smt_replica::KeyValueOperation;

pub(crate) use self::batches::batches;
pub(crate) use self::catching_up::catching_up;
pub(crate) use self::figures::figures_11_to_14;
pub(crate) use self::in_memory::run as run_in_memory;
pub(crate) use self::system::System;

/// n = 3, f = 1, as in the paper.
const REPLICAS: u32 = 3;
/// The number of the group's stream.
const STREAM: u32 = 7;
/// The paper's request has 60 bytes of context.
const VALUE: usize = 60;

/// The seed of a client's key of requests. Nothing is secret in a measurement.
fn client_seed(client: u32) -> [u8; 32] {
    seed(1, client)
}

/// The seed of a replica's key of replies.
fn replica_seed(replica: u32) -> [u8; 32] {
    seed(2, replica)
}

fn seed(kind: u8, number: u32) -> [u8; 32] {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    seed
}

/// The counter's operation.
fn count_operation() -> Vec<u8> {
    1_u64.to_be_bytes().to_vec()
}

/// A client's operation on the key-value store.
fn put_operation(client: u32, number: u64) -> Vec<u8> {
    let key = client.to_be_bytes().to_vec();
    let mut value = Vec::from(number.to_be_bytes());
    value.resize(VALUE, 0);
    KeyValueOperation::Put(key, value).encode()
}
