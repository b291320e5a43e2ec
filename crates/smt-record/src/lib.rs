// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT records: numbers, keys, sealing, opening and replay windows (SPEC §4, §5, §7).
//!
//! The flow of a message through this crate:
//! 1. [`SessionSecrets`] come from the TLS exporter or from a registered key.
//! 2. The sender draws an [`OutgoingId`] from an [`IdAllocator`] (or, for a reply, from the
//!    [`FirstSight`] of its request) and freezes the message under it in a [`FrozenMessage`].
//! 3. [`FrozenMessage::seal`] writes records under the keys of [`SealKeys`], once per number.
//! 4. The receiver picks a key from [`OpenKeys`], opens with [`open_first`] and [`open_rest`], and
//!    only then marks the id in its [`IdWindow`].
//!
//! Ciphers and hashes come from the caller, in a [`CryptoProvider`]. The default feature `aws-lc`
//! brings those of aws-lc; without it the crate needs `core` and `alloc` only.
//!
//! This crate has no clock, no randomness and no I/O. It does not schedule, reassemble or
//! retransmit, and it does not know packets; `smt-proto` does that.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aead;
#[cfg(feature = "aws-lc")]
mod aws_lc;
mod body;
mod carrier_key;
mod cipher;
mod crypto_provider;
mod epoch;
mod exporter;
mod frozen_message;
mod hash;
mod imported_key;
mod key_limits;
mod key_log;
mod key_schedule;
pub mod limits;
mod numbers;
mod open;
mod open_keys;
mod padding;
mod plaintext;
mod record_header;
mod seal_keys;
mod secret;
mod suite;
#[cfg(test)]
mod testing;
mod window;

pub use aead::{Aead, AeadProvider, NoKey, OpenFailed, Unavailable, nonce};
#[cfg(feature = "aws-lc")]
pub use aws_lc::AwsLc;
pub use body::Body;
pub use crypto_provider::CryptoProvider;
pub use exporter::{ExportError, Exporter};
pub use frozen_message::{FrozenMessage, Placed, SealError};
pub use hash::{HashAlgorithm, HashProvider, Prk};
pub use imported_key::{ImportedIdentity, ImportedKey};
pub use key_limits::{KeyLimits, KeyLimitsError, KeyUsedUp};
pub use key_log::{KeyLog, KeyLogContext, KeyLogEntry};
pub use key_schedule::{DirectionSecrets, Purpose, SessionSecrets, Side, parameter_hash};
pub use numbers::{
    AllocationError, IdAllocator, IdLayout, IdParts, IndexBits, NumberError, OutgoingId,
};
pub use open::{OpenError, open_first, open_rest, take_opened_first, take_opened_rest};
pub use open_keys::{CARRIER_FAILURES_MAX, OpenKeys};
pub use padding::Padding;
pub use plaintext::null_cipher;
pub use seal_keys::SealKeys;
pub use secret::Secret;
pub use suite::Suite;
pub use window::{ControlWindow, Delivered, FirstSight, IdWindow};
