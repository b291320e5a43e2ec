// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes and bounds of streams.

/// Stream bytes of a full segment: 1,500 of Ethernet less 20 for IPv4 and 20 for TCP.
pub(super) const SEGMENT_MAX: usize = 1_460;
/// The rest of TCP's 20 bytes of header, inside the UDP payload: the link charges the 8 bytes of
/// UDP. A full segment is therefore 1,472 bytes and fills a frame, as TCP's does.
pub(super) const HEADER_LEN: usize = 12;

/// SACK blocks of an acknowledgement (RFC 2018 §3: three leave room for another option).
pub(super) const BLOCKS_MAX: usize = 3;
/// Kind, length and padding of the SACK option.
pub(super) const BLOCKS_HEADER_LEN: usize = 4;
/// Two 32-bit numbers each.
pub(super) const BLOCK_LEN: usize = 8;
/// Bytes of the longest acknowledgement.
pub(super) const ACKNOWLEDGEMENT_MAX: usize =
    HEADER_LEN + BLOCKS_HEADER_LEN + BLOCKS_MAX * BLOCK_LEN;

/// Bytes of a new or rested window (RFC 6928 §2).
pub(super) const WINDOW_INITIAL: u64 = 10 * SEGMENT_MAX as u64;
/// Bytes that a cut leaves: two segments, as Linux's DCTCP has it; a timeout leaves one.
pub(super) const WINDOW_MIN: u64 = 2 * SEGMENT_MAX as u64;
/// The largest receive window that Linux permits: 6 MiB (`tcp_rmem`).
pub(super) const WINDOW_MAX: u64 = 6 << 20;

/// Nanoseconds of the shortest timeout: 1 ms, as datacenters set it.
pub(super) const TIMEOUT_MIN: u64 = 1_000_000;
/// Nanoseconds of the longest timeout: 60 s (RFC 6298 §2.5).
pub(super) const TIMEOUT_MAX: u64 = 60_000_000_000;

/// Segments that overtake one that is lost (RFC 5681 §3.2).
pub(super) const REORDERING_INITIAL: u32 = 3;
/// The most patient connection (Linux's `tcp_max_reordering`).
pub(super) const REORDERING_MAX: u32 = 300;

/// Plaintext of a full TLS record.
pub(super) const RECORD_LEN: u64 = 16_384;
/// The bytes that TLS 1.3 adds to a record: header 5, content type 1, tag 16.
pub(super) const RECORD_OVERHEAD: u64 = 22;
