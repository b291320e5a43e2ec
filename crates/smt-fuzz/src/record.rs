// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening records with known keys: a sealed record opens in its place, and nothing else does (SPEC
//! §5.1 to §5.4).
//!
//! 1. A message of the input's sizes is sealed; each record is compared with one that `keys`
//!    makes from the specification.
//! 2. The input then tries records: moved, renumbered, damaged, made up, under other keys. Only the
//!    genuine record under its own number may open, and in its own place it must.
//! 3. A peer that has the keys seals whatever the input says; only what the specification permits
//!    may open.
//!
//! Not here: epochs (see [`crate::epoch`]), ids (see [`crate::window`]).

mod attempt;
mod keys;
mod message;

pub use attempt::Attempt;
pub use message::Sizes;

use arbitrary::Arbitrary;

use message::Message;

/// A message, and the attempts on its records.
#[derive(Arbitrary, Debug)]
pub struct Case {
    sizes: Sizes,
    attempts: Vec<Attempt>,
}

/// Seals the message and makes every attempt.
pub fn check(case: &Case) {
    let message = Message::seal(&case.sizes);
    for index in 0..message.records.len() {
        message.open_genuine(index);
    }
    for attempt in case.attempts.iter().take(ATTEMPTS_MAX) {
        attempt.make(&message);
    }
}

/// More would only cost time.
const ATTEMPTS_MAX: usize = 64;
