// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application's commands to a session.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use smt_record::{AllocationError, Body, OutgoingId};
use smt_wire::{Abort, AbortCode, FailureMark, MessageId, PartMarks, RECORD_OVERHEAD};

use super::Session;
use crate::error::{
    CallError, CallFailure, CloseCode, Execution, OneWayOutcome, Refused, SessionEnd,
};
use crate::event::Event;
use crate::failure::Failure;
use crate::limits;
use crate::message::client_message::{Content, ExpectedReply, LiveMessage};
use crate::message::outgoing::{Marks, Outgoing};
use crate::message::server_rpc::ServerRpcState;
use crate::outgoing_message::OutgoingMessage;
use crate::recovery::retry_timer::RetryTimer;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Begins a call, or a one-way message.
    pub(crate) fn call(
        &mut self,
        now: Time,
        message: OutgoingMessage,
        kind: CallKind,
        shared: &mut Shared,
    ) -> Result<MessageId, Refused> {
        if self.ended.is_some() {
            return Err(Refused::NoSession);
        }
        if self.expiry.is_retired(now) {
            return Err(Refused::Expired);
        }
        self.check_parts(kind.parts)?;
        let (body, has_metadata) = message.into_application_bytes();
        let padded = self.padded_length(&body, shared)?;
        let right = self.next_id(now)?;
        let id = right.id();
        let unscheduled = self.agreement.unscheduled;
        let outgoing = Outgoing::new(right, body, padded, self.agreement.geometry, unscheduled);
        let outgoing = outgoing.marked(Marks::new(None, has_metadata, kind.parts));
        let remaining = outgoing.remaining();
        let deadline = kind.deadline.map(|after| now + after);
        let interval = self.recovery.rto.interval();
        let retry = match kind.is_one_way {
            true => RetryTimer::new(now, interval),
            false => {
                RetryTimer::with_first_probe(now, self.recovery.rto.reply_interval(), interval)
            }
        };
        let content = match kind.is_one_way {
            true => Content::OneWay,
            false => Content::Request(ExpectedReply {
                incoming: None,
                unscheduled: self.reply_unscheduled(shared),
            }),
        };
        let live = LiveMessage { deadline, ..LiveMessage::new(content, outgoing.queued(), retry) };
        self.pass_timer.set(live.due());
        self.lane.client.insert(id, live);
        self.begin_parts(id, kind.parts, shared);
        self.lane.sendable.push((remaining, id));
        self.liveness.used(now);
        Ok(id)
    }

    /// Whether a message may begin now. If not, [`Event::Unblocked`] follows.
    pub(crate) fn has_room(&mut self, now: Time) -> Result<bool, Refused> {
        if self.ended.is_some() {
            return Err(Refused::NoSession);
        }
        if self.expiry.is_retired(now) {
            return Err(Refused::Expired);
        }
        let is_blocked = self.lane.stripes.is_blocked();
        if is_blocked {
            self.wait_for_ids(now);
        }
        Ok(!is_blocked)
    }

    /// Answers a request by a failure.
    pub(crate) fn fail(
        &mut self,
        now: Time,
        id: MessageId,
        failure: Failure,
        shared: &mut Shared,
    ) -> Result<(), Refused> {
        let (mark, metadata) = (failure.mark(), failure.metadata.clone());
        let accepted = self.agreement.message_max as usize;
        let text = failure.into_text(accepted.saturating_sub(metadata.encoded_len()));
        let message = OutgoingMessage::new(text).with_metadata(metadata);
        self.answer(now, id, Answer { message, failure: Some(mark) }, shared)
    }

    /// Replies to a request.
    pub(crate) fn reply(
        &mut self,
        now: Time,
        id: MessageId,
        message: OutgoingMessage,
        shared: &mut Shared,
    ) -> Result<(), Refused> {
        let failure = None;
        self.answer(now, id, Answer { message, failure }, shared)
    }

    fn answer(
        &mut self,
        now: Time,
        id: MessageId,
        answer: Answer,
        shared: &mut Shared,
    ) -> Result<(), Refused> {
        let Answer { message, failure } = answer;
        let (body, has_metadata) = message.into_application_bytes();
        let padded = self.padded_length(&body, shared);
        let geometry = self.agreement.geometry;
        let is_needed_soon = self.needs_acks_soon(shared);
        let served = self.lane.server.get_mut(id.0).ok_or(Refused::NoRpc)?;
        if !matches!(served.state, ServerRpcState::Working { .. }) {
            return Err(Refused::NoRpc);
        }
        let padded = match padded {
            Ok(padded) => padded,
            Err(refused) => {
                // Without an answer the caller would wait for its deadline (SPEC §9.6).
                self.end_served(now, id, AbortCode::ReplyTooLarge, shared);
                return Err(refused);
            }
        };
        let ServerRpcState::Working { right, .. } = served.take_state() else {
            return Err(Refused::NoRpc);
        };
        let parts = PartMarks { number: self.lane.parts.sent(id), ..PartMarks::default() };
        let outgoing = Outgoing::new(right, body, padded, geometry, served.reply_unscheduled);
        let outgoing = outgoing.marked(Marks::new(failure, has_metadata, parts));
        let interval = outgoing.need_ack_interval(is_needed_soon, self.recovery.jitter);
        served.retry = RetryTimer::new(now, interval);
        let (remaining, due) = (outgoing.remaining(), served.retry.due);
        let length = outgoing.length();
        served.state = ServerRpcState::Replying(outgoing.queued());
        self.lane.remove_parts(id, &mut shared.memory);
        self.lane.memory_share.enter_reply(length, &mut shared.memory);
        self.pass_timer.set(due);
        self.lane.sendable.push((remaining, id));
        self.liveness.used(now);
        Ok(())
    }

    /// Whether it matters when replies are acknowledged.
    pub(super) fn needs_acks_soon(&self, shared: &Shared) -> bool {
        shared.is_draining || self.lane.server.len() > limits::KEPT_FEW
    }

    /// Asks whether each reply that has left has arrived, as often as for long replies.
    pub(crate) fn ask_for_acks(&mut self) {
        let interval = self.recovery.jitter.lengthen(limits::NEED_ACK_INTERVAL);
        let mut earliest = None;
        for (_, served) in self.lane.server.iter_mut() {
            if matches!(&served.state, ServerRpcState::Replying(outgoing) if outgoing.is_sent()) {
                let since = served.retry.since;
                served.retry = RetryTimer::new(since, interval);
                let due = served.retry.due;
                earliest = Some(earliest.map_or(due, |earlier: Time| earlier.min(due)));
            }
        }
        if let Some(due) = earliest {
            self.pass_timer.set(due);
        }
    }

    /// Ends a request without a reply.
    pub(crate) fn abort(
        &mut self,
        now: Time,
        id: MessageId,
        code: AbortCode,
        shared: &mut Shared,
    ) -> Result<(), Refused> {
        let served = self.lane.server.get_mut(id.0).ok_or(Refused::NoRpc)?;
        if !matches!(served.state, ServerRpcState::Working { .. }) {
            return Err(Refused::NoRpc);
        }
        self.end_served(now, id, code, shared);
        Ok(())
    }

    /// Ends a reply that cannot be transmitted any further.
    pub(super) fn abort_reply(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return;
        };
        let ServerRpcState::Replying(outgoing) = served.take_state() else {
            return;
        };
        self.lane.memory_share.leave_replies(outgoing.length(), &mut shared.memory);
        self.end_served(now, id, AbortCode::Dropped, shared);
    }

    /// Ends a request that gets no reply; the peer is told until it acknowledges.
    pub(super) fn end_served(
        &mut self,
        now: Time,
        id: MessageId,
        code: AbortCode,
        shared: &mut Shared,
    ) {
        self.lane.remove_parts(id, &mut shared.memory);
        let interval = self.recovery.jitter.lengthen(limits::NEED_ACK_INTERVAL);
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return;
        };
        served.state = ServerRpcState::Aborted(code);
        served.retry = RetryTimer::new(now, interval);
        let due = served.retry.due;
        self.pass_timer.set(due);
        self.send_abort(id, code);
    }

    /// Closes the session from this side. CLOSE leaves with the next transmit.
    pub(crate) fn close(&mut self, code: CloseCode, shared: &mut Shared) {
        if self.ended.is_some() {
            return;
        }
        // A peer whose handshake has come to its end here learns of that first: else CLOSE would be
        // of a session that it does not have.
        let confirm_due = self.confirm_due;
        self.end(SessionEnd::ClosedHere, shared);
        self.confirm_due = confirm_due;
        let code = code.code();
        self.lane.control.push(0, smt_wire::Body::Close { code });
    }

    /// Ends all messages because the session ends.
    pub(super) fn end_messages(&mut self, end: &SessionEnd, shared: &mut Shared) {
        // The original of a copy may still use the ids of calls that have not left.
        let is_sure = *end != SessionEnd::Copied;
        let calls = self.lane.client.iter_live().filter(|_| is_sure);
        let calls = calls.filter(|(_, live)| !self.lane.client.has_left(live));
        // Collecting would sort, with 4 KB of stack.
        let mut waiting = BTreeSet::new();
        waiting.extend(calls.map(|(id, _)| id));
        let untold: Vec<_> = self.lane.client.untold().map(|(id, _)| id).collect();
        for id in untold {
            self.tell_undecided(id, CallFailure::DeadlineExceeded, shared);
        }
        for (id, live) in self.lane.client.drain_live() {
            // Its members are told, and a part is no message of the application.
            if live.is_bundle() || live.is_part() {
                continue;
            }
            self.release(id, &live, shared);
            if self.end_if_whole(id, shared) {
                continue;
            }
            self.leave_parts(id, shared);
            let execution =
                if waiting.contains(&id) { Execution::DidNotRun } else { Execution::MayHaveRun };
            let error = CallError { reason: CallFailure::SessionEnded(end.clone()), execution };
            self.report_failure(id, live.is_request(), error, shared);
        }
        self.lane.clear_parts(&mut shared.memory);
        for (number, served) in self.lane.server.drain() {
            let rpc = self.rpc(MessageId(number));
            match served.state {
                ServerRpcState::Receiving { incoming, .. } => shared.forget(rpc, &incoming),
                ServerRpcState::Working { is_delivered, .. } => match is_delivered {
                    true => shared.events.push_back(Event::Cancelled(rpc)),
                    false => shared.taken_back += 1,
                },
                ServerRpcState::Replying(_)
                | ServerRpcState::Bundled(_)
                | ServerRpcState::Aborted(_) => {}
            }
        }
        self.lane.memory_share.leave_all_replies(&mut shared.memory);
        self.lane.reordered.clear(&mut shared.reordered_memory);
        self.lane.sendable.clear();
    }

    /// Gives back what the endpoint holds for a call that is over.
    pub(super) fn release(&self, id: MessageId, live: &LiveMessage, shared: &mut Shared) {
        if let Some(incoming) = live.incoming() {
            shared.forget(self.rpc(id), incoming);
        }
    }

    /// Tells the application that a call or one-way message ended without success.
    pub(super) fn report_failure(
        &self,
        id: MessageId,
        is_request: bool,
        error: CallError,
        shared: &mut Shared,
    ) {
        let rpc = self.rpc(id);
        shared.events.push_back(if is_request {
            Event::CallFailed { rpc, error }
        } else {
            let outcome = match error.execution {
                Execution::DidNotRun => OneWayOutcome::NotDelivered(error.reason),
                Execution::MayHaveRun => OneWayOutcome::MayHaveBeenDelivered(error.reason),
            };
            Event::OneWayDone { rpc, outcome }
        });
    }

    pub(super) fn send_abort(&mut self, id: MessageId, code: AbortCode) {
        let stripe = self.lane.stripes.number_of(id);
        let code = code.code();
        self.lane.control.push(stripe, smt_wire::Body::Abort(Abort { id, code }));
    }

    pub(super) fn padded_length(&self, body: &Body, shared: &Shared) -> Result<u32, Refused> {
        let limit = self.agreement.message_max;
        let length = u32::try_from(body.len()).ok().filter(|length| *length <= limit);
        let length = length.ok_or(Refused::TooLarge { length: body.len(), limit })?;
        Ok(self.agreement.padded(&shared.config.padding, length))
    }

    pub(super) fn next_id(&mut self, now: Time) -> Result<OutgoingId, Refused> {
        match self.lane.stripes.next_id() {
            Ok(right) => return Ok(right),
            Err(AllocationError::Blocked { .. }) => {}
            Err(AllocationError::Exhausted { .. }) => return Err(Refused::UsedUp),
        }
        self.wait_for_ids(now);
        Err(Refused::Blocked)
    }

    /// Asks the peer for ids, unless it has been asked. [`Event::Unblocked`] follows.
    fn wait_for_ids(&mut self, now: Time) {
        if self.lane.blocked.is_none() {
            let retry = RetryTimer::new(now, self.recovery.rto.interval());
            self.pass_timer.set(retry.due);
            self.lane.blocked = Some(Box::new(retry));
            self.ask_for_window();
        }
    }

    /// Bytes of a reply that may come without a grant: with many calls outstanding only record 0.
    fn reply_unscheduled(&self, shared: &Shared) -> u32 {
        let first = self.agreement.geometry.record(u32::MAX, 0).extent;
        let least = u32::from(first) + RECORD_OVERHEAD as u32;
        if self.lane.client.len() >= shared.config.incast_calls {
            least
        } else {
            shared.config.unscheduled.max(least)
        }
    }
}

/// The application's answer to a request.
struct Answer {
    message: OutgoingMessage,
    /// The mark of a failure, if it is one.
    failure: Option<FailureMark>,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallKind {
    pub(crate) is_one_way: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) parts: PartMarks,
}
