// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits of this crate, each with its unit and its reason. Those that stand on the wire
//! (index bits, stripes, id window) are in `smt_wire`.

/// Records under one key; hard. 2^23 full records stay below the
/// confidentiality limit of AES-GCM in RFC 8446 §5.5 (2^24.5) with a margin for many sessions.
pub const RECORDS_PER_KEY_MAX: u64 = 1 << 23;

/// Smallest number of records per key that can be configured. Fewer would leave no record
/// between asking for an update and the hard stop.
pub const RECORDS_PER_KEY_MIN: u64 = 16;

/// Control packets that a key may seal for each record that it may seal (RFC 9001 appendix B.1).
pub const CONTROLS_PER_RECORD: u64 = 16;

/// Failed openings of one direction's key after which a receiver asks for an update. Half of the
/// smallest integrity limit (2^36, RFC 9001 §6.6), so the peer has as long again to answer.
pub const FAILED_OPENS_DEFAULT: u64 = 1 << 35;

/// Smallest number of failed openings that can be configured.
pub const FAILED_OPENS_MIN: u64 = 16;

/// Control numbers that a [`ControlWindow`](crate::ControlWindow) tells apart (SPEC §4.3).
pub const CONTROL_WINDOW: u64 = 1024;

/// Longest label of an exported secret, in bytes: HKDF-Expand-Label gives it 255 with TLS's prefix
/// (SPEC §7.4).
pub const EXPORT_LABEL_MAX: usize = 249;

/// Longest exported secret, in bytes: HKDF-Expand gives 255 outputs of the hash, of which SHA-256
/// has the shorter (SPEC §7.4).
pub const EXPORT_LEN_MAX: usize = 255 * 32;
