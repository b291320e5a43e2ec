// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sizes that every carrier and every user of one agrees on, each with its reason.

/// Priority levels, `0` (least urgent) to `7`: the three top bits of the DSCP field, at which
/// switches with eight queues look.
pub const PRIORITY_LEVELS: u8 = 8;

/// Bytes a receive buffer needs so that no batch is ever cut: the largest UDP datagram, and the
/// largest batch the kernel coalesces, both fit into 64 KiB.
pub const RECEIVE_BUFFER_BYTES: usize = 65_536;

/// Bytes of datagram that every path is trusted to carry: the least MTU of IPv6 (RFC 8200 §5:
/// 1,280) less the headers of IPv6 (40) and UDP (8).
pub const DATAGRAM_BYTES_FLOOR: usize = 1_232;

/// Bytes of a batch that every system takes by one segmented send: the largest UDP payload over
/// IPv4.
pub const BATCH_BYTES_MAX: usize = 65_507;
