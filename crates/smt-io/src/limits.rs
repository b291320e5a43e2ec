// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of the carriers, each with unit and reason.

/// Segments in one segmented send: every kernel that has `UDP_SEGMENT` takes 64; newer ones take
/// 128, which gains nothing measurable at the sizes that fit into 64 KiB.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// Bytes of UDP payload over IPv4: 65,535 less the headers of IPv4 (20) and UDP (8).
pub(crate) const UDP_BYTES_MAX_IPV4: usize = 65_507;

/// Bytes of UDP payload over IPv6 that fit 65,535 with the headers of IPv6 (40) and UDP (8)
/// counted, as segmentation offload counts them.
pub(crate) const UDP_BYTES_MAX_IPV6: usize = 65_487;

/// Bytes asked for a socket's receive buffer unless told otherwise. The kernel charges at least 768
/// bytes for a datagram of 64, so this holds some ten thousand small ones: a burst, not a backlog.
pub(crate) const RECEIVE_BUFFER_BYTES_DEFAULT: usize = 4 << 20;

/// Bytes asked for a socket's send buffer unless told otherwise: 64 full batches.
pub(crate) const SEND_BUFFER_BYTES_DEFAULT: usize = 4 << 20;

/// Microseconds below which a wait is made with `poll`, one system call more but exact to some 50
/// us: the kernel rounds a socket's own time limit up by one to two scheduler ticks of 1 to 10 ms.
pub(crate) const EXACT_WAIT_US: u64 = 1_000;

/// Datagrams that a memory carrier queues unless told otherwise.
pub(crate) const MEMORY_QUEUE_DATAGRAMS_DEFAULT: usize = 8_192;

/// Bytes that a memory carrier queues unless told otherwise.
pub(crate) const MEMORY_QUEUE_BYTES_DEFAULT: usize = 4 << 20;

/// Bytes of the largest datagram in memory unless told otherwise: Ethernet's 1,500 less the headers
/// of IPv4 and UDP, so that tests see a common network by default.
pub(crate) const MEMORY_DATAGRAM_BYTES_DEFAULT: usize = 1_472;

/// Bytes that wait for a shard which another shard has received: as much as a socket's buffer.
pub(crate) const INBOX_BYTES: usize = RECEIVE_BUFFER_BYTES_DEFAULT;

/// Bytes charged for each batch there besides its own, so that small ones cannot be many: about
/// what the allocator and the queue take.
pub(crate) const INBOX_BATCH_OVERHEAD_BYTES: usize = 128;
