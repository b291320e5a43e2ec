// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The merges that are open in a receive queue.

use alloc::vec::Vec;

use super::coalescing::{Merge, Merged};
use super::contexts::ReceiveContexts;
use super::queue::{ArrivedPacket, Mark, OpenedPlaces, ReceiveQueue};
use super::stream::StreamMerge;
use crate::headers::{Headers, Transport};
use crate::host_memory::{CountedMemory, HostMemory};

/// A queue, and the packets that wait for those that may follow them.
#[derive(Clone, Debug)]
pub(super) struct QueueWithMerges {
    pub(super) queue: ReceiveQueue,
    /// The oldest first.
    merges: Vec<Waiting>,
}

/// A packet that arrives at a queue. Its headers, if it has any that the device knows.
#[derive(Clone, Copy)]
pub(super) struct Arriving<'a> {
    pub(super) packet: &'a [u8],
    pub(super) headers: Option<&'a Headers>,
    pub(super) mark: Mark,
}

/// Packets that wait, and their mark: packets of one association, or packets that came in the
/// clear, and never both.
#[derive(Clone, Debug)]
struct Waiting {
    merge: Kind,
    mark: Mark,
}

#[derive(Clone, Debug)]
enum Kind {
    Message(Merge),
    Stream(StreamMerge),
}

impl QueueWithMerges {
    pub(super) fn new(queue: ReceiveQueue) -> Self {
        Self { queue, merges: Vec::new() }
    }

    /// Merges a packet, or hands it over.
    pub(super) fn take<M: HostMemory>(
        &mut self,
        arriving: Arriving<'_>,
        merges_max: usize,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        let Arriving { packet, headers, mark } = arriving;
        let merge = headers.and_then(|headers| Kind::begin(packet, headers));
        let fresh = merge.map(|merge| Waiting { merge, mark });
        if let Some(headers) = headers.filter(|of| of.transport == Transport::Tcp) {
            self.deliver_earlier((packet, headers), fresh.as_ref(), contexts, host);
        }
        match fresh {
            Some(alone) if merges_max == 0 => self.deliver(alone, contexts, host),
            Some(fresh) => self.merge(fresh, merges_max, contexts, host),
            None => self.queue.deliver(ArrivedPacket::plain(packet, mark), host),
        }
    }

    pub(super) fn flush<M: HostMemory>(
        &mut self,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        for waiting in core::mem::take(&mut self.merges) {
            self.deliver(waiting, contexts, host);
        }
    }

    /// Hands over what waits of a packet's connection and does not go on with it: a stream goes up
    /// in the order in which it came, whatever ends a merge.
    fn deliver_earlier<M: HostMemory>(
        &mut self,
        (packet, headers): (&[u8], &Headers),
        fresh: Option<&Waiting>,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        let is_earlier = |waiting: &Waiting| {
            let goes_on = fresh.is_some_and(|fresh| waiting.goes_with(fresh));
            !goes_on && waiting.merge.is_of_connection(packet, headers)
        };
        while let Some(place) = self.merges.iter().position(is_earlier) {
            let earlier = self.merges.remove(place);
            self.deliver(earlier, contexts, host);
        }
    }

    fn merge<M: HostMemory>(
        &mut self,
        fresh: Waiting,
        merges_max: usize,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        let place = self.merges.iter().position(|of| of.goes_with(&fresh));
        let Some(place) = place else {
            if self.merges.len() == merges_max {
                let oldest = self.merges.remove(0);
                self.deliver(oldest, contexts, host);
            }
            return self.begin(fresh, contexts, host);
        };
        match self.merges[place].merge.append(&fresh.merge) {
            Merged::Open => host.counters.packets_merged += 1,
            Merged::Closed => {
                host.counters.packets_merged += 1;
                let closed = self.merges.remove(place);
                self.deliver(closed, contexts, host);
            }
            Merged::No => {
                let closed = self.merges.remove(place);
                self.deliver(closed, contexts, host);
                self.begin(fresh, contexts, host);
            }
        }
    }

    /// Keeps a packet for those that may follow it.
    fn begin<M: HostMemory>(
        &mut self,
        fresh: Waiting,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        match fresh.merge.may_go_on() {
            true => self.merges.push(fresh),
            false => self.deliver(fresh, contexts, host),
        }
    }

    fn deliver<M: HostMemory>(
        &mut self,
        waiting: Waiting,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        let mark = waiting.mark;
        match waiting.merge {
            Kind::Message(merge) => self.open_and_deliver(merge, mark, contexts, host),
            Kind::Stream(merge) => {
                let packet = ArrivedPacket {
                    packets: merge.packets(),
                    bytes: &merge.into_packet(),
                    mark,
                    opened: None,
                };
                self.queue.deliver(packet, host);
            }
        }
    }

    /// Opens the records that lie whole in packets of a message, in as many arrivals as are needed.
    fn open_and_deliver<M: HostMemory>(
        &mut self,
        mut merge: Merge,
        mark: Mark,
        contexts: &mut ReceiveContexts,
        host: &mut CountedMemory<'_, M>,
    ) {
        let Some((id, context)) = contexts.get_mut(merge.flow()) else {
            return self.deliver_message(merge, mark, None, host);
        };
        loop {
            let cut = context.cut(merge.stream_part(), merge.stream_payload().len());
            let rest = cut.and_then(|at| merge.split(at));
            let at = merge.payload_at();
            let opening = context.open(merge.stream_part(), merge.stream_payload());
            host.counters.openings += opening.openings;
            host.counters.opened_bytes += opening.bytes;
            let opened = opening.opened.map(|opened| {
                host.counters.records_opened += 1 + u64::from(opened.second.is_some());
                OpenedPlaces::new(id, opened, at)
            });
            self.deliver_message(merge, mark, opened, host);
            match rest {
                Some(rest) => merge = rest,
                None => return,
            }
        }
    }

    fn deliver_message<M: HostMemory>(
        &mut self,
        merge: Merge,
        mark: Mark,
        opened: Option<OpenedPlaces>,
        host: &mut CountedMemory<'_, M>,
    ) {
        let packet =
            ArrivedPacket { packets: merge.packets(), bytes: &merge.into_packet(), mark, opened };
        self.queue.deliver(packet, host);
    }
}

impl Waiting {
    fn goes_with(&self, fresh: &Self) -> bool {
        self.mark == fresh.mark && self.merge.is_of_flow(&fresh.merge)
    }
}

impl Kind {
    fn begin(packet: &[u8], headers: &Headers) -> Option<Self> {
        let message = Merge::begin(packet, headers).map(Self::Message);
        message.or_else(|| StreamMerge::begin(packet, headers).map(Self::Stream))
    }

    fn is_of_flow(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Message(of), Self::Message(other)) => of.is_of_message(other),
            (Self::Stream(of), Self::Stream(other)) => of.is_of_stream(other),
            _ => false,
        }
    }

    /// Whether a packet of TCP is of the connection whose segments are merged.
    fn is_of_connection(&self, packet: &[u8], headers: &Headers) -> bool {
        match self {
            Self::Message(_) => false,
            Self::Stream(of) => of.is_of_connection(packet, headers),
        }
    }

    fn append(&mut self, next: &Self) -> Merged {
        match (self, next) {
            (Self::Message(of), Self::Message(next)) => of.append(next),
            (Self::Stream(of), Self::Stream(next)) => of.append(next),
            _ => Merged::No,
        }
    }

    fn may_go_on(&self) -> bool {
        match self {
            Self::Message(of) => of.may_go_on(),
            Self::Stream(of) => of.may_go_on(),
        }
    }
}
