// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of the peer that are whole: to the application, or to what is in them (SPEC §5.4).
//!
//! A message of one record, which most are, is delivered at once; a longer one when its last record
//! has opened. Replies to our calls are in `replies`, a bundle's members in `bundle`.

use bytes::Bytes;
use smt_record::FirstSight;
use smt_wire::{Kind, MessageId, ParseError, PartMarks};

use crate::event::Event;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::metadata::Metadata;
use crate::recovery::retry_timer::RetryTimer;
use crate::session::Session;
use crate::session::parts::ReceivedPart;
use crate::session::timers::caller_quiet_max;
use crate::shared::Shared;
use crate::time::Time;

/// The application bytes of a message that is whole.
pub(in crate::session) struct ReceivedBody {
    pub(in crate::session) bytes: Bytes,
    /// Whether they begin with metadata.
    pub(in crate::session) has_metadata: bool,
}

impl ReceivedBody {
    /// Metadata and body, for an application that may take them later.
    fn split_to_wait(self, shared: &mut Shared) -> Result<(Metadata, Bytes), ParseError> {
        Metadata::split(self.has_metadata, shared.body_to_wait(self.bytes))
    }
}

/// A request of the peer that came whole.
pub(in crate::session) struct NewRequest {
    pub(in crate::session) sight: FirstSight,
    pub(in crate::session) body: ReceivedBody,
    /// Bytes of the reply that the caller takes without a grant.
    pub(in crate::session) reply_unscheduled: u32,
    /// When the caller gives up.
    pub(in crate::session) deadline: Option<Time>,
    pub(in crate::session) parts: PartMarks,
}

/// A request or one-way message that is whole.
pub(in crate::session) struct WholeMessage {
    pub(in crate::session) id: MessageId,
    pub(in crate::session) body: ReceivedBody,
    /// When its sender gives up.
    pub(in crate::session) deadline: Option<Time>,
    pub(in crate::session) parts: PartMarks,
}

impl Session {
    /// Delivers a request that came whole, alone or in a bundle.
    pub(in crate::session) fn take_whole_request(
        &mut self,
        now: Time,
        request: NewRequest,
        shared: &mut Shared,
    ) {
        let NewRequest { sight, body, reply_unscheduled, deadline, parts } = request;
        let id = sight.id();
        let served = ServerRpc {
            state: ServerRpcState::Working { right: sight.reply_right(), is_delivered: false },
            retry: RetryTimer::new(now, self.recovery.rto.interval()),
            reply_unscheduled,
        };
        self.lane.server.insert(id.0, served);
        self.pass_timer.set(now + caller_quiet_max(shared));
        let request = WholeMessage { id, body, deadline, parts };
        self.deliver_request(now, request, shared);
    }

    /// Delivers a message of the peer that is whole.
    pub(in crate::session) fn finish_receiving(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        let rpc = self.rpc(id);
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return;
        };
        let ServerRpcState::Receiving { incoming, .. } = &served.state else {
            return;
        };
        if !incoming.is_complete() {
            shared.seek_grants(now, rpc, incoming);
            return;
        }
        self.lane.memory_share.end_promise(incoming.promised());
        shared.forget(rpc, incoming);
        self.recovery.rto.on_whole_message();
        let ServerRpcState::Receiving { incoming, right, deadline } = served.take_state() else {
            return;
        };
        let kind = incoming.header().kind;
        if kind == Kind::Bundle {
            self.lane.server.remove(id.0);
            self.finish_bundle(now, id, *incoming, shared);
            return;
        }
        let message = WholeMessage {
            id,
            deadline,
            parts: incoming.header().parts,
            body: ReceivedBody {
                has_metadata: incoming.header().has_metadata,
                bytes: incoming.into_body(),
            },
        };
        match right {
            None => {
                self.lane.server.remove(id.0);
                match kind {
                    Kind::Part => self.deliver_part(now, message, shared),
                    _ => self.deliver_one_way(now, message, shared),
                }
            }
            Some(right) => {
                served.state = ServerRpcState::Working { right, is_delivered: false };
                self.pass_timer.set(now + caller_quiet_max(shared));
                self.deliver_request(now, message, shared);
            }
        }
    }

    /// Delivers a request that is whole and waits for its reply.
    fn deliver_request(&mut self, now: Time, request: WholeMessage, shared: &mut Shared) {
        let WholeMessage { id, body, deadline, parts } = request;
        if shared.is_draining || self.expiry.has_ended(now) {
            // It waits for its reply, so this cannot be refused.
            let _ = self.abort(now, id, smt_wire::AbortCode::ShuttingDown, shared);
            return;
        }
        let Ok((metadata, body)) = body.split_to_wait(shared) else {
            shared.statistics.violations += 1;
            // The same.
            let _ = self.abort(now, id, smt_wire::AbortCode::Dropped, shared);
            return;
        };
        shared.statistics.messages_delivered += 1;
        self.serve_parts(id, parts, shared);
        shared.events.push_back(Event::Request {
            rpc: self.rpc(id),
            body,
            metadata,
            deadline,
            parts,
            is_early: self.was_early(id),
        });
    }

    /// Delivers a part that came alone and is whole, and acknowledges it.
    pub(in crate::session) fn deliver_part(
        &mut self,
        now: Time,
        message: WholeMessage,
        shared: &mut Shared,
    ) {
        self.lane.control.ack(self.lane.stripes.ack_of(message.id));
        self.take_whole_part(now, message, shared);
    }

    /// Takes a part that is whole. It counts as delivered, though its call may be over.
    pub(in crate::session) fn take_whole_part(
        &mut self,
        now: Time,
        message: WholeMessage,
        shared: &mut Shared,
    ) {
        let Some(parts) = self.lane.stripes.split(message.id) else {
            return;
        };
        let window = &mut self.lane.stripes.of_mut(message.id).window;
        window.mark_delivered(parts.counter);
        let part = ReceivedPart { marks: message.parts, bytes: message.body.bytes };
        self.tell_part(now, part, shared);
    }

    /// Delivers a one-way message that came alone and is whole, and acknowledges it.
    pub(in crate::session) fn deliver_one_way(
        &mut self,
        now: Time,
        message: WholeMessage,
        shared: &mut Shared,
    ) {
        self.lane.control.ack(self.lane.stripes.ack_of(message.id));
        self.tell_one_way(now, message, shared);
    }

    /// Tells the application of a one-way message that is whole, unless its time has passed: nobody
    /// needs any more of it then, and it counts as delivered to its sender (SPEC §9.5).
    pub(in crate::session) fn tell_one_way(
        &mut self,
        now: Time,
        message: WholeMessage,
        shared: &mut Shared,
    ) {
        let WholeMessage { id, body, deadline, .. } = message;
        let Some(parts) = self.lane.stripes.split(id) else {
            return;
        };
        let window = &mut self.lane.stripes.of_mut(id).window;
        window.mark_delivered(parts.counter);
        let is_late = deadline.is_some_and(|deadline| deadline < now);
        if is_late || self.expiry.has_ended(now) {
            shared.statistics.messages_expired += 1;
            return;
        }
        let Ok((metadata, body)) = body.split_to_wait(shared) else {
            shared.statistics.violations += 1;
            return;
        };
        shared.statistics.messages_delivered += 1;
        let rpc = self.rpc(id);
        shared.events.push_back(Event::OneWay { rpc, body, metadata, deadline });
    }
}
