// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of this crate, each with its unit and its reason.

/// Bytes of a PEM file that are read at most. A chain or a bundle of public roots is below 1 MiB;
/// more is a wrong path.
pub const PEM_FILE_LEN_MAX: u64 = 4 << 20;

/// Days for which a certificate can be made, at most: one hundred years. Dates in certificates
/// end with the year 9999.
pub const CERTIFICATE_DAYS_MAX: u32 = 36_525;

/// Seconds by which a new certificate is valid before it was made, so that a peer whose clock is
/// a little late accepts it.
pub const CERTIFICATE_BACKDATE_S: u64 = 3_600;

/// Bytes of a registered secret, at least: 128 bits, the strength of the weakest suite.
pub const REGISTERED_SECRET_LEN_MIN: usize = 16;

/// Bytes of the name of a registered key, at most (SPEC §6.3, tag 13).
pub const KEY_NAME_LEN_MAX: usize = 32;

/// Bytes of the key exchange part of a flight, at most (SPEC §6.1).
pub const FLIGHT_LEN_MAX: usize = 65_536;
