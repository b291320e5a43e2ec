// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The driver: batches become descriptors, and completions decide what leaves again.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::{Batch, SendError};
use smt_nic::completion::{Completion, Status};
use smt_nic::descriptor::ContextId;
use smt_nic::engine::{CONTEXT_BLOCK_BYTES, Engine};
use smt_nic::receive::UnwrappedBy;
use smt_nic::{Nic, QueueError, Step, tls};
use zeroize::Zeroizing;

use crate::arrived_packet::{ArrivedPacket, OpenedPacket};
use crate::config::{DriverConfig, PRIORITIES};
use crate::flow_contexts::{ContextBounds, Preparation, RecordRun};
use crate::host_regions::HostRegions;
use crate::ip_packet::OutgoingAddresses;
use crate::keys::{KeyChanges, NicKeys};
use crate::psp_sending::{PspSending, Refusal};
use crate::receive_contexts::{ReceiveChange, ReceiveContextNames};
use crate::receive_ring::{Reaped, ReceiveRing};
use crate::segment::Segment;
use crate::statistics::DriverStatistics;
use crate::transmit_ring::{Posted, TransmitRing};

/// The driver of one device.
///
/// 1. [`Driver::post`] takes a batch and writes descriptors.
/// 2. The caller turns the device, queue by queue, in any order ([`Driver::step`]).
/// 3. [`Driver::reap`] reads completions, and posts again what failed.
#[derive(Debug)]
pub struct Driver {
    pub(crate) config: DriverConfig,
    keys: Arc<NicKeys>,
    pub(crate) psp: PspSending,
    pub(crate) memory: HostRegions,
    pub(crate) rings: Vec<TransmitRing>,
    receive_rings: Vec<ReceiveRing>,
    receive_contexts: ReceiveContextNames,
    /// The name of the last context since the device's reset.
    pub(crate) named: u32,
    pub(crate) statistics: DriverStatistics,
}

impl Driver {
    /// A driver that knows no device yet; see [`Self::attach`].
    #[must_use]
    pub fn new(config: DriverConfig, keys: Arc<NicKeys>) -> Self {
        let mut memory = HostRegions::default();
        let entries = config.ring_entries.max(RING_ENTRIES_MIN);
        let ring = |_| TransmitRing::new(entries, &mut memory);
        let count = config.classes() * config.queues_of_class();
        let rings = (0..count).map(ring).collect();
        let receive_ring = |_| ReceiveRing::new(config.receive_buffers, &mut memory);
        Self {
            rings,
            receive_rings: (0..config.receive_queues).map(receive_ring).collect(),
            receive_contexts: ReceiveContextNames::default(),
            memory,
            psp: PspSending::new(&config),
            config,
            keys,
            named: 0,
            statistics: DriverStatistics::default(),
        }
    }

    /// Gives a device that has no queues yet the driver's queues.
    pub fn attach<E: Engine>(&self, nic: &mut Nic<E>) {
        for (number, ring) in self.rings.iter().enumerate() {
            let [descriptors, completions] = ring.rings();
            nic.add_queue_of_class(self.class_of(number), descriptors, completions);
        }
        for ring in &self.receive_rings {
            let [buffers, completions] = ring.rings();
            let queue = nic.add_receive_queue(buffers, completions);
            let (posted, read) = ring.registers();
            nic.host_has_posted(queue, posted, read);
        }
    }

    /// Gives the device a packet from the wire, from its IP header on.
    pub fn receive<E: Engine>(&mut self, nic: &mut Nic<E>, packet: &[u8]) {
        nic.receive(packet, &mut self.memory);
    }

    /// Hands over the packets that have arrived in all queues, merged ones among them, and posts
    /// their buffers again. A device that is not trusted is not believed to have opened anything.
    pub fn take_arrivals<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        sink: &mut dyn FnMut(ArrivedPacket<'_>),
    ) {
        for (queue, ring) in (0..).zip(&mut self.receive_rings) {
            nic.flush(queue, &mut self.memory);
            while let Some(reaped) = ring.reap(&mut self.memory) {
                let Reaped { bytes, records, association } = reaped;
                let opened = match records {
                    None => None,
                    Some(places) => {
                        let key = self.receive_contexts.key(places.context);
                        let Some(key) = key.filter(|_| self.config.is_trusted) else {
                            self.statistics.opened_without_key += 1;
                            continue;
                        };
                        Some(OpenedPacket::new(key, places))
                    }
                };
                let spi = match association {
                    Some(UnwrappedBy::Psp(spi)) if self.psp.is_on() => Some(spi),
                    _ => None,
                };
                sink(ArrivedPacket { bytes, opened, spi });
            }
            let (posted, read) = ring.registers();
            nic.host_has_posted(queue, posted, read);
        }
    }

    /// Tells the device of keys that were installed and removed, as all other calls do that write
    /// descriptors. A carrier that has nothing to send calls it before packets arrive: a session
    /// that rests has taken its key back, and the device opens nothing more for it.
    ///
    /// While segments are under way or wait nothing is done, for what sends them tells the device
    /// too. No packet leaves. A device that does not go on is reset.
    pub fn follow_keys<E: Engine>(&mut self, nic: &mut Nic<E>) {
        self.refill_associations(nic);
        let has_changes = self.keys.has_changes() || self.psp.has_changes() || !self.is_idle();
        if !has_changes || self.rings.iter().any(TransmitRing::has_segments) {
            return;
        }
        self.reap(nic);
        if self.run(nic, &mut |_| {}).is_err() {
            self.reset(nic);
        }
    }

    /// Takes a batch for the path between these ends.
    ///
    /// # Errors
    /// [`SendError::WouldBlock`]: too much waits for the device; nothing was taken.
    /// [`SendError::Unreachable`]: the ends are of two IP versions.
    /// [`SendError::TooLarge`]: a datagram that the device cannot send.
    pub fn post<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        batch: &Batch<'_>,
        addresses: OutgoingAddresses,
    ) -> Result<(), SendError> {
        let waiting: usize = self.rings.iter().map(|ring| ring.waiting.len()).sum();
        if waiting > self.config.waiting_max {
            return Err(SendError::WouldBlock { bytes_sent: 0 });
        }
        let front = addresses.headers(self.config.protocol, batch.priority);
        let front = front.ok_or(SendError::Unreachable)?;
        let segments = Segment::of_batch(batch, &front).ok_or(SendError::TooLarge)?;
        for segment in segments {
            let queue = self.queue_of(&segment, batch.priority);
            self.rings[queue].waiting.push_back(segment);
        }
        self.fill(nic);
        Ok(())
    }

    /// Takes one step of one of the device's queues. Packets go to `wire`, from their IP header on.
    ///
    /// # Errors
    /// As [`Nic::step`].
    pub fn step<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        queue: u16,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<Step, QueueError> {
        nic.step(queue, &mut self.memory, wire)
    }

    /// Reads the completions of all queues, posts again what failed, and writes what waits.
    pub fn reap<E: Engine>(&mut self, nic: &mut Nic<E>) {
        for queue in 0..self.rings.len() {
            while let Some((posted, completion)) = self.rings[queue].reap(&mut self.memory) {
                self.take_completion(queue, posted, completion);
            }
        }
        self.fill(nic);
    }

    /// Turns the device until all that was posted has left, what is urgent first
    /// ([`Nic::next_queue`]).
    ///
    /// # Errors
    /// A queue of the device stands ([`Nic::step`]); [`Self::reset`] begins anew.
    pub fn run<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<(), QueueError> {
        loop {
            while let Some(queue) = nic.next_queue() {
                self.step(nic, queue, wire)?;
            }
            self.reap(nic);
            if self.is_idle() {
                return Ok(());
            }
        }
    }

    /// Resets the device. Segments that were under way are lost, those that wait are not; packets
    /// that have arrived and were not taken are lost too.
    pub fn reset<E: Engine>(&mut self, nic: &mut Nic<E>) {
        nic.reset();
        self.named = 0;
        self.receive_contexts.clear();
        self.psp.contexts.clear();
        // Keys that were removed went with the contexts.
        self.keys.reinstall_receiving();
        for ring in &mut self.rings {
            self.statistics.lost += ring.reset(&mut self.memory);
        }
        for ring in &mut self.receive_rings {
            ring.reset(&mut self.memory);
        }
        self.attach(nic);
        self.fill(nic);
    }

    /// The number of transmit queues of all classes.
    #[must_use]
    pub fn queues(&self) -> u16 {
        self.rings.len() as u16
    }

    /// Whether nothing is under way and nothing waits.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.receive_contexts.waiting.is_empty() && self.rings.iter().all(TransmitRing::is_idle)
    }

    /// The work that was done so far.
    #[must_use]
    pub fn statistics(&self) -> &DriverStatistics {
        &self.statistics
    }

    /// All segments of a message have one queue of their class (SMT paper §4.4.2). A message whose
    /// priority changes takes another queue, with a context of its own there.
    fn queue_of(&self, segment: &Segment, priority: u8) -> usize {
        let queues = self.config.queues_of_class();
        let classes = self.rings.len() / queues;
        let priority = usize::from(priority.min(PRIORITIES - 1));
        let class = priority * classes / usize::from(PRIORITIES);
        // The low bit of an id tells its side, and ids count by two.
        class * queues + ((segment.flow >> 1) % queues as u64) as usize
    }

    /// The class of a transmit queue.
    pub(crate) fn class_of(&self, queue: usize) -> u8 {
        (queue / self.config.queues_of_class()) as u8
    }

    fn bounds(&self) -> ContextBounds {
        ContextBounds {
            per_flow: self.config.contexts_per_flow.max(1),
            per_queue: self.config.contexts_per_queue,
        }
    }

    /// Writes what waits into the rings, as far as there is room, and rings the doorbells.
    fn fill<E: Engine>(&mut self, nic: &mut Nic<E>) {
        let KeyChanges { removed, installed } = self.keys.take_changes();
        for key in removed {
            for ring in &mut self.rings {
                let contexts = ring.contexts.remove_key(key);
                ring.to_destroy.extend(contexts);
            }
            self.receive_contexts.remove(key);
        }
        for key in installed {
            let contexts_max = self.config.receive_contexts;
            let has_room = self.config.is_trusted && self.receive_contexts.add(key, contexts_max);
            self.statistics.receive_contexts_refused += u64::from(!has_room);
        }
        self.tell_receive_contexts();
        self.leave_removed_associations();
        self.refill_associations(nic);
        for queue in 0..self.rings.len() {
            self.fill_ring(queue);
            let (written, read) = self.rings[queue].registers();
            nic.host_has_read(queue as u16, read);
            nic.host_has_written(queue as u16, written);
        }
    }

    /// Writes changes of receive contexts into the first ring: the device executes them in order.
    fn tell_receive_contexts(&mut self) {
        let ring = &mut self.rings[0];
        while ring.has_room(1)
            && let Some(change) = self.receive_contexts.waiting.pop_front()
        {
            match change {
                ReceiveChange::Create(context, key) => {
                    let Some(key) = self.keys.receiving(key) else {
                        // The key was removed meanwhile, which will be told next.
                        self.receive_contexts.forget(context);
                        continue;
                    };
                    ring.post_create_receive(&mut self.memory, context, &key.block());
                    self.statistics.receive_contexts_created += 1;
                }
                ReceiveChange::Destroy(context) => {
                    ring.post_destroy_receive(&mut self.memory, context);
                }
            }
        }
    }

    fn fill_ring(&mut self, queue: usize) {
        while self.rings[queue].has_room(1)
            && let Some(context) = self.rings[queue].to_destroy.pop()
        {
            self.rings[queue].post_destroy(&mut self.memory, context);
        }
        while self.rings[queue].has_room(DESCRIPTORS_A_SEGMENT)
            && let Some(segment) = self.rings[queue].waiting.pop_front()
        {
            self.post_segment(queue, segment);
        }
    }

    fn post_segment(&mut self, queue: usize, mut segment: Segment) {
        if let Some(association) = segment.association {
            return self.post_under_association(queue, segment, association);
        }
        let is_worth_it = segment.payload_bytes() >= self.config.offload_bytes_min;
        let run = segment.run().filter(|_| is_worth_it);
        let context = run.and_then(|run| self.prepare_context(queue, run));
        if context.is_none() {
            let Some(records) = segment.seal(&self.keys) else {
                self.statistics.lost += 1;
                return;
            };
            self.statistics.records_in_software += records;
        }
        self.statistics.segments += 1;
        self.statistics.segments_offloaded += u64::from(context.is_some());
        self.rings[queue].post_segment(&mut self.memory, segment, context);
    }

    /// The context that seals a run, at the run's first number. `None`: seal in software.
    fn prepare_context(&mut self, queue: usize, run: RecordRun) -> Option<ContextId> {
        let key = self.keys.get(run.key)?;
        let bounds = self.bounds();
        // No name is given twice: a segment for a new context would be sealed with the key of the
        // context that still has the name.
        let fresh = ContextId(self.named.checked_add(1)?);
        let (ring, memory) = (&mut self.rings[queue], &mut self.memory);
        match ring.contexts.choose(run, bounds, fresh)? {
            Preparation::Ready(id) => Some(id),
            Preparation::Resync(id) => {
                ring.post_resync(memory, id, run.first);
                self.statistics.resyncs += 1;
                Some(id)
            }
            Preparation::Create(id, evicted) => {
                self.named = id.0;
                if let Some(evicted) = evicted {
                    ring.post_destroy(memory, evicted);
                    self.statistics.contexts_evicted += 1;
                }
                let mut block = Zeroizing::new([0; CONTEXT_BLOCK_BYTES]);
                block[0] = tls::ENGINE;
                block[2..4].copy_from_slice(&key.suite.code().to_be_bytes());
                block[4..4 + key.key.len()].copy_from_slice(&key.key);
                block[36..48].copy_from_slice(&key.iv[..]);
                block[48..56].copy_from_slice(&run.first.to_be_bytes());
                ring.post_create(memory, id, None, &block);
                self.statistics.contexts_created += 1;
                Some(id)
            }
        }
    }

    fn take_completion(&mut self, queue: usize, posted: Posted, completion: Completion) {
        let is_done = completion.status == Status::Done;
        if let Posted::Create { context, association: Some(association), .. } = posted {
            return self.take_psp_creation(association, context, is_done);
        }
        if is_done {
            return;
        }
        let bounds = self.bounds();
        let ring = &mut self.rings[queue];
        match posted {
            Posted::Segment { mut segment, context: Some(context), .. } => {
                if let Some(association) = segment.association {
                    let status = completion.status;
                    let refusal = Refusal { association, context, status };
                    return self.take_refused_packets(queue, segment, refusal);
                }
                // The device has destroyed the context, and sent nothing.
                ring.contexts.forget(context);
                match segment.seal(&self.keys) {
                    Some(records) => {
                        self.statistics.records_in_software += records;
                        self.statistics.repeated += 1;
                        ring.waiting.push_back(segment);
                    }
                    None => self.statistics.lost += 1,
                }
            }
            Posted::Segment { .. } => self.statistics.lost += 1,
            Posted::Create { context, .. } => {
                ring.contexts.forget(context);
                ring.contexts.device_is_full(bounds);
            }
            Posted::Resync { context } => ring.contexts.forget(context),
            Posted::CreateReceive { context, .. } => {
                self.receive_contexts.forget(context);
                self.statistics.receive_contexts_refused += 1;
            }
            Posted::Destroy | Posted::DestroyReceive => {}
        }
    }
}

/// The two ends as addresses of a packet; the own one from the batch's path, or else `local`.
pub(crate) fn addresses_of(batch: &Batch<'_>, local: SocketAddr) -> OutgoingAddresses {
    let own = batch.path.local.unwrap_or_else(|| local.ip());
    OutgoingAddresses { source: SocketAddr::new(own, local.port()), destination: batch.path.remote }
}

/// Descriptors that a segment takes at most: an evicted context's, its own context's, and its own.
const DESCRIPTORS_A_SEGMENT: usize = 3;
/// Entries of the smallest ring.
const RING_ENTRIES_MIN: u32 = 8;
