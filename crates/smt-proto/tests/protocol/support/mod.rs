// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints, a network and a clock, all in memory.
//!
//! 1. [`World`] holds nodes, each an endpoint with an application, and the datagrams on their way.
//! 2. [`rule`] decides what becomes of each datagram; [`Random`] is seeded and printed.
//! 3. [`exchanges`] makes key exchanges with real keys, transcript and failures (`smt-testkit`).
//! 4. [`forge`] is who has no keys and changes bytes; [`rogue`] is a peer that has them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod configs;
pub mod forge;
pub mod load;
pub mod node;
pub mod random;
pub mod rogue;
pub mod rule;
pub mod world;

pub use load::Load;
pub use node::{Answer, Node};
pub use random::Random;
pub use rule::{Datagram, Verdict};
pub use world::World;

use bytes::Bytes;
use core::time::Duration;
use smt_testkit::FakeKeyExchange;

/// Key exchanges as long as those with certificates, whose randoms are counted from `attempt`.
pub fn exchanges(attempt: u64) -> FakeKeyExchange {
    let mut exchanges = FakeKeyExchange::new(attempt);
    exchanges.settings.filler = [200, 900, 0];
    exchanges.settings.observer = rogue::learn;
    exchanges
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Bytes that differ from message to message and from place to place.
pub fn body(seed: u64, length: usize) -> Bytes {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9).wrapping_add(length as u64));
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.any().to_be_bytes());
    }
    bytes.truncate(length);
    Bytes::from(bytes)
}
