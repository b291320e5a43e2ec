// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds, each with its reason.

use std::ops::RangeInclusive;

/// Widths of a replay window, in packets.
///
/// The least is RFC 4303 §3.4.3's. The most is 8 KB of memory for each association, and far below
/// the 2^31 from which on appendix A could not infer the higher bits.
pub const WINDOW_WIDTHS: RangeInclusive<u32> = 32..=65_536;

/// The width of a replay window unless it is set: two bursts of 64 segments beside each other, and
/// as much again.
pub const DEFAULT_WINDOW_WIDTH: u32 = 256;

/// SPIs below this are reserved (RFC 4303 §2.1).
pub const FIRST_SPI: u32 = 256;

/// The UDP port of ESP and IKE (RFC 3948 §2.1).
pub const ESP_UDP_PORT: u16 = 4500;

/// The longest super-packet that is built, in bytes: what an IPv4 header is able to say.
pub const LONGEST_SUPER_PACKET: usize = 65_535;

/// The most datagrams in a super-packet of UDP: Linux's `UDP_MAX_SEGMENTS` on older kernels.
pub const UDP_SEGMENTS: u16 = 64;
