// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The PSP engine: it seals and opens whole packets by keys that the receiving device derives from
//! a key of its own (Google's PSP Architecture Specification; SMT paper §7, SPEC §15.3).
//!
//! ```text
//!   receiving device: two device keys, one of them current
//!     allocate ─▶ SPI, whose top bit names the device key, and the key derived from both
//!                  └── the host tells its peer, under the protection of their session ──┐
//!   sending device: a context of SPI, key and the next IV  ◀─────────────────────────────┘
//!     seal ─▶ header (SPI, IV, crypt offset) │ clear bytes │ ciphertext │ ICV ─▶ open
//! ```
//!
//! 1. The receiving device keeps nothing for an association: a packet's SPI and the device key give
//!    the key again. Its memory is two keys, however many peers there are.
//! 2. [`MasterKeys::rotate`] replaces the older device key. Associations of the other one go on
//!    until the next rotation, in which time peers get new ones.
//! 3. Bytes up to the crypt offset are authenticated and stay clear: SMT's headers, by which
//!    switches and receive queues work.
//! 4. Each packet has an IV of its own, a repeated one too. The engine has no window against
//!    replays: PSP leaves those to the layer above, and SMT takes an id and a record once (SPEC
//!    §4.2).
//!
//! The engine has no randomness: the host gives it fresh device keys.

mod association;
mod master_keys;
mod packet;

pub use association::{Association, DerivedKey, PspVersion};
pub use master_keys::{MasterKey, MasterKeys, SpisUsedUp};
pub use packet::{
    HEADER_BYTES, ICV_BYTES, OVERHEAD_BYTES, OpenFailed, OpenedPacket, SealFailed, SendContext,
};

#[cfg(test)]
mod tests;
