// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stand-ins for cryptography in tests, fuzz targets and simulations. They protect nothing.
//!
//! - [`FakeKeyExchange`]: three flights and a shared secret instead of certificates.
//! - [`FakeTokenMac`]: cookies and reset tokens from a number.
//! - [`NullCipher`]: bytes stay as they are.
//! - [`WatchedCipher`]: a cipher whose every use is seen; [`NonceGuard`] refuses to seal other
//!   bytes under a number that was used.
//! - [`SealingCarrier`]: a carrier that seals records itself, as a network card would, and its keys
//!   ([`SealingKeys`]).
//! - [`OpeningKeys`]: the keys of a carrier that opens records.
//! - [`PacketSealer`]: a device that seals whole packets, as one of PSP does.
//! - [`EndpointPair`]: a client and a server with memory between them.
//!
//! No users of SMT depend on this crate.

#![forbid(unsafe_code)]

mod endpoint_pair;
mod key_exchange;
mod nonce_guard;
mod null_cipher;
mod opening_keys;
mod packet_sealer;
mod sealing_carrier;
mod token_mac;
mod watched_cipher;

pub use endpoint_pair::EndpointPair;
pub use key_exchange::{Early, ExchangeSettings, FakeKeyExchange, Transcript};
pub use nonce_guard::NonceGuard;
pub use null_cipher::NullCipher;
pub use opening_keys::OpeningKeys;
pub use packet_sealer::PacketSealer;
pub use sealing_carrier::{SealingCarrier, SealingKeys};
pub use token_mac::FakeTokenMac;
pub use watched_cipher::{CipherWatch, KeyWatch, WatchedCipher};

/// SHA-256 over all parts, one after the other.
fn hash(parts: &[&[u8]]) -> [u8; 32] {
    smt_record::parameter_hash(&smt_record::AwsLc, &parts.concat(), b"")
}
