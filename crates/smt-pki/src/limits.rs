// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of this crate, each with its unit and its reason.

/// Days for which a certificate can be made, at most: one hundred years. Dates in certificates
/// end with the year 9999.
pub const CERTIFICATE_DAYS_MAX: u32 = 36_525;

/// Seconds by which a new certificate is valid before it was made, so that a peer whose clock is
/// a little late accepts it.
pub const CERTIFICATE_BACKDATE_S: u64 = 3_600;
