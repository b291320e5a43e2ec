// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cryptography that repeats from a seed.
//!
//! [`SeededTls`] is the production TLS with key shares, randomness and date from the seed; [`Credentials`] are
//! its certificates. For scale, where a thousand hosts send megabytes: [`FastExchange`] and [`NullCipher`], which
//! protect nothing and exist in this crate alone.

mod credentials;
mod fast_exchange;
mod null_cipher;
mod seeded_random;
mod seeded_tls;
mod x25519;

pub use credentials::Credentials;
pub use fast_exchange::FastExchange;
pub use null_cipher::NullCipher;
pub use seeded_tls::SeededTls;
