// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The configuration of an endpoint: choices of its user, and facts of its run.

use core::ops::{Deref, DerefMut};
use core::time::Duration;

use smt_record::{KeyLimits, Padding};
use smt_wire::Shard;

use crate::limits;

/// The configuration of one endpoint: the user's choices, and what its owner knows of this run of
/// it. The choices are read and written as if they stood here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The user's choices.
    pub transport: TransportConfig,
    /// Wire version: [`smt_wire::VERSION`], or the plaintext one in a measurement endpoint.
    pub version: u8,
    /// Whether handshakes of clients are answered.
    pub accept: bool,
    /// First boot number of this run: the high half of its session indices. From a durable counter
    /// it is larger than that of every earlier run, see [`Self::durable_boot`]; else it is any
    /// number.
    pub boot: u32,
    /// How many boot numbers of a durable counter, from `boot` on, no later run has. When the
    /// indices of one are used up, the next follows. Without a durable counter any number may
    /// follow.
    pub boots: u32,
    /// Whether `boot` and the reset key survive restarts, so that indices of earlier runs are
    /// answered by RESET.
    pub durable_boot: bool,
    /// Which of the endpoints that share `boot` and the reset key this endpoint is. It issues only
    /// session indices of its own (SPEC §6.6).
    pub shard: Shard,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            transport: TransportConfig::default(),
            version: smt_wire::VERSION,
            accept: false,
            boot: 1,
            boots: 1,
            durable_boot: false,
            shard: Shard::default(),
        }
    }
}

/// The configuration of a run of which nothing else is known.
impl From<TransportConfig> for Config {
    fn from(transport: TransportConfig) -> Self {
        Self { transport, ..Self::default() }
    }
}

impl Deref for Config {
    type Target = TransportConfig;

    fn deref(&self) -> &TransportConfig {
        &self.transport
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut TransportConfig {
        &mut self.transport
    }
}

/// Choices of an endpoint that its user may make. Every field has a default that suits a datacenter
/// of 10 to 100 Gb/s.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportConfig {
    /// Bits of a record number for the index within the message, 8 to 17 (SPEC §5.1).
    pub index_bits: u8,
    /// Inner bytes of a record N, 64 to 16,384.
    pub record_size: u16,
    /// Inner bytes of record 0, N0, 64 to 1,142.
    pub first_record_size: u16,
    /// Ids per stripe that the peer may have unseen, a power of two, 64 to 65,536.
    pub window: u32,
    /// Stripes of the id space as a power of two, 0 to 8.
    pub stripes_log2: u8,
    /// Largest message accepted, in bytes with padding.
    pub message_limit: u32,
    /// Bytes of a message that the peer may send without a grant; at least 22 more than
    /// `first_record_size`.
    pub unscheduled: u32,
    /// Bytes granted and not yet received, over all messages. At most a third of the socket's
    /// receive buffer.
    pub incoming_max: u32,
    /// Memory for incomplete messages, and for whole ones that wait for the application, bytes over
    /// all sessions. The unfinished messages of one peer get no more of it than is left for others:
    /// half, if only that peer has any. As much again is for replies that are not acknowledged; the
    /// replies of one session get a quarter of that.
    pub memory_max: usize,
    /// Sessions at once.
    pub sessions_max: usize,
    /// Sessions at once of clients with one identity: a certificate, a public key or a registered
    /// key. `None` is a quarter of `sessions_max`, and one at least. Beyond it the longest unused
    /// session of the same identity closes, or the new one if all are in use.
    pub sessions_of_identity_max: Option<usize>,
    /// Sessions that keep the tables of their ciphers: 1.3 KB each, 2.6 KB with those for control
    /// packets. Other sessions in use make their tables again each time, in half a microsecond. The
    /// default is about what the second-level cache holds.
    pub cipher_cache_sessions: usize,
    /// Replies outstanding above which replies get only their first record unscheduled (incast
    /// control).
    pub incast_calls: usize,
    /// Largest datagram sent or accepted, UDP payload bytes, 1,200 to 65,507.
    pub datagram_limit: u16,
    /// Most bytes of one transmit, 1 to 65,507; a single datagram and a flight of the handshake may
    /// be longer. A lower bound lets a short message overtake a long one sooner where the link is
    /// slow; a higher one costs fewer system calls.
    pub batch_max: usize,
    /// Whether small messages that wait together share records, here and at the peer (SPEC §5.7).
    pub bundles: bool,
    /// Bytes of the parts of a call that may wait for the application, each with an overhead of
    /// 512: 4,096 to 2^30, or 0 if no calls in parts are taken. No part is longer. A sender goes
    /// on when half was taken: a stream of parts gets at most this much in a round trip.
    pub part_window: u32,
    /// How the lengths of messages are hidden.
    pub padding: Padding,
    /// When keys are renewed. With fewer than 1,024 records per key, loss and repetition can use up
    /// the control packets of a key before the messages that hold up the next one have ended: the
    /// session then dies as silent.
    pub key_limits: KeyLimits,
    /// First wait before a silent peer is asked. A session waits up to a quarter longer, so that
    /// sessions do not ask together.
    pub resend_interval: Duration,
    /// A session is dead after its peer, although asked, was silent for this time.
    pub silence_max: Duration,
    /// Sessions without live messages are closed by the server after this time.
    pub idle_life: Duration,
    /// Handshakes in progress above which clients must show a cookie. 0: always.
    pub accepts_without_cookie: usize,
}

impl TransportConfig {
    /// Sessions at once of clients with one identity.
    pub(crate) fn sessions_of_identity(&self) -> usize {
        let share = self.sessions_max / limits::IDENTITY_SHARE;
        self.sessions_of_identity_max.unwrap_or(share).max(1)
    }

    /// Panics if a field is out of its range: nothing that is built on the configuration would
    /// hold.
    pub(crate) fn assert_valid(&self) {
        let first = u32::from(self.first_record_size.min(self.record_size));
        let is_valid = smt_wire::INDEX_BITS.contains(&self.index_bits)
            && smt_wire::RECORD_SIZE.contains(&self.record_size)
            && smt_wire::RECORD_SIZE.contains(&self.first_record_size)
            && self.first_record_size <= smt_wire::FIRST_RECORD_SIZE_MAX
            && smt_wire::WINDOW.contains(&self.window)
            && self.window.is_power_of_two()
            && (self.part_window == 0 || smt_wire::PART_WINDOW.contains(&self.part_window))
            && self.stripes_log2 <= smt_wire::STRIPES_LOG2_MAX
            && self.unscheduled >= first + smt_wire::RECORD_OVERHEAD as u32
            && (limits::DATAGRAM_FLOOR..=usize::from(limits::DATAGRAM_LIMIT))
                .contains(&usize::from(self.datagram_limit));
        assert!(is_valid, "a field is out of its range: {self:?}");
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            index_bits: 16,
            record_size: limits::RECORD_SIZE,
            first_record_size: limits::FIRST_RECORD_SIZE,
            window: limits::WINDOW,
            stripes_log2: 0,
            message_limit: limits::MESSAGE_LIMIT,
            unscheduled: limits::UNSCHEDULED,
            incoming_max: limits::INCOMING_MAX,
            memory_max: limits::MEMORY_MAX,
            sessions_max: limits::SESSIONS_MAX,
            sessions_of_identity_max: None,
            cipher_cache_sessions: limits::CIPHER_CACHE_SESSIONS,
            incast_calls: 512,
            datagram_limit: limits::DATAGRAM_LIMIT,
            batch_max: limits::TRANSMIT_BYTES_MAX,
            bundles: true,
            part_window: limits::PART_WINDOW,
            padding: Padding::None,
            key_limits: KeyLimits::default(),
            resend_interval: limits::RESEND_INTERVAL,
            silence_max: limits::SILENCE_MAX,
            idle_life: limits::IDLE_LIFE,
            accepts_without_cookie: limits::ACCEPTS_WITHOUT_COOKIE,
        }
    }
}
