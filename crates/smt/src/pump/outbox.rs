// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sending half of an endpoint: batches leave one after the other, and without the endpoint's
//! lock.
//!
//! 1. The thread that has changed something takes a batch ([`Outbox::take`]). The buffer goes with
//!    the batch, so that no other thread can take one.
//! 2. The thread gives the lock back, sends, and takes the lock again.
//! 3. The thread puts the batch back ([`Outbox::put_back`]) and begins again with 1, until nothing
//!    is to be sent: messages that others have made ready meanwhile leave as well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, FlowId, SendError, Transmit};
use smt_proto::{Endpoint, Time, TransmitBuffer};

/// An endpoint's carrier, and the datagrams that it carries next.
pub(crate) struct Outbox {
    /// Until the endpoint is shut down.
    carrier: Option<Arc<dyn Carrier>>,
    /// `None` while a thread sends.
    buffer: Option<TransmitBuffer>,
    /// A batch that the carrier had no room for, from this byte on.
    unsent: Option<(Transmit, usize)>,
    /// The peer of which it was last told that this host sends nothing to it, and when.
    refusal_told: Option<(SocketAddr, Time)>,
}

/// Datagrams that leave together.
pub(crate) struct OutgoingBatch {
    carrier: Arc<dyn Carrier>,
    buffer: TransmitBuffer,
    transmit: Transmit,
    from: usize,
}

impl OutgoingBatch {
    pub(crate) fn send(&self) -> Result<(), SendError> {
        let batch = self.buffer.batch(&self.transmit, self.from);
        self.carrier.send(&batch)
    }
}

impl Outbox {
    pub(crate) fn new(carrier: Arc<dyn Carrier>) -> Self {
        Self {
            carrier: Some(carrier),
            buffer: Some(TransmitBuffer::default()),
            unsent: None,
            refusal_told: None,
        }
    }

    /// The next batch. `None`: nothing is to be sent, or another thread is sending and takes the
    /// next one too.
    pub(crate) fn take(&mut self, now: Time, endpoint: &mut Endpoint) -> Option<OutgoingBatch> {
        let carrier = self.carrier.as_ref()?;
        let mut buffer = self.buffer.take()?;
        let next = self.unsent.take().or_else(|| {
            let transmit = endpoint.poll_transmit(now, &mut buffer)?;
            Some((transmit, 0))
        });
        let Some((transmit, from)) = next else {
            self.buffer = Some(buffer);
            return None;
        };
        Some(OutgoingBatch { carrier: Arc::clone(carrier), buffer, transmit, from })
    }

    /// Takes a batch back that was sent with this outcome. Returns whether the carrier has room for
    /// more.
    pub(crate) fn put_back(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        batch: OutgoingBatch,
        outcome: Result<(), SendError>,
    ) -> bool {
        let Transmit { path, segment_size, flow, .. } = batch.transmit;
        let is_refused = match outcome {
            // There is no route, or a firewall of this host forbids it.
            Err(error @ (SendError::Other { .. } | SendError::Unreachable)) => {
                endpoint.handle_send_refused(path.remote);
                error != SendError::Unreachable
            }
            Err(SendError::TooLarge) => {
                endpoint.handle_send_too_large(now, path.remote, segment_size)
            }
            _ => false,
        };
        if let Err(error) = outcome
            && is_refused
            && flow != FlowId(0)
        {
            self.tell_refusal(now, path.remote, error);
        }
        self.buffer = Some(batch.buffer);
        match outcome {
            Err(SendError::WouldBlock { bytes_sent }) if self.carrier.is_some() => {
                self.unsent = Some((batch.transmit, batch.from + bytes_sent));
                return false;
            }
            // A probe too large for this path, or a hint: the protocol asks again for what is
            // missing.
            Err(error) => {
                tracing::trace!(%error, path = %batch.transmit.path, "a batch was not sent whole");
            }
            Ok(()) => {}
        }
        true
    }

    /// Tells why calls of a session end by their deadlines.
    fn tell_refusal(&mut self, now: Time, peer: SocketAddr, error: SendError) {
        let is_told = |(of, told): (SocketAddr, Time)| {
            of == peer && now.since(told) < REFUSAL_TOLD_AGAIN_AFTER
        };
        if self.refusal_told.is_some_and(is_told) {
            return;
        }
        self.refusal_told = Some((peer, now));
        tracing::warn!(target: "smt", %peer, %error, "this host does not send a session's packets");
    }

    /// Whether a batch waits for the carrier to have room.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }

    /// Whether all batches that were taken have left.
    pub(crate) fn is_idle(&self) -> bool {
        self.unsent.is_none() && self.buffer.is_some()
    }

    /// Drops the batch that waits for the carrier to have room.
    pub(crate) fn forget_unsent(&mut self) {
        self.unsent = None;
    }

    /// Lets go of the carrier: nothing is sent any more.
    pub(crate) fn close(&mut self) {
        self.unsent = None;
        self.carrier = None;
    }
}

/// The same is told no more often: it holds for each packet until it is mended.
const REFUSAL_TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);
