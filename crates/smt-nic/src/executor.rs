// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The execution of descriptors: contexts are made and changed, segments are read, protected, cut
//! and sent.
//!
//! A payload is read once, and what was read is protected and sent: a host that changes its memory
//! meanwhile changes nothing.

use alloc::vec::Vec;

use crate::completion::{Completion, Status};
use crate::context_memory::{ContextMemory, NotAdded};
use crate::counters::Counters;
use crate::descriptor::{BadDescriptor, ContextId, Descriptor, SegmentWork, Work};
use crate::engine::{CONTEXT_BLOCK_BYTES, ContextBlock, Engine, EngineError, Protected};
use crate::headers::Headers;
use crate::host_memory::{DmaFault, HostMemory};
use crate::nic::NicConfig;
use crate::segmentation::{self, Cut, HEADER_MAX, PACKET_MAX, SEGMENT_MAX, Segment};

/// Executes descriptors, of whichever queue.
#[derive(Clone, Debug)]
pub(crate) struct Executor<E: Engine> {
    config: NicConfig,
    engine: E,
    pub(crate) contexts: ContextMemory<E::Context>,
    pub(crate) counters: Counters,
    /// Where a segment's payload is while it is protected and cut.
    payload: Vec<u8>,
    /// Where a packet is made.
    packet: Vec<u8>,
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
        Completion {
            status: self.status,
            queue,
            packets: self.packets,
            cookie: self.cookie,
        }
    }
}

/// Host memory whose accesses are counted.
pub(crate) struct Counted<'a, M> {
    memory: &'a mut M,
    counters: &'a mut Counters,
}

impl<M: HostMemory> HostMemory for Counted<'_, M> {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        self.counters.dma_read_bytes += into.len() as u64;
        self.memory.read(at, into)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.counters.dma_written_bytes += bytes.len() as u64;
        self.memory.write(at, bytes)
    }
}

impl<E: Engine> Executor<E> {
    pub(crate) fn new(config: NicConfig, engine: E) -> Self {
        Self {
            contexts: ContextMemory::new(config.contexts),
            config,
            engine,
            counters: Counters::default(),
            payload: Vec::with_capacity(SEGMENT_MAX),
            packet: Vec::with_capacity(PACKET_MAX),
        }
    }

    pub(crate) fn counted<'a, M>(&'a mut self, memory: &'a mut M) -> Counted<'a, M> {
        Counted {
            memory,
            counters: &mut self.counters,
        }
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
        Outcome {
            cookie,
            status,
            packets,
        }
    }

    fn work<M: HostMemory>(
        &mut self,
        work: Work,
        memory: &mut M,
        wire: &mut impl FnMut(&[u8]),
    ) -> Result<u32, Status> {
        match work {
            Work::Segment(work) => return self.send(&work, memory, wire),
            Work::Create { context, block } => self.create(context, block, memory)?,
            Work::Resync { context, number } => self.resync(context, number)?,
            Work::Destroy { context } if self.contexts.remove(context) => {}
            Work::Destroy { .. } => return Err(Status::UnknownContext),
            // A queue executes in order: all before it have completed.
            Work::Fence => {}
        }
        Ok(0)
    }

    fn create<M: HostMemory>(
        &mut self,
        id: ContextId,
        address: u64,
        memory: &mut M,
    ) -> Result<(), Status> {
        let mut block = ContextBlock([0; CONTEXT_BLOCK_BYTES]);
        let read = self.counted(memory).read(address, &mut block.0);
        read.map_err(|_| Status::DmaFault)?;
        let context = self
            .engine
            .create(&block)
            .map_err(|_| Status::BadContextBlock)?;
        self.contexts.add(id, context).map_err(|why| match why {
            NotAdded::Exists => Status::UnknownContext,
            NotAdded::NoRoom => Status::NoRoom,
        })?;
        self.counters.contexts_created += 1;
        Ok(())
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
        let mut counted = Counted {
            memory,
            counters: &mut self.counters,
        };
        let read = counted
            .read(work.header, header)
            .and_then(|()| counted.read(work.payload, &mut self.payload));
        read.map_err(|_| Status::DmaFault)?;
        let how = self.cut_of(work, header).ok_or(Status::BadHeaders)?;
        if let Some(context) = work.context {
            self.protect(context)?;
        }
        let counters = &mut self.counters;
        let segment = Segment {
            header,
            payload: &self.payload,
        };
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
        let is_good = headers.payload_at == header.len() && header.len() + stride <= PACKET_MAX;
        is_good.then_some(Cut {
            headers,
            stride: work.stride.into(),
            checksums: work.checksums,
            counts_smt_sequence: self.config.counts_smt_sequence,
        })
    }

    fn protect(&mut self, id: ContextId) -> Result<(), Status> {
        let context = self.contexts.get_mut(id, &mut self.counters);
        let context = context.ok_or(Status::UnknownContext)?;
        let protected = self.engine.protect(context, &mut self.payload);
        let Protected { records, bytes } = protected.map_err(|why| match why {
            EngineError::BadPayload => Status::BadPayload,
            EngineError::NumbersUsedUp => Status::NumbersUsedUp,
        })?;
        self.counters.records_sealed += records;
        self.counters.sealed_bytes += bytes;
        Ok(())
    }
}
