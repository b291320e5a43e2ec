// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message on its way out, until it is acknowledged (SPEC §5.5, §9.1).
//!
//! ```text
//!   waiting ── freeze ──▶ leaving (`transmitting`)
//!      └─ becomes a member of a bundle ──▶ (gone)
//! ```
//! A message that waits is its body and the right to its id; nothing is sealed. Most short messages
//! in a crowd never get further than that: they leave as members of a bundle. A waiting message is
//! therefore small, and the state of a message that leaves alone is made when it does.

use core::time::Duration;

use smt_record::{Body, FrozenMessage, IndexBits, OutgoingId};
use smt_wire::{DataHeader, FailureMark, Geometry, InnerHeader, PartMarks};

use crate::limits::{DATAGRAM_FLOOR, NEED_ACK_INTERVAL, NEED_ACK_INTERVAL_SHORT, RESEND_INTERVAL};
use crate::memory::object_pool::{ObjectPool, Pooled};
use crate::message::transmitting::Transmitting;
use crate::recovery::jitter::Jitter;

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    state: State,
    /// Inner bytes with padding.
    padded: u32,
    geometry: Geometry,
    /// Bytes of the record stream that need no grant.
    unscheduled: u32,
    /// Whether the session's send queue holds this message.
    pub(crate) is_queued: bool,
}

/// The marks of a message in its header (SPEC §5.2), in 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    code: u32,
    is_failure: bool,
    not_run: bool,
    /// Whether the application bytes begin with metadata.
    pub(crate) has_metadata: bool,
    /// The marks of parts (SPEC §5.9).
    pub(crate) parts: PartMarks,
}

impl Marks {
    /// The marks of a message with this mark of a failure, with metadata or not, and with
    /// these marks of parts.
    pub(crate) fn new(failure: Option<FailureMark>, has_metadata: bool, parts: PartMarks) -> Self {
        Self {
            code: failure.map_or(0, |mark| mark.code),
            is_failure: failure.is_some(),
            not_run: failure.is_some_and(|mark| mark.not_run),
            has_metadata,
            parts,
        }
    }

    /// The marks of a part.
    pub(crate) fn of_parts(parts: PartMarks) -> Self {
        Self { parts, ..Self::default() }
    }

    /// The mark of a reply that is a failure.
    pub(crate) fn failure(self) -> Option<FailureMark> {
        self.is_failure.then_some(FailureMark { code: self.code, not_run: self.not_run })
    }
}

#[derive(Debug)]
enum State {
    Waiting {
        /// Taken by [`Outgoing::freeze`], which ends this state at once.
        right: Option<OutgoingId>,
        body: Body,
        marks: Marks,
    },
    Transmitting(Pooled<Transmitting>),
}

impl Outgoing {
    /// A message that waits. `unscheduled` bytes of its record stream may leave at once, record 0
    /// in any case.
    pub(crate) fn new(
        right: OutgoingId,
        body: Body,
        padded: u32,
        geometry: Geometry,
        unscheduled: u32,
    ) -> Self {
        Self {
            state: State::Waiting { right: Some(right), body, marks: Marks::default() },
            padded,
            geometry,
            unscheduled,
            is_queued: false,
        }
    }

    /// The message with these marks.
    pub(crate) fn marked(mut self, as_given: Marks) -> Self {
        if let State::Waiting { marks, .. } = &mut self.state {
            *marks = as_given;
        }
        self
    }

    /// The marks, if nothing has been sealed yet.
    pub(crate) fn marks(&self) -> Marks {
        match &self.state {
            State::Waiting { marks, .. } => *marks,
            State::Transmitting(_) => Marks::default(),
        }
    }

    /// A message that waits in the session's send queue.
    pub(crate) fn queued(self) -> Self {
        Self { is_queued: true, ..self }
    }

    /// Fixes the inner header. Does nothing once frozen.
    pub(crate) fn freeze(
        &mut self,
        index_bits: IndexBits,
        transmitting_pool: &mut ObjectPool<Transmitting>,
        header: impl FnOnce(u32, u32) -> InnerHeader,
    ) {
        let State::Waiting { right, body, .. } = &mut self.state else {
            return;
        };
        let Some(right) = right.take() else { return };
        let body = core::mem::take(body);
        let header = header(body.len() as u32, self.padded);
        let frozen = FrozenMessage::new(right, &header, body, self.geometry, index_bits)
            .expect("id and length were checked when the message was taken");
        let transmitting = Transmitting::new(frozen, self.geometry, self.unscheduled);
        self.state = State::Transmitting(transmitting_pool.put(transmitting));
    }

    /// The frozen message, to be given back to the pool.
    pub(crate) fn into_transmitting(self) -> Option<Pooled<Transmitting>> {
        match self.state {
            State::Transmitting(transmitting) => Some(transmitting),
            State::Waiting { .. } => None,
        }
    }

    /// The body, if nothing has been sealed yet.
    pub(crate) fn waiting(&self) -> Option<&Body> {
        match &self.state {
            State::Waiting { body, .. } => Some(body),
            State::Transmitting(_) => None,
        }
    }

    /// The records that it will have, if nothing has been sealed yet.
    pub(crate) fn records_if_waiting(&self) -> Option<u32> {
        self.waiting().map(|_| self.geometry.records(self.padded))
    }

    /// The frozen message, if it is one.
    pub(crate) fn transmitting(&self) -> Option<&Transmitting> {
        match &self.state {
            State::Transmitting(transmitting) => Some(transmitting),
            State::Waiting { .. } => None,
        }
    }

    /// The frozen message, to change it.
    pub(crate) fn transmitting_mut(&mut self) -> Option<&mut Transmitting> {
        match &mut self.state {
            State::Transmitting(transmitting) => Some(transmitting),
            State::Waiting { .. } => None,
        }
    }

    /// Queues a range that the peer asks for again, see [`Transmitting::ask_again`]. Nothing of a
    /// message that waits can be asked for.
    pub(crate) fn ask_again(&mut self, offset: u32, length: u32) -> bool {
        self.transmitting_mut().is_some_and(|transmitting| transmitting.ask_again(offset, length))
    }

    /// Queues all sent bytes to be sent again (NEVER_SEEN).
    pub(crate) fn ask_all_again(&mut self) {
        if let Some(transmitting) = self.transmitting_mut() {
            transmitting.ask_all_again();
        }
    }

    /// Whether anything of it may leave now.
    pub(crate) fn is_sendable(&self) -> bool {
        self.transmitting().is_none_or(Transmitting::is_sendable)
    }

    /// Whether every byte has left at least once.
    pub(crate) fn is_sent(&self) -> bool {
        self.transmitting().is_some_and(Transmitting::is_sent)
    }

    /// Whether any byte has left.
    pub(crate) fn has_started(&self) -> bool {
        self.transmitting().is_some_and(Transmitting::has_started)
    }

    /// Bytes that have not left yet: what shortest-remaining-first compares.
    pub(crate) fn remaining(&self) -> u32 {
        self.transmitting().map_or_else(|| self.length(), Transmitting::remaining)
    }

    /// Whether a reply whose permitted bytes have all left this long ago is more likely late than
    /// lost. A long reply waits in queues; a short one is sent again sooner than that is found out.
    pub(crate) fn is_likely_late(&self, ago: Duration) -> bool {
        self.is_large() && self.has_started() && !self.is_sendable() && ago < RESEND_INTERVAL / 2
    }

    /// Whether any of its datagrams may be larger than the floor.
    pub(crate) fn is_large(&self) -> bool {
        self.length() as usize + DataHeader::LEN > DATAGRAM_FLOOR
    }

    /// How long after a reply has left its initiator is asked whether it has arrived.
    pub(crate) fn need_ack_interval(&self, is_needed_soon: bool, jitter: Jitter) -> Duration {
        jitter.lengthen(match self.is_large() || is_needed_soon {
            true => NEED_ACK_INTERVAL,
            false => NEED_ACK_INTERVAL_SHORT,
        })
    }

    /// Bytes of the record stream.
    pub(crate) fn length(&self) -> u32 {
        self.geometry.stream_length(self.padded)
    }
}
