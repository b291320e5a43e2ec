// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receive side: packets go to queues by a hash of their flow (RSS), those of ESP and PSP are
//! opened, packets of one message or stream are merged (LRO), and what was merged is written to
//! buffers of the host.
//!
//! 1. [`crate::Nic::receive`] takes a packet from the wire. The device never drops a packet that it
//!    does not know: such a packet goes to queue 0, as it is.
//! 2. A packet of ESP is opened if the device has its association ([`crate::esp`]), after its queue
//!    was chosen by its SPI. One of PSP is opened by the device's keys ([`crate::psp`]), and its
//!    queue is that of what was inside. One that does not authenticate is dropped.
//! 3. Merged packets wait until a packet comes that does not go on with them, or until
//!    [`crate::Nic::flush`]: real devices flush when their interrupt is due. Packets of a TCP
//!    connection go up in the order in which they came.
//! 4. Records of SMT that lie whole in an arrival are opened on the way, if their flow has a
//!    context ([`crate::tls::receive`]). A merged packet with more records than are opened at once
//!    is cut into several arrivals, no more than the packets that were merged.
//! 5. A packet without a buffer is dropped, and counted.
//!
//! | part | what it is |
//! |:--|:--|
//! | [`rss`] | the hash, and which fields of a packet go into it |
//! | [`coalescing`], [`stream`] | which packets become one, and its headers: of SMT, of TCP |
//! | `contexts` | the contexts by which records are opened |
//! | `merges` | the merges that are open in a queue |
//! | `openers` | what opens whole packets before they are merged |
//! | `queue` | the rings of buffers and of completions |

use alloc::vec::Vec;

use crate::host_memory::{CountedMemory, HostMemory};
use crate::transmit_queue::Ring;
use contexts::ReceiveContexts;
use merges::{Arriving, QueueWithMerges};
use openers::{BarePacket, Openers, Unwrapped};
use queue::{Mark, ReceiveQueue};
use rss::Rss;

pub mod coalescing;
pub(crate) mod contexts;
mod merges;
mod openers;
pub mod queue;
pub mod rss;
pub mod stream;
mod unwrapped_by;

pub use unwrapped_by::UnwrappedBy;

/// The configuration of the receive side.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct ReceiveConfig {
    /// How packets go to queues.
    pub rss: Rss,
    /// Merges of a queue that may be open at once; 0 merges nothing.
    pub merges_max: usize,
    /// Contexts by which records are opened; 0 opens nothing.
    pub contexts_max: usize,
}

/// The receive side of a device.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveSide {
    config: ReceiveConfig,
    queues: Vec<QueueWithMerges>,
    pub(crate) openers: Openers,
}

impl ReceiveSide {
    pub(crate) fn new(config: ReceiveConfig, smt_protocol: u8, associations_max: usize) -> Self {
        Self {
            config,
            queues: Vec::new(),
            openers: Openers::new(config.rss, smt_protocol, associations_max),
        }
    }

    pub(crate) fn add_queue(&mut self, buffers: Ring, completions: Ring) -> u16 {
        let number = u16::try_from(self.queues.len()).expect("a device has 65,536 queues at most");
        let queue = ReceiveQueue::new(buffers, completions);
        self.queues.push(QueueWithMerges::new(queue));
        number
    }

    pub(crate) fn queue_mut(&mut self, number: u16) -> Option<&mut ReceiveQueue> {
        let of = self.queues.get_mut(usize::from(number))?;
        Some(&mut of.queue)
    }

    /// Forgets all queues, the packets that wait, and the associations of ESP.
    pub(crate) fn clear(&mut self) {
        self.queues.clear();
        self.openers.associations.clear();
    }

    /// Takes a packet, and returns its queue; `None` if the device has no queue.
    pub(crate) fn receive<M: HostMemory>(
        &mut self,
        packet: &[u8],
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) -> Option<u16> {
        host.counters.packets_received += 1;
        let queues = u32::try_from(self.queues.len()).unwrap_or(u32::MAX);
        if queues == 0 {
            return None;
        }
        let Unwrapped { hash, packet } = self.openers.open(packet, host.counters);
        let number = rss::queue_of(hash, queues)?;
        let Some(BarePacket { bytes, headers, association }) = packet else {
            return Some(number);
        };
        let of = self.queues.get_mut(usize::from(number))?;
        let arriving =
            Arriving { packet: bytes, headers: headers.as_ref(), mark: Mark { hash, association } };
        of.take(arriving, self.config.merges_max, contexts, host);
        Some(number)
    }

    /// Hands over what waits in a queue.
    pub(crate) fn flush<M: HostMemory>(
        &mut self,
        number: u16,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        if let Some(of) = self.queues.get_mut(usize::from(number)) {
            of.flush(contexts, host);
        }
    }
}
