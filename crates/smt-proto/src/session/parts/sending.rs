// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending the parts of a call, within the window of their reader (SPEC §5.9).

use smt_record::Body;
use smt_wire::{MessageId, PacketType, PartMarks, PartWindow};

use crate::error::Refused;
use crate::event::Event;
use crate::limits::RESEND_INTERVAL_MAX;
use crate::message::client_message::{Content, LiveMessage};
use crate::message::outgoing::{Marks, Outgoing};
use crate::message::part_writer::NoPart;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::recovery::retry_timer::RetryTimer;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

/// A part to be sent.
#[derive(Debug)]
pub(crate) struct OutgoingPart {
    pub(crate) body: Body,
    /// Whether parts follow.
    pub(crate) more: bool,
}

impl Session {
    /// Sends a part of a call: of the request, if this side has begun the call, else of the reply.
    pub(crate) fn send_part(
        &mut self,
        now: Time,
        id: MessageId,
        part: OutgoingPart,
        shared: &mut Shared,
    ) -> Result<(), Refused> {
        if self.ended.is_some() {
            return Err(Refused::NoSession);
        }
        let OutgoingPart { body, more } = part;
        // The end of the parts of a reply is the reply.
        let more = more || !self.is_own(id);
        let length = body.len();
        let Some(writer) = self.lane.parts.writer_mut(id) else {
            return Err(self.why_no_writer(id));
        };
        let limit = self.agreement.part_max();
        if length > limit as usize {
            return Err(Refused::TooLarge { length, limit });
        }
        match writer.admits(length) {
            Ok(()) => {}
            Err(NoPart::Ended) => return Err(Refused::NoRpc),
            Err(NoPart::Full) => {
                self.wait_for_part_window(now, id);
                return Err(Refused::PartWindowFull);
            }
        }
        if self.must_keep_less(id, shared) {
            return Err(Refused::PartWindowFull);
        }
        let writer = self.lane.parts.writer_mut(id).ok_or(Refused::NoRpc)?;
        let body = writer.application_bytes(body);
        let padded = self.padded_length(&body, shared)?;
        let right = self.next_id(now)?;
        let own_id = right.id();
        let Some(writer) = self.lane.parts.writer_mut(id) else {
            return Err(Refused::NoRpc);
        };
        let marks = PartMarks { more, number: writer.sent(length, more), ..PartMarks::default() };
        let (geometry, unscheduled) = (self.agreement.geometry, self.agreement.unscheduled);
        let outgoing = Outgoing::new(right, body, padded, geometry, unscheduled);
        let outgoing = outgoing.marked(Marks::of_parts(marks));
        let remaining = outgoing.remaining();
        let retry = RetryTimer::new(now, self.recovery.rto.interval());
        let part = self.keep_part(id, outgoing.length(), shared);
        let live = LiveMessage::new(Content::Part(part), outgoing.queued(), retry);
        self.pass_timer.set(live.due());
        self.lane.client.insert(own_id, live);
        self.lane.sendable.push((remaining, own_id));
        self.liveness.used(now);
        Ok(())
    }

    /// The refusal of a part of a call that has no writer of parts on this side.
    fn why_no_writer(&self, id: MessageId) -> Refused {
        let served = self.lane.server.get(id.0).filter(|_| !self.is_own(id));
        let is_working =
            |served: &ServerRpc| matches!(served.state, ServerRpcState::Working { .. });
        if served.is_some_and(is_working) { Refused::NoParts } else { Refused::NoRpc }
    }

    fn wait_for_part_window(&mut self, now: Time, id: MessageId) {
        let retry = RetryTimer::new(now, self.recovery.rto.interval());
        let due = retry.due;
        if let Some(writer) = self.lane.parts.writer_mut(id)
            && writer.block(retry)
        {
            self.pass_timer.set(due);
        }
    }

    /// Takes PART_WINDOW: the reader of the parts of a call has told how far they may be sent. It
    /// is not inlined, since it would need room in the stack frame of all control packets.
    #[inline(never)]
    pub(in crate::session) fn part_window_told(&mut self, window: PartWindow, shared: &mut Shared) {
        if self.checked(window.id, shared).is_none() {
            return;
        }
        if let Some(writer) = self.lane.parts.writer_mut(window.id)
            && writer.raise(window.limit)
        {
            let rpc = self.rpc(window.id);
            shared.events.push_back(Event::PartWindowRaised(rpc));
        }
    }

    /// Asks for room in the windows for which the application waits (SPEC §5.9).
    pub(in crate::session) fn repeat_part_window_requests(&mut self, now: Time) {
        for (id, writer) in self.lane.parts.writers_mut() {
            let Some(retry) = writer.blocked_mut() else {
                continue;
            };
            if retry.due <= now {
                retry.ask(now, RESEND_INTERVAL_MAX);
                self.lane.control.id(PacketType::PartWindowRequest, id);
            }
            self.pass_timer.set(retry.due);
        }
    }
}
