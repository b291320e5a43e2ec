// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT in a deterministic network.
//!
//! The code under test is what users run: `smt-proto`, `smt-record` and `smt-handshake`, with real
//! keys. Around it is virtual time, and all of it repeats from a seed:
//!
//! - [`net`]: hosts, cables, switches, faults, an attacker on the path, captures.
//! - [`swarm`]: random cases, checkers, and a peer that has keys and keeps no rule.
//! - [`lab`]: a datacenter under load, from scenario files.
//! - [`baseline`]: what SMT is compared with, messages over byte streams.
//! - [`crypto`]: cryptography that repeats from a seed.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod crypto;
pub mod lab;
pub mod net;
mod random;
pub mod swarm;

pub use random::Random;
