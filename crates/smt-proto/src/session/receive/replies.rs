// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA of replies to our calls (SPEC §5.4, §9.4).
//!
//! The first record that opens acknowledges the request; the whole reply ends the call, and its
//! acknowledgement waits for a message to ride in.

use alloc::boxed::Box;
use bytes::Bytes;
use smt_wire::{FailureMark, Kind, MessageId};

use super::data::{accept, piece, reordered_piece};
use crate::error::{CallError, CallFailure, Execution};
use crate::event::Event;
use crate::failure::Failure;
use crate::message::arrived_data::ArrivedData;
use crate::message::client_message::Content;
use crate::message::incoming::{Incoming, Message, Piece};
use crate::message::outgoing::Outgoing;
use crate::metadata::Metadata;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Takes DATA of a reply to a call of ours.
    pub(in crate::session) fn handle_reply_data(
        &mut self,
        now: Time,
        id: MessageId,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let Some(live) = self.lane.client.live(id) else {
            shared.statistics.packets_duplicate += 1;
            return;
        };
        if self.lane.parts.has_reply(id) {
            shared.statistics.packets_duplicate += 1;
            return;
        }
        if live.incoming().is_none() {
            self.open_reply(now, id, data, shared);
        } else if self.take_reply_data(now, id, piece(data), shared) {
            // Only a record that opens earns the reply a place among the messages that are granted.
            self.finish_reply(now, id, shared);
        }
    }

    /// Opens record 0 of a reply. The first record of a reply acknowledges its request.
    fn open_reply(
        &mut self,
        now: Time,
        id: MessageId,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let Some(first) = self.open_first_record(now, id, data, shared) else {
            return;
        };
        let Some(live) = self.lane.client.live_mut(id) else {
            return;
        };
        if first.header.kind != Kind::Reply || !live.is_request() {
            shared.statistics.violations += 1;
            return;
        }
        if live.outgoing.as_ref().is_some_and(Outgoing::is_large) {
            self.recovery.pmtud.progressed();
        }
        shared.give_back(live.outgoing.take());
        live.is_seen = true;
        let retransmit = data.header.retransmit;
        if !retransmit {
            live.retry.reply_sample(now, &mut self.recovery.rto);
        }
        live.retry.came(now, &mut self.recovery.rto, retransmit);
        self.first_came(&first, data, shared);
        self.liveness.answered(now);
        self.liveness.used(now);
        self.take_ride(now, id, &first.header, shared);
        match first.message {
            Message::Whole(body) => {
                // Other packets that came of the id belong to no message.
                self.lane.reordered.forget(id, &mut shared.reordered_memory);
                self.end_with_reply(
                    id,
                    Reply {
                        body,
                        failure: first.header.failure,
                        has_metadata: first.header.has_metadata,
                        parts: first.header.parts.number,
                    },
                    shared,
                );
            }
            Message::Part(incoming) => {
                self.receive_rest_of_reply(now, incoming, data, shared);
            }
        }
    }

    /// Takes the other packets of a longer reply, whose record 0 has opened.
    fn receive_rest_of_reply(
        &mut self,
        now: Time,
        mut incoming: Box<Incoming>,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let id = data.header.id;
        let live = self.lane.client.live_mut(id);
        let Some(Content::Request(reply)) = live.map(|live| &mut live.content) else {
            return;
        };
        incoming.allow(reply.unscheduled, 0);
        shared.memory.enter(&incoming);
        reply.incoming = Some(incoming);
        self.take_reply_data(now, id, piece(data), shared);
        for packet in self.lane.reordered.take(id, &mut shared.reordered_memory) {
            match packet.payload.is_empty() {
                true => self.note_trimmed(now, self.trimmed(&packet.header), shared),
                false => {
                    self.take_reply_data(now, id, reordered_piece(&packet), shared);
                }
            }
        }
        self.first_opened(now, id, shared);
        self.finish_reply(now, id, shared);
    }

    /// Gives a piece to a reply. Returns whether a record has opened.
    fn take_reply_data(
        &mut self,
        now: Time,
        id: MessageId,
        piece: Piece<'_>,
        shared: &mut Shared,
    ) -> bool {
        let Some(live) = self.lane.client.live_mut(id) else {
            return false;
        };
        let Some(incoming) = live.incoming_mut() else {
            return false;
        };
        let bits = self.agreement.receive_bits;
        let has_opened = accept(incoming, self.keys.of_message(id, bits), piece, shared);
        if has_opened {
            let (retransmit, length) = (piece.retransmit, piece.payload.len());
            live.retry.came(now, &mut self.recovery.rto, retransmit);
            self.liveness.answered(now);
            self.liveness.used(now);
            self.recovery.payload_opened(length);
        }
        has_opened
    }

    /// Delivers a reply that is whole.
    fn finish_reply(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let rpc = self.rpc(id);
        let live = self.lane.client.live_mut(id);
        let Some(Content::Request(reply)) = live.map(|live| &mut live.content) else {
            return;
        };
        let Some(incoming) = reply.incoming.as_deref() else {
            return;
        };
        if !incoming.is_complete() {
            shared.seek_grants(now, rpc, incoming);
            return;
        }
        shared.forget(rpc, incoming);
        if let Some(incoming) = reply.incoming.take() {
            self.end_with_reply(
                id,
                Reply {
                    failure: incoming.header().failure,
                    has_metadata: incoming.header().has_metadata,
                    parts: incoming.header().parts.number,
                    body: incoming.into_body(),
                },
                shared,
            );
        }
    }

    /// Ends a call that has its whole reply.
    pub(super) fn end_with_reply(&mut self, id: MessageId, reply: Reply, shared: &mut Shared) {
        let Some(reply) = self.hold_reply(id, reply, shared).transpose() else {
            let bundle = self.lane.client.live_mut(id).and_then(|live| live.bundle.take());
            self.answered_whole(id, bundle, shared);
            return;
        };
        let Some(bundle) = self.lane.client.take_request(id, |live| Some(live.bundle)) else {
            return;
        };
        self.leave_parts(id, shared);
        self.answered_whole(id, bundle, shared);
        match reply {
            Ok(reply) => {
                shared.statistics.messages_delivered += 1;
                self.tell_reply(id, reply, shared);
            }
            Err(violation) => {
                self.tell_malformed(id, CallFailure::MalformedParts(violation), shared);
            }
        }
    }

    /// Notes that a reply has come whole, to a call that has left in this bundle or alone.
    fn answered_whole(&mut self, id: MessageId, bundle: Option<MessageId>, shared: &mut Shared) {
        self.recovery.rto.on_whole_message();
        self.lane.stripes.ack_later(id);
        if let Some(bundle) = bundle {
            self.members_answered(bundle, 1, shared);
        }
    }

    /// Tells the application of a reply, which ends its call.
    pub(in crate::session) fn tell_reply(&self, id: MessageId, reply: Reply, shared: &mut Shared) {
        let rpc = self.rpc(id);
        let outcome = Metadata::split(reply.has_metadata, reply.body);
        let event = match (outcome, reply.failure) {
            (Ok((metadata, body)), None) => Event::Reply { rpc, body, metadata },
            (Ok((metadata, text)), Some(mark)) => Event::CallFailed {
                rpc,
                error: CallError::failed(Failure::from_reply(mark, &text, metadata)),
            },
            (Err(_), _) => return self.tell_malformed(id, CallFailure::Malformed, shared),
        };
        shared.events.push_back(event);
    }

    /// Tells the application that a call has ended by a reply that breaks a rule.
    fn tell_malformed(&self, id: MessageId, reason: CallFailure, shared: &mut Shared) {
        shared.statistics.violations += 1;
        let error = CallError { reason, execution: Execution::MayHaveRun };
        let rpc = self.rpc(id);
        shared.events.push_back(Event::CallFailed { rpc, error });
    }
}

/// A reply that is whole.
pub(in crate::session) struct Reply {
    pub(in crate::session) body: Bytes,
    /// Its mark, if it is a failure.
    pub(in crate::session) failure: Option<FailureMark>,
    pub(in crate::session) has_metadata: bool,
    /// How many parts belong to it.
    pub(in crate::session) parts: u32,
}
