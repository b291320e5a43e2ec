// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers of the wire, each with its unit and reason.

use core::ops::RangeInclusive;

/// Version byte of this specification (SPEC §3.1).
pub const VERSION: u8 = 1;

/// Version byte of the plaintext measurement protocol (SPEC §14).
pub const PLAINTEXT_VERSION: u8 = 0xF1;

/// Bytes of a control tag and of a record's tag: all suites of SPEC §5.1 have 16.
pub const TAG_LEN: usize = 16;

/// Bytes of a record's clear header, which is the additional data of its seal (SPEC §5.1).
pub const RECORD_HEADER_LEN: usize = 5;

/// Bytes of a reset token (SPEC §12.1).
pub const RESET_TOKEN_LEN: usize = 16;

/// Bytes of an association's key in ASSOCIATION, zeros behind a shorter one among them (SPEC
/// §15.4).
pub const ASSOCIATION_KEY_LEN: usize = 32;

/// Most versions of PSP that a side names (SPEC §6.3): the field for them has four bits.
pub const PSP_VERSIONS_MAX: usize = 16;

/// Most entries of a control packet's list (SPEC §8): 64 x 24 bytes of GRANT stay below 1,600.
pub const LIST_MAX: usize = 64;

/// Most bytes of a cookie (SPEC §6.2, §6.4).
pub const COOKIE_MAX: usize = 64;

/// Most flights of a handshake (SPEC §6.1): three, two more after a HelloRetryRequest, alerts.
pub const FLIGHTS_MAX: u8 = 7;

/// Most bytes of a flight's body (SPEC §6.1): room for a chain of certificates.
pub const FLIGHT_LEN_MAX: usize = 65_536;

/// Bytes that a record adds to its extent: 5 of header, 1 of content type, 16 of tag (SPEC §5.3).
pub const RECORD_OVERHEAD: usize = 22;

/// Inner bytes of a record, N0 and N (SPEC §5.3): from 64 to TLS's largest plaintext.
pub const RECORD_SIZE: RangeInclusive<u16> = 64..=16_384;

/// Most inner bytes of record 0 as agreed (SPEC §5.3): 36 of header + 1,142 + 22 = 1,200, the
/// least datagram.
pub const FIRST_RECORD_SIZE_MAX: u16 = 1_142;

/// Record index bits of the composite sequence number (SPEC §6.3).
pub const INDEX_BITS: RangeInclusive<u8> = 8..=17;

/// Initial window, in ids per stripe and initiator (SPEC §6.3).
pub const WINDOW: RangeInclusive<u32> = 64..=65_536;

/// Least datagram limit, in bytes of UDP payload (SPEC §6.3).
pub const DATAGRAM_LIMIT_MIN: u16 = 1_200;

/// Most stripe bits k (SPEC §4.1).
pub const STRIPES_LOG2_MAX: u8 = 8;

/// Most bytes of a registered key's name (SPEC §6.3).
pub const KEY_NAME_MAX: usize = 32;

/// Records of a bundle: it leaves in one packet, and the record after record 0 is best sealed at
/// once (SPEC §5.7).
pub const BUNDLE_RECORDS_MAX: u32 = 2;
/// Bytes of the text of a reply that is a failure (SPEC §5.2): some lines, which fit record 0
/// beside the inner header.
pub const FAILURE_TEXT_MAX: usize = 1_024;
/// Bytes of the entries of a message's metadata (SPEC §5.8): what a tracer and an authorizer send,
/// and little beside a body.
pub const METADATA_MAX: usize = 4_096;
/// Bytes that a part counts in a window of parts beside its body (SPEC §5.9): what a receiver keeps
/// for it.
pub const PART_OVERHEAD: u32 = 512;
/// Window of parts, in bytes (SPEC §6.3): at least a few small parts.
pub const PART_WINDOW: RangeInclusive<u32> = 4_096..=0x4000_0000;
/// Entries of a message's metadata (SPEC §5.8).
pub const METADATA_ENTRIES_MAX: usize = 64;
