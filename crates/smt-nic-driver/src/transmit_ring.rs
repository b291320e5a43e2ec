// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One transmit queue as the driver sees it: descriptors that it writes, completions that it reads,
//! and the memory of what is under way.

use std::collections::VecDeque;

use smt_carrier::AssociationHandle;
use smt_nic::Ring;
use smt_nic::completion::{COMPLETION_BYTES, Completion, Owner};
use smt_nic::descriptor::{ContextId, DESCRIPTOR_BYTES, Descriptor, SegmentWork, Work};
use smt_nic::engine::CONTEXT_BLOCK_BYTES;
use zeroize::Zeroize;

use crate::flow_contexts::FlowContexts;
use crate::host_regions::{HostRegions, Region};
use crate::segment::Segment;

/// One transmit queue.
#[derive(Debug)]
pub(crate) struct TransmitRing {
    descriptors: Region,
    completions: Region,
    entries: u32,
    /// Descriptors written, and completions read, in all.
    written: u64,
    read: u64,
    under_way: VecDeque<Posted>,
    /// Empty regions.
    free_segments: Vec<Region>,
    free_blocks: Vec<Region>,
    pub(crate) contexts: FlowContexts,
    /// Segments that wait for room in the ring.
    pub(crate) waiting: VecDeque<Segment>,
    /// Contexts that are to be destroyed, before any segment that waits.
    pub(crate) to_destroy: Vec<ContextId>,
}

/// A descriptor that is under way.
#[derive(Debug)]
pub(crate) enum Posted {
    /// A segment, whose bytes are in memory that the device reads.
    Segment {
        segment: Segment,
        memory: Region,
        context: Option<ContextId>,
    },
    Create {
        context: ContextId,
        block: Region,
        /// The association that it is for, if it is a context of PSP.
        association: Option<AssociationHandle>,
    },
    Resync {
        context: ContextId,
    },
    Destroy,
    CreateReceive {
        context: ContextId,
        block: Region,
    },
    DestroyReceive,
}

impl TransmitRing {
    pub(crate) fn new(entries: u32, memory: &mut HostRegions) -> Self {
        Self {
            descriptors: memory.add(entries as usize * DESCRIPTOR_BYTES),
            completions: memory.add(entries as usize * COMPLETION_BYTES),
            entries,
            written: 0,
            read: 0,
            under_way: VecDeque::new(),
            free_segments: Vec::new(),
            free_blocks: Vec::new(),
            contexts: FlowContexts::default(),
            waiting: VecDeque::new(),
            to_destroy: Vec::new(),
        }
    }

    /// The two rings, as the device is told them.
    pub(crate) fn rings(&self) -> [Ring; 2] {
        [self.descriptors, self.completions]
            .map(|region| Ring { address: region.address(), entries: self.entries })
    }

    /// The values of the two registers: descriptors written, and completions read.
    pub(crate) fn registers(&self) -> (u64, u64) {
        (self.written, self.read)
    }

    /// Whether this many more descriptors fit.
    pub(crate) fn has_room(&self, descriptors: usize) -> bool {
        self.under_way.len() + descriptors <= self.entries as usize
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty() && self.to_destroy.is_empty()
    }

    /// Whether a segment is under way or waits.
    pub(crate) fn has_segments(&self) -> bool {
        let is_segment = |posted| matches!(posted, &Posted::Segment { .. });
        !self.waiting.is_empty() || self.under_way.iter().any(is_segment)
    }

    pub(crate) fn post_segment(
        &mut self,
        memory: &mut HostRegions,
        mut segment: Segment,
        context: Option<ContextId>,
    ) {
        let region = self.free_segments.pop();
        let region = region.unwrap_or_else(|| memory.add(0));
        let work = Work::Segment(SegmentWork {
            context,
            checksums: false,
            header_bytes: segment.header_bytes as u16,
            stride: segment.stride,
            payload_bytes: segment.payload_bytes() as u32,
            header: region.address(),
            payload: region.address() + segment.header_bytes as u64,
        });
        memory.swap(region, &mut segment.bytes);
        let posted = Posted::Segment { segment, memory: region, context };
        self.post(memory, work, posted);
    }

    pub(crate) fn post_create(
        &mut self,
        memory: &mut HostRegions,
        context: ContextId,
        association: Option<AssociationHandle>,
        block: &[u8; CONTEXT_BLOCK_BYTES],
    ) {
        let block = self.block(memory, block);
        let work = Work::Create { context, block: block.address() };
        let posted = Posted::Create { context, block, association };
        self.post(memory, work, posted);
    }

    pub(crate) fn post_create_receive(
        &mut self,
        memory: &mut HostRegions,
        context: ContextId,
        block: &[u8; CONTEXT_BLOCK_BYTES],
    ) {
        let block = self.block(memory, block);
        let work = Work::CreateReceive { context, block: block.address() };
        self.post(memory, work, Posted::CreateReceive { context, block });
    }

    pub(crate) fn post_destroy_receive(&mut self, memory: &mut HostRegions, context: ContextId) {
        let work = Work::DestroyReceive { context };
        self.post(memory, work, Posted::DestroyReceive);
    }

    /// A context block in memory that the device reads.
    fn block(&mut self, memory: &mut HostRegions, block: &[u8; CONTEXT_BLOCK_BYTES]) -> Region {
        let region = self.free_blocks.pop();
        let region = region.unwrap_or_else(|| memory.add(CONTEXT_BLOCK_BYTES));
        memory.bytes_mut(region).copy_from_slice(block);
        region
    }

    pub(crate) fn post_resync(
        &mut self,
        memory: &mut HostRegions,
        context: ContextId,
        number: u64,
    ) {
        let work = Work::Resync { context, number };
        self.post(memory, work, Posted::Resync { context });
    }

    pub(crate) fn post_destroy(&mut self, memory: &mut HostRegions, context: ContextId) {
        self.post(memory, Work::Destroy { context }, Posted::Destroy);
    }

    fn post(&mut self, memory: &mut HostRegions, work: Work, posted: Posted) {
        let cookie = self.written;
        let at = (self.written % u64::from(self.entries)) as usize * DESCRIPTOR_BYTES;
        let bytes = Descriptor { work, cookie }.to_bytes();
        memory.bytes_mut(self.descriptors)[at..at + DESCRIPTOR_BYTES].copy_from_slice(&bytes);
        self.written += 1;
        self.under_way.push_back(posted);
    }

    /// The next descriptor that the device has answered, with its completion. Its memory is free
    /// again.
    pub(crate) fn reap(&mut self, memory: &mut HostRegions) -> Option<(Posted, Completion)> {
        let at = (self.read % u64::from(self.entries)) as usize * COMPLETION_BYTES;
        let bytes = memory.bytes(self.completions).get(at..)?;
        let bytes = bytes.first_chunk::<COMPLETION_BYTES>()?;
        let completion = Completion::parse(bytes, Owner::of_entry(self.read, self.entries))?;
        let mut posted = self.under_way.pop_front()?;
        self.read += 1;
        self.free(memory, &mut posted);
        Some((posted, completion))
    }

    fn free(&mut self, memory: &mut HostRegions, posted: &mut Posted) {
        match posted {
            Posted::Segment { segment, memory: region, .. } => {
                memory.swap(*region, &mut segment.bytes);
                self.free_segments.push(*region);
            }
            Posted::Create { block, .. } | Posted::CreateReceive { block, .. } => {
                // The block has a key.
                memory.bytes_mut(*block).zeroize();
                self.free_blocks.push(*block);
            }
            Posted::Resync { .. } | Posted::Destroy | Posted::DestroyReceive => {}
        }
    }

    /// Begins anew after a reset of the device. Returns how many segments were under way.
    pub(crate) fn reset(&mut self, memory: &mut HostRegions) -> u64 {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.iter_mut().for_each(|posted| self.free(memory, posted));
        memory.bytes_mut(self.completions).fill(0);
        (self.written, self.read) = (0, 0);
        self.contexts.clear();
        self.to_destroy.clear();
        let is_segment = |posted: &&Posted| matches!(posted, Posted::Segment { .. });
        under_way.iter().filter(is_segment).count() as u64
    }
}
