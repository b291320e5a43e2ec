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
//!
//! **Out.** An association is a context ([`PspContext`]). The context block is, big-endian:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | engine: 4 |
//! | 1 | 1 | version: 0 for AES-128-GCM, 1 for AES-256-GCM |
//! | 2 | 2 | zero |
//! | 4 | 32 | key; a shorter one first, zeros behind |
//! | 36 | 4 | SPI, whose lower 31 bits are not 0 |
//! | 40 | 8 | IV of the first packet; 1 for a new association |
//!
//! A segment of native SMT is cut first ([`crate::segmentation`]), and each packet then gets its
//! own offset, UDP to port 1000, PSP's header with an IV, and the ICV:
//!
//! ```text
//!   IP │ native header │ datagram
//!   IP │ UDP │ PSP │ native header, header of SMT │ ciphertext │ ICV
//!                    └────────── clear ─────────┘
//! ```
//!
//! The offset is the packet's own, since the place in a segment is in the header of IPv4, which the
//! ICV does not cover: a stranger who changes it would move the payload. UDP's checksum is 0 in
//! both versions of IP. IPv6 permits this to tunnels whose contents have a check of their own (RFC
//! 6935 §5, RFC 6936): the ICV covers all behind UDP, and UDP's length is compared with IP's.
//!
//! The device counts the IVs. A resync takes them forward only. A context that is destroyed and
//! created anew begins where its block says, and two contexts of one association count each for
//! itself: the host must let no two of them have an IV in common. A segment that needs more IVs
//! than are left, that is too long, or whose packets have no places, is refused whole. Once the
//! context is gone, a segment that names it is refused, and nothing leaves in the clear.
//!
//! **In.** A packet to port 1000 is opened before any other part of the device reads it, and
//! becomes a native one of SMT: queues, merges and records go on as for a packet that came in the
//! clear. Its completion has the SPI, and says that it is PSP's. A wrong ICV, and an authentic
//! packet that is no native one or claims a place in a segment, are dropped and counted. All others
//! go up as they came, without a mark: of other protocols, versions, or device keys.
//!
//! A reset of the device forgets the contexts, and not the device's keys.

mod association;
mod device_keys;
pub(crate) mod inbound;
mod master_keys;
mod outbound;
mod packet;
mod sealer;

pub use association::{Association, DerivedKey, PspVersion};
pub(crate) use device_keys::DeviceKeys;
pub use device_keys::NotAllocated;
pub use master_keys::{MasterKey, MasterKeys, SpisUsedUp};
pub use outbound::{PspContext, PspEngine};
pub use packet::{
    HEADER_BYTES, ICV_BYTES, OVERHEAD_BYTES, OpenFailed, OpenedPacket, SealFailed, SendContext,
};

/// The engine's name in byte 0 of a context block.
pub const ENGINE: u8 = 4;
/// The port of UDP to which packets of PSP go.
pub const PORT: u16 = 1_000;
/// Bytes by which a sealed packet is longer than its native one: UDP's header, and PSP's bytes.
pub const GROWTH_BYTES: usize = UDP_BYTES + OVERHEAD_BYTES;

/// The IP protocol number of UDP, and bytes of its header.
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;

#[cfg(test)]
mod tests;
