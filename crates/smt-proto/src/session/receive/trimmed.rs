// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA of which the network has left only the header (SPEC §9.10).
//!
//! 1. The header says which message lacks bytes. It is not authenticated: it may bring a question
//!    forward that a timer would ask later, and nothing else.
//! 2. If record 0 of the message has opened, the range is asked for, unless it is there or was
//!    asked for recently.
//! 3. For another id record 0 is asked for first; headers of its other packets wait among the
//!    reordered packets.
//! 4. Questions wait in the endpoint's [`TrimmedQueue`](crate::grant::ndp::trimmed::TrimmedQueue)
//!    for the policy's pacer. Without one, timers ask.

use smt_record::IdParts;
use smt_wire::{DataHeader, MessageId, Resend};

use crate::collections::byte_ranges::ByteRange;
use crate::grant::ndp::pull::PullOrder;
use crate::grant::ndp::trimmed::{Missing, Trimmed, TrimmedPart};
use crate::limits;
use crate::message::arrived_data::{ArrivedData, OpenedRecords};
use crate::message::client_message::LiveMessage;
use crate::message::incoming::FirstRecord;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Takes the rest of a trimmed DATA packet that names this session.
    pub(crate) fn handle_trimmed(&mut self, now: Time, header: &DataHeader, shared: &mut Shared) {
        if self.ended.is_some() {
            return;
        }
        let parts = self.lane.stripes.split(header.id);
        let is_long = !self.is_acceptable_length(header.message_length, shared);
        let Some(parts) = parts.filter(|_| !is_long) else {
            shared.statistics.packets_contradicting += 1;
            return;
        };
        shared.statistics.packets_trimmed += 1;
        if shared.grants.pulling().is_none() {
            return;
        }
        shared.unscheduled_arrived =
            shared.unscheduled_arrived.saturating_add(limits::TRIMMED_COST);
        if self.lane.incoming_mut(header.id).is_some() {
            let trimmed = self.trimmed(header);
            self.note_trimmed(now, trimmed, shared);
        } else if self.may_begin(header.id, parts, shared) {
            self.note_unopened(now, header, shared);
        }
    }

    /// Whether record 0 of this id would be taken if it came.
    fn may_begin(&self, id: MessageId, parts: IdParts, shared: &mut Shared) -> bool {
        let has_room = self.lane.memory_share.may_begin(self.lane.memory(shared));
        let statistics = &mut shared.statistics;
        if parts.initiator == self.agreement.side {
            let waits = |live: &LiveMessage| live.is_request() && live.has_left();
            let is_wanted = self.lane.client.live(id).is_some_and(waits);
            statistics.packets_duplicate += u64::from(!is_wanted);
            return is_wanted;
        }
        let window = &self.lane.stripes.of(id).window;
        if window.is_seen(parts.counter) {
            statistics.packets_duplicate += 1;
            return false;
        }
        if !window.in_range(parts.counter) {
            statistics.packets_contradicting += 1;
            return false;
        }
        statistics.memory_refusals += u64::from(!has_room);
        has_room
    }

    /// Asks for record 0 of an id, which has not opened, and remembers the rest until it comes.
    fn note_unopened(&mut self, now: Time, header: &DataHeader, shared: &mut Shared) {
        if header.offset > 0 {
            let data =
                ArrivedData { header: *header, payload: &[], opened: OpenedRecords::default() };
            self.keep_reordered(now, &data, shared);
            return;
        }
        let id = header.id;
        let has_room = self.lane.trimmed_waiting < limits::TRIMMED_PER_SESSION
            && !shared.trimmed_queue.is_full();
        let interval = self.recovery.rto.interval();
        if !has_room || !self.lane.reordered.first_trimmed(now, interval, header) {
            return;
        }
        self.pass_timer.set(now + limits::REORDERED_LIFE);
        let rank = rank(header.message_length, shared);
        self.push_trimmed(rank, id, Missing::FirstRecord, shared);
    }

    /// Record 0 has opened: it was unscheduled, unless it was asked for after it had been trimmed.
    pub(in crate::session) fn first_came(
        &mut self,
        first: &FirstRecord,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        self.recovery.payload_opened(data.payload.len());
        if !self.lane.reordered.is_first_trimmed(data.header.id) {
            shared.came_unscheduled(first.arrived);
        }
    }

    /// Record 0 of the id has opened. If its packet was trimmed before, so was what that packet had
    /// beside record 0.
    pub(in crate::session) fn first_opened(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        if !self.lane.reordered.first_opened(id) {
            return;
        }
        let end = self.recovery.payload_most();
        let Some(incoming) = self.lane.incoming_mut(id) else {
            return;
        };
        let trimmed = Trimmed {
            id,
            message_length: incoming.header().padded_length,
            range: ByteRange { start: incoming.first_end(), end },
            is_again: false,
        };
        if trimmed.range.start < trimmed.range.end {
            self.note_trimmed(now, trimmed, shared);
        }
    }

    /// Takes the header of a trimmed packet of a message that has begun.
    pub(in crate::session) fn note_trimmed(
        &mut self,
        now: Time,
        trimmed: Trimmed,
        shared: &mut Shared,
    ) {
        let interval = self.recovery.rto.interval();
        let has_room = self.lane.trimmed_waiting < limits::TRIMMED_PER_SESSION
            && !shared.trimmed_queue.is_full();
        let id = trimmed.id;
        let Some(incoming) = self.lane.incoming_mut(id).filter(|_| has_room) else {
            return;
        };
        if trimmed.message_length != incoming.header().padded_length
            || trimmed.range.start >= incoming.allowed().min(incoming.length())
        {
            shared.statistics.packets_contradicting += 1;
            return;
        }
        let missing = incoming.gap_in(trimmed.range);
        let trimmed_queue = incoming.trimmed_mut();
        let Some(range) =
            missing.and_then(|range| trimmed_queue.note(now, range, trimmed.is_again, interval))
        else {
            shared.statistics.packets_duplicate += 1;
            return;
        };
        trimmed_queue.waiting += 1;
        let rank = rank(incoming.length() - incoming.arrived(), shared);
        self.push_trimmed(rank, id, Missing::Range(range), shared);
    }

    fn push_trimmed(&mut self, rank: u32, id: MessageId, missing: Missing, shared: &mut Shared) {
        let rpc = self.rpc(id);
        self.lane.trimmed_waiting += 1;
        shared.trimmed_queue.push(rank, TrimmedPart { rpc, missing });
    }

    /// The question about a trimmed range, if it is still missing.
    pub(crate) fn resend_for(&mut self, part: &TrimmedPart) -> Option<Resend> {
        let id = part.rpc.id;
        match part.missing {
            Missing::FirstRecord => self.lane.reordered.is_first_trimmed(id).then_some(Resend {
                id,
                offset: 0,
                length: 1,
            }),
            Missing::Range(range) => {
                let range = self.lane.incoming_mut(id)?.gap_in(range)?;
                Some(Resend { id, offset: range.start, length: range.end - range.start })
            }
        }
    }

    /// Takes a question that waits no longer: it is asked, or its range has come. Returns the bytes
    /// that the answer has.
    pub(crate) fn trimmed_is_over(
        &mut self,
        part: &TrimmedPart,
        retry: Option<Resend>,
        shared: &mut Shared,
    ) -> u32 {
        self.lane.trimmed_waiting = self.lane.trimmed_waiting.saturating_sub(1);
        let first = self.first_length();
        let bytes = retry.map_or(0, |retry| match part.missing {
            Missing::FirstRecord => first,
            Missing::Range(_) => retry.length,
        });
        if let (Missing::Range(_), Some(incoming)) =
            (part.missing, self.lane.incoming_mut(part.rpc.id))
        {
            let trimmed_queue = incoming.trimmed_mut();
            trimmed_queue.waiting = trimmed_queue.waiting.saturating_sub(1);
            trimmed_queue.owed = trimmed_queue.owed.saturating_add(bytes);
        }
        if let Some(retry) = retry {
            shared.statistics.trimmed_asked += 1;
            self.lane.control.resend(retry);
        }
        bytes
    }

    /// The range of the record stream that the packet of this header had.
    pub(in crate::session) fn trimmed(&self, header: &DataHeader) -> Trimmed {
        Trimmed::new(header, self.recovery.payload_most())
    }

    /// Bytes of record 0 of a message that has more than one.
    fn first_length(&self) -> u32 {
        let first = self.agreement.geometry.record(u32::MAX, 0);
        first.stream_len() as u32
    }
}

/// The rank of a question: the bytes left where the policy orders by them. The length of an id that
/// has not opened is a claim; a peer that lies about it comes first, at its rate.
fn rank(left: u32, shared: &Shared) -> u32 {
    match shared.grants.pulling().map(|pulling| pulling.order) {
        Some(PullOrder::ShortestFirst) => left,
        _ => 0,
    }
}
