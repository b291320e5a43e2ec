// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ESP engine: packets are sealed after they were cut, and opened before they are merged
//! (RFC 4303, transport mode).
//!
//! ESP authenticates each packet for itself, with a number of its own, and hides the transport
//! header. A segment is therefore cut first ([`crate::segmentation`]), and each packet then gets
//! its number, IV, trailer and ICV from the device. On the way in a packet is opened before any
//! other part of the device reads its ports.
//!
//! **Out.** An association is a context ([`EspContext`]). The context block is, big-endian:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | engine: 2 |
//! | 1 | 1 | flags: 0x01 extended sequence numbers |
//! | 2 | 2 | suite ([`EspSuite`]) |
//! | 4 | 36 | keying material: the key, and behind it the salt; zeros behind |
//! | 40 | 4 | SPI |
//! | 44 | 8 | number of the first packet; 1 for a new association |
//!
//! The device counts the numbers. A resync takes them forward only: whatever number the host names
//! in one, no number of the context is used again. Other ways are the host's to keep clear of. The
//! device remembers no key, so a context that is destroyed and created anew begins at the number in
//! its block, and two contexts of one association count each for itself: either way packets share
//! their numbers, and with them the nonces of their ciphers. A segment that needs more numbers than
//! are left is refused whole, and nothing of it leaves. In the same way nothing leaves in the clear
//! once a context is gone: a segment that names it is refused.
//!
//! **In.** Associations are a table by their SPI ([`InboundTable`]), of a fixed size. Bytes change
//! and the replay window moves only once a packet has authenticated. An opened packet goes up
//! marked with the SPI in its completion; the host compares it with the association's selectors
//! (RFC 4301 §5.2). A packet for which the table has no association goes up as it came:
//! associations that found no room stay with the host's software.
//!
//! **An association is in one place**, the device or the software: numbers and replay windows are
//! counted once.
//!
//! Not here: tunnel mode, ESP in UDP, lifetimes (the host counts packets by its completions),
//! selectors. Fragments and IPv6 with extension headers are the host's.

mod cipher;
mod inbound;
mod outbound;
mod replay_window;
mod suite;
mod trailer;

pub use inbound::{
    Association, EspTableError, InboundTable, Outcome, Refused, RemovedAssociation, WINDOW_WIDTHS,
};
pub use outbound::{EspContext, EspEngine};
pub use suite::EspSuite;

/// The engine's name in byte 0 of a context block.
pub const ENGINE: u8 = 2;
/// The flag of a context block: sequence numbers have 64 bits (RFC 4303 §2.2.1).
pub const EXTENDED: u8 = 0x01;
/// The lowest SPI that is not reserved (RFC 4303 §2.1).
pub const FIRST_SPI: u32 = 256;
/// Bytes of the longest keying material.
pub const KEY_MATERIAL_MAX: usize = 36;

/// The IP protocol number of ESP.
pub(crate) const PROTOCOL: u8 = 50;
/// SPI and the lower half of the number.
const HEADER: usize = 8;
/// The next header of a dummy packet (RFC 4303 §2.6).
const NO_NEXT: u8 = 59;

/// The highest number of an association.
const fn last_number(extended: bool) -> u64 {
    match extended {
        true => u64::MAX,
        false => u32::MAX as u64,
    }
}
