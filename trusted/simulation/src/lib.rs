// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts that all simulations of this workspace have: random numbers, time, and a network.
//!
//! All that is random in a run follows from its seed, so a seed gives the same run again.
#![forbid(unsafe_code)]

mod network;
mod random;
mod schedule;

pub use network::{Bounds, Fate, Network};
pub use random::Random;
pub use schedule::Schedule;
