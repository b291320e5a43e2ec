// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cryptography that repeats from a seed.
//!
//! [`SeededTls`] is the production TLS with key shares, randomness and date from the seed;
//! [`Credentials`] are its certificates. The ciphers and key exchanges that protect nothing, for
//! scale, are in the crate `smt-testkit`.

mod credentials;
mod seeded_random;
mod seeded_tls;
mod x25519;

pub use credentials::Credentials;
pub use seeded_tls::SeededTls;
