// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of an endpoint that its sessions use: configuration, events, grants, memory.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use smt_carrier::Capabilities;

use crate::config::Config;
use crate::event::{Event, RpcId};
use crate::grant::ndp::trimmed::TrimmedQueue;
use crate::grant::scheduler::{GrantScheduler, Progress};
use crate::limits;
use crate::memory::accounting::MemoryAccount;
use crate::memory::buffer_pool::BufferPool;
use crate::memory::cipher_cache::CipherCache;
use crate::memory::object_pool::ObjectPool;
use crate::memory::small_bodies::{self, SmallBodies};
use crate::message::incoming::Incoming;
use crate::message::outgoing::Outgoing;
use crate::message::transmitting::{SealScratch, Transmitting};
use crate::statistics::Statistics;
use crate::time::Time;

/// The state that all sessions of an endpoint share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) capabilities: Capabilities,
    pub(crate) events: VecDeque<Event>,
    pub(crate) statistics: Statistics,
    pub(crate) grants: GrantScheduler,
    /// Questions for ranges that were trimmed on the way.
    pub(crate) trimmed_queue: TrimmedQueue,
    /// Unscheduled bytes that have come and that the pacer has not been told of yet.
    pub(crate) unscheduled_arrived: u32,
    pub(crate) cipher_cache: CipherCache,
    pub(crate) seal_scratch: SealScratch,
    pub(crate) open_scratch: Vec<u8>,
    pub(crate) record_buffer: Vec<u8>,
    /// Memory of short bodies.
    pub(crate) bodies: SmallBodies,
    /// Buffers of long bodies.
    pub(crate) buffer_pool: BufferPool,
    /// Memory of messages that leave alone.
    pub(crate) transmitting_pool: ObjectPool<Transmitting>,
    /// Memory of incomplete messages.
    pub(crate) memory: MemoryAccount,
    /// Bytes held by reordered packets; they are not in `memory`.
    pub(crate) reordered_memory: usize,
    /// Requests that were taken back since the last look: their callers gave up while they waited
    /// to be handed over.
    pub(crate) taken_back: usize,
    /// New requests are refused: the endpoint shuts down.
    pub(crate) is_draining: bool,
}

impl Shared {
    /// The state of an endpoint without sessions.
    pub(crate) fn new(config: Config) -> Self {
        let buffer_pool = BufferPool::new(limits::BUFFER_POOL_BYTES_MAX.min(config.memory_max / 8));
        Self {
            config,
            capabilities: limits::CAPABILITIES,
            events: VecDeque::new(),
            statistics: Statistics::default(),
            grants: GrantScheduler::default(),
            trimmed_queue: TrimmedQueue::default(),
            unscheduled_arrived: 0,
            cipher_cache: CipherCache::default(),
            seal_scratch: SealScratch::default(),
            open_scratch: Vec::new(),
            record_buffer: Vec::new(),
            bodies: SmallBodies::default(),
            buffer_pool,
            transmitting_pool: ObjectPool::new(limits::TRANSMITTING_KEPT),
            memory: MemoryAccount::default(),
            reordered_memory: 0,
            taken_back: 0,
            is_draining: false,
        }
    }

    /// Takes back the memory of an outgoing message that is over.
    pub(crate) fn give_back(&mut self, outgoing: Option<Outgoing>) {
        if let Some(transmitting) = outgoing.and_then(Outgoing::into_transmitting) {
            self.transmitting_pool.take_back(transmitting);
        }
    }

    /// Removes an incoming message that is over.
    pub(crate) fn forget(&mut self, rpc: RpcId, incoming: &Incoming) {
        self.memory.leave(incoming);
        self.grants.remove(rpc);
    }

    /// Counts `bytes` bytes of a message that have opened.
    pub(crate) fn opened(&mut self, incoming: &mut Incoming, bytes: u32) {
        if self.grants.pulling().is_some() && incoming.is_ungranted() {
            self.came_unscheduled(incoming.unscheduled_arrived(bytes));
        }
    }

    /// Counts `bytes` bytes that have come without a grant, and were not asked for again.
    pub(crate) fn came_unscheduled(&mut self, bytes: u32) {
        if self.grants.pulling().is_some() {
            self.unscheduled_arrived = self.unscheduled_arrived.saturating_add(bytes);
        }
    }

    /// A body of a peer's message as it goes to the application. A short body holds the block or
    /// the bundle that it came in (`small_bodies`), which it shares with bodies that may be gone
    /// long before. Behind a backlog it therefore has memory of its own.
    pub(crate) fn body_to_wait(&self, body: Bytes) -> Bytes {
        let has_backlog = self.memory.has_backlog(self.config.memory_max);
        match has_backlog && body.len() <= small_bodies::SHORT {
            true => Bytes::copy_from_slice(&body),
            false => body,
        }
    }

    /// Tells the grant scheduler of a message of which more has opened, or may be sent: it may want
    /// grants.
    pub(crate) fn seek_grants(&mut self, now: Time, rpc: RpcId, incoming: &Incoming) {
        let progress = Progress {
            length: incoming.length(),
            arrived: incoming.arrived(),
            granted: incoming.allowed(),
        };
        self.grants.update(now, rpc, progress);
    }
}
