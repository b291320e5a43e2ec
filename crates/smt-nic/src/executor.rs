// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The execution of descriptors: contexts are made and changed, segments are read, protected, cut
//! and sent.
//!
//! 1. A payload is read once, and what was read is protected and sent: a host that changes its
//!    memory meanwhile changes nothing.
//! 2. A context whose segment could not be sent is erased if the host counts its numbers too. The
//!    host has counted the segment's records, the device has not, and segments behind it would be
//!    sealed under their numbers. A context that numbers packets ([`Stage::Packet`]) stays: the
//!    device alone counts, and what was refused has no number.

use alloc::vec::Vec;

use crate::completion::{Completion, Status};
use crate::context_memory::{ContextMemory, NotAdded};
use crate::counters::Counters;
use crate::descriptor::{BadDescriptor, ContextId, Descriptor, SegmentWork, Work};
use crate::engine::{
    CONTEXT_BLOCK_BYTES, ContextBlock, Engine, EngineError, PlannedPackets, Stage,
};
use crate::headers::{Headers, Transport};
use crate::host_memory::{CountedMemory, HostMemory};
use crate::nic::NicConfig;
use crate::receive::contexts::ReceiveContexts;
use crate::segmentation::{self, Cut, HEADER_MAX, PACKET_MAX, SEGMENT_MAX, Segment};
use crate::tls::receive::ReceiveContext;

/// Executes descriptors, of whichever queue.
#[derive(Clone, Debug)]
pub(crate) struct Executor<E: Engine> {
    config: NicConfig,
    engine: E,
    pub(crate) contexts: ContextMemory<E::Context>,
    pub(crate) receive_contexts: ReceiveContexts,
    pub(crate) counters: Counters,
    /// Where a segment's payload is while it is protected and cut.
    payload: Vec<u8>,
    /// Where a packet is made.
    packet: Vec<u8>,
    /// Where it is sealed, if that comes after the cut.
    sealed: Vec<u8>,
}

/// How a descriptor has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    cookie: u64,
    status: Status,
    packets: u32,
}

impl Outcome {
    /// The completion of a descriptor of this queue.
    pub(crate) fn completion(self, queue: u16) -> Completion {
        Completion { status: self.status, queue, packets: self.packets, cookie: self.cookie }
    }
}

impl<E: Engine> Executor<E> {
    pub(crate) fn new(config: NicConfig, engine: E) -> Self {
        Self {
            contexts: ContextMemory::new(config.contexts),
            receive_contexts: ReceiveContexts::new(config.receive.contexts_max),
            config,
            engine,
            counters: Counters::default(),
            payload: Vec::with_capacity(SEGMENT_MAX),
            packet: Vec::with_capacity(PACKET_MAX),
            sealed: Vec::new(),
        }
    }

    pub(crate) fn counted<'a, M>(&'a mut self, memory: &'a mut M) -> CountedMemory<'a, M> {
        CountedMemory { memory, counters: &mut self.counters }
    }

    /// Executes a descriptor as it was parsed. Packets go to `wire`.
    pub(crate) fn execute<M: HostMemory>(
        &mut self,
        descriptor: Result<Descriptor, BadDescriptor>,
        memory: &mut M,
        wire: &mut impl FnMut(&[u8]),
    ) -> Outcome {
        let (cookie, done) = match descriptor {
            Err(bad) => (bad.cookie, Err(Status::BadDescriptor)),
            Ok(Descriptor { work, cookie }) => (cookie, self.work(work, memory, wire)),
        };
        self.counters.errors += u64::from(done.is_err());
        let (status, packets) = match done {
            Ok(packets) => (Status::Done, packets),
            Err(status) => (status, 0),
        };
        Outcome { cookie, status, packets }
    }

    fn work<M: HostMemory>(
        &mut self,
        work: Work,
        memory: &mut M,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<u32, Status> {
        match work {
            Work::Segment(work) => {
                let sent = self.send(&work, memory, wire);
                if let (Err(_), Some(context)) = (sent, work.context) {
                    self.erase(context);
                }
                return sent;
            }
            Work::Create { context, block } => self.create(context, block, memory)?,
            Work::Resync { context, number } => self.resync(context, number)?,
            Work::Destroy { context } if self.contexts.remove(context) => {}
            Work::Destroy { .. } => return Err(Status::UnknownContext),
            // A queue executes in order: all before it have completed.
            Work::Fence => {}
            Work::CreateReceive { context, block } => {
                self.create_receive(context, block, memory)?;
            }
            Work::DestroyReceive { context } if self.receive_contexts.remove(context) => {}
            Work::DestroyReceive { .. } => return Err(Status::UnknownContext),
        }
        Ok(0)
    }

    fn create<M: HostMemory>(
        &mut self,
        id: ContextId,
        address: u64,
        memory: &mut M,
    ) -> Result<(), Status> {
        let block = self.read_block(address, memory)?;
        let context = self.engine.create(&block).map_err(|_| Status::BadContextBlock)?;
        let added = self.contexts.add(id, context);
        self.counters.contexts_refused += u64::from(added == Err(NotAdded::NoRoom));
        added.map_err(not_added)?;
        self.counters.contexts_created += 1;
        Ok(())
    }

    fn create_receive<M: HostMemory>(
        &mut self,
        id: ContextId,
        address: u64,
        memory: &mut M,
    ) -> Result<(), Status> {
        let block = self.read_block(address, memory)?;
        let context = ReceiveContext::create(&block).map_err(|_| Status::BadContextBlock)?;
        self.receive_contexts.add(id, context).map_err(not_added)?;
        self.counters.receive_contexts_created += 1;
        Ok(())
    }

    fn read_block<M: HostMemory>(
        &mut self,
        address: u64,
        memory: &mut M,
    ) -> Result<ContextBlock, Status> {
        let mut block = ContextBlock([0; CONTEXT_BLOCK_BYTES]);
        let read = self.counted(memory).read(address, &mut block.0);
        read.map_err(|_| Status::DmaFault)?;
        Ok(block)
    }

    fn resync(&mut self, id: ContextId, number: u64) -> Result<(), Status> {
        let context = self.contexts.get_mut(id, &mut self.counters);
        let context = context.ok_or(Status::UnknownContext)?;
        self.engine.resync(context, number);
        self.counters.resyncs += 1;
        Ok(())
    }

    fn send<M: HostMemory>(
        &mut self,
        work: &SegmentWork,
        memory: &mut M,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<u32, Status> {
        let mut header = [0; HEADER_MAX];
        let header = &mut header[..work.header_bytes.into()];
        self.payload.clear();
        self.payload.resize(work.payload_bytes as usize, 0);
        let mut counted = CountedMemory { memory, counters: &mut self.counters };
        let read = counted
            .read(work.header, header)
            .and_then(|()| counted.read(work.payload, &mut self.payload));
        read.map_err(|_| Status::DmaFault)?;
        let how = self.cut_of(work, header).ok_or(Status::BadHeaders)?;
        if let Some(context) = work.context
            && self.protect(context, header, &how)? == Stage::Packet
        {
            return self.cut_and_transform(context, header, &how, wire);
        }
        let counters = &mut self.counters;
        let segment = Segment { header, payload: &self.payload };
        let packets = segmentation::cut(segment, &how, &mut self.packet, &mut |packet| {
            counters.packets += 1;
            counters.packet_bytes += packet.len() as u64;
            wire(packet);
        });
        counters.segments += 1;
        Ok(packets)
    }

    /// How a segment is cut, if its headers are of a protocol that the device knows, end where the
    /// payload begins, and leave room for a stride.
    fn cut_of(&self, work: &SegmentWork, header: &[u8]) -> Option<Cut> {
        let headers = Headers::parse(header, self.config.smt_protocol)?;
        let stride = match work.stride {
            0 => self.payload.len(),
            stride => self.payload.len().min(stride.into()),
        };
        // Behind a header of ESP are sealed bytes, which nobody can cut.
        let is_whole = headers.transport != Transport::Esp || stride == self.payload.len();
        let is_good =
            headers.payload_at == header.len() && header.len() + stride <= PACKET_MAX && is_whole;
        is_good.then_some(Cut {
            headers,
            stride: work.stride.into(),
            checksums: work.checksums,
            counts_smt_sequence: self.config.counts_smt_sequence,
        })
    }

    /// Does what comes before the cut: protects the segment, or asks whether its packets may be.
    fn protect(&mut self, id: ContextId, header: &[u8], how: &Cut) -> Result<Stage, Status> {
        let context = self.contexts.get_mut(id, &mut self.counters);
        let context = context.ok_or(Status::UnknownContext)?;
        let stage = self.engine.stage(context);
        if stage == Stage::Packet {
            let (packets, longest) = how.packets(self.payload.len());
            let planned = PlannedPackets { header, packets, longest };
            let permitted = self.engine.permits(context, &how.headers, planned);
            permitted.map_err(Status::of)?;
        }
        let protected = self.engine.protect(context, &mut self.payload);
        self.counters.count(protected.map_err(Status::of)?);
        Ok(stage)
    }

    /// Cuts a segment whose packets the engine has permitted, and seals each.
    fn cut_and_transform(
        &mut self,
        id: ContextId,
        header: &[u8],
        how: &Cut,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<u32, Status> {
        let context = self.contexts.peek_mut(id).ok_or(Status::UnknownContext)?;
        let (engine, counters, sealed) = (&self.engine, &mut self.counters, &mut self.sealed);
        let segment = Segment { header, payload: &self.payload };
        let mut transformed = Ok(0);
        segmentation::cut(segment, how, &mut self.packet, &mut |packet| {
            let Ok(packets) = transformed else {
                return;
            };
            sealed.clear();
            sealed.extend_from_slice(packet);
            transformed = engine.transform(context, &how.headers, sealed).map(|work| {
                counters.count(work);
                counters.packets += 1;
                counters.packet_bytes += sealed.len() as u64;
                wire(sealed);
                packets + 1
            });
        });
        self.counters.segments += 1;
        transformed.map_err(Status::of)
    }

    /// Erases a context whose numbers the host counts too.
    fn erase(&mut self, id: ContextId) {
        let context = self.contexts.peek(id);
        if context.is_some_and(|of| self.engine.stage(of) == Stage::Segment) {
            self.contexts.remove(id);
        }
    }
}

impl Status {
    fn of(why: EngineError) -> Self {
        match why {
            EngineError::BadPayload => Self::BadPayload,
            EngineError::NumbersUsedUp => Self::NumbersUsedUp,
        }
    }
}

fn not_added(why: NotAdded) -> Status {
    match why {
        NotAdded::Exists => Status::UnknownContext,
        NotAdded::NoRoom => Status::NoRoom,
    }
}
