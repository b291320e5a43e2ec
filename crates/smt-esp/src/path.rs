// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order of things: segmentation, then ESP; ESP, then coalescing.
//!
//! ESP hides the transport header and authenticates each packet for itself. Segmentation therefore
//! comes before sealing, and coalescing after opening.

use std::time::Duration;

use crate::buffer::{HEADROOM, PacketBuffer, TAILROOM};
use crate::database::{Arrival, Database};
use crate::error::{OpenError, SealError};
use crate::offload::{Coalescer, Offload, Segments};

/// Packets out: cuts super-packets into segments and seals each.
#[derive(Debug)]
pub struct OutboundPath {
    mtu: usize,
    segmentation: bool,
    memory: Vec<u8>,
}

impl OutboundPath {
    /// A path that takes packets of at most `mtu` bytes, with IP header and ESP.
    ///
    /// Without `segmentation` super-packets are refused: the stack above must not be told that
    /// it may send them.
    #[must_use]
    pub fn new(mtu: usize, segmentation: bool) -> Self {
        Self { mtu, segmentation, memory: vec![0; HEADROOM + mtu + TAILROOM] }
    }

    /// Cuts, seals and hands over the packets that `packet` becomes. Says how many there were.
    ///
    /// # Errors
    /// [`SealError`]. Segments before the one that failed have been handed over.
    pub fn send(
        &mut self,
        database: &mut Database,
        (packet, offload): (&[u8], &Offload),
        now: Duration,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<usize, SealError> {
        let limit = database.longest_packet(packet, self.mtu)?;
        let planned = if offload.segmentation.is_some() && !self.segmentation {
            Err(SealError::TooBig { limit })
        } else {
            Segments::new(packet, offload, limit)
        };
        let mut segments = planned.inspect_err(|error| database.count_seal_error(*error))?;
        let mut count = 0;
        loop {
            let written = segments.write_next(&mut self.memory);
            let written = written.inspect_err(|error| database.count_seal_error(*error))?;
            let Some(mut buffer) = written else {
                return Ok(count);
            };
            database.seal(&mut buffer, now)?;
            deliver(buffer.packet());
            count += 1;
        }
    }
}

/// Packets in: opens each and coalesces those of a flow.
#[derive(Debug)]
pub struct InboundPath {
    coalescer: Option<Coalescer>,
}

impl InboundPath {
    /// A path that coalesces packets of so many flows at a time; of none, it hands over each
    /// packet as it was opened.
    #[must_use]
    pub fn new(flows: usize) -> Self {
        Self { coalescer: (flows > 0).then(|| Coalescer::new(flows)) }
    }

    /// Whether datagrams of UDP are coalesced ([`Coalescer::set_udp`]).
    #[must_use]
    pub fn with_udp(mut self, takes_udp: bool) -> Self {
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.set_udp(takes_udp);
        }
        self
    }

    /// Opens the packet in `buffer` and hands over what is complete, at the latest with
    /// [`Self::flush`]. A message for IKE stays in the buffer, and dummies and keepalives end here.
    ///
    /// # Errors
    /// [`OpenError`]; the packet is dropped.
    pub fn receive(
        &mut self,
        database: &mut Database,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
        deliver: &mut impl FnMut(&[u8], Offload),
    ) -> Result<Arrival, OpenError> {
        let arrival = database.open(buffer, now)?;
        let is_packet = match arrival {
            Arrival::Opened(opened) => !opened.dummy,
            Arrival::Bypass => true,
            Arrival::Ike | Arrival::Keepalive => false,
        };
        if is_packet {
            match &mut self.coalescer {
                Some(coalescer) => coalescer.push(buffer.packet(), deliver),
                None => deliver(buffer.packet(), Offload::default()),
            }
        }
        Ok(arrival)
    }

    /// Hands over what has gathered: the end of a batch of packets.
    pub fn flush(&mut self, deliver: &mut impl FnMut(&[u8], Offload)) {
        if let Some(coalescer) = &mut self.coalescer {
            coalescer.flush(deliver);
        }
    }
}
