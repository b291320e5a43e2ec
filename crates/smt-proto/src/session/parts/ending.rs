// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of calls in parts (SPEC §5.9): by the reply, once all parts were read, or otherwise, and
//! what is left to be read then.

use alloc::vec::Vec;

use bytes::Bytes;
use smt_wire::{AbortCode, MessageId};

use crate::error::{CallFailure, PartViolation};
use crate::event::Event;
use crate::message::part_reader::{HeldReply, PartReader, UntakenParts};
use crate::message::server_rpc::ServerRpcState;
use crate::session::Session;
use crate::session::receive::replies::Reply;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Ends a call whose peer has broken a rule of parts.
    pub(super) fn end_for_violation(
        &mut self,
        now: Time,
        id: MessageId,
        violation: PartViolation,
        shared: &mut Shared,
    ) {
        shared.statistics.violations += 1;
        if self.is_own(id) {
            self.cancel(now, id, CallFailure::MalformedParts(violation), shared);
            return;
        }
        let Some(ServerRpcState::Working { is_delivered, .. }) =
            self.lane.server.get(id.0).map(|served| &served.state)
        else {
            return;
        };
        match is_delivered {
            true => shared.events.push_back(Event::Cancelled(self.rpc(id))),
            false => shared.taken_back += 1,
        }
        self.end_served(now, id, AbortCode::Dropped, shared);
    }

    /// Takes a reply that is whole. Returns it if it ends its call now; else it waits for its parts
    /// to be taken.
    ///
    /// # Errors
    /// It says another number of parts than its call has.
    pub(in crate::session) fn hold_reply(
        &mut self,
        id: MessageId,
        reply: Reply,
        shared: &mut Shared,
    ) -> Result<Option<Reply>, PartViolation> {
        let Some(reader) = self.lane.parts.reader_mut(id) else {
            return Ok(Some(reply));
        };
        reader.end_at(reply.parts)?;
        if reader.is_read() {
            return Ok(Some(reply));
        }
        let before = reader.memory();
        reader.hold_reply(HeldReply {
            body: reply.body,
            failure: reply.failure,
            has_metadata: reply.has_metadata,
        });
        let held = reader.memory();
        self.lane.memory_share.change_parts(before, held, &mut shared.memory);
        self.lane.parts.end_writer(id);
        Ok(None)
    }

    /// Gives up a call of whose request not all parts were sent. A call whose reply has come goes
    /// on: nobody needs the rest of its request.
    pub(crate) fn cut_short(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        if self.is_own(id) && self.lane.parts.writer_mut(id).is_some() {
            self.cancel(now, id, CallFailure::Cancelled, shared);
        }
    }

    /// Leaves the parts of a call of this side that ends without its reply to the application, as
    /// far as they have come in order (SPEC §5.9).
    pub(in crate::session) fn leave_parts(&mut self, id: MessageId, shared: &mut Shared) {
        if self.is_own(id) {
            let UntakenParts { parts, .. } = self.lane.end_reading(id, &mut shared.memory);
            self.tell_parts_left(id, parts, shared);
        }
    }

    /// Ends a call of this side by its reply if that and all parts have come, taken or not.
    pub(in crate::session) fn end_if_whole(&mut self, id: MessageId, shared: &mut Shared) -> bool {
        let reader = self.lane.parts.reader(id).filter(|_| self.is_own(id));
        if !reader.is_some_and(PartReader::is_whole) {
            return false;
        }
        let UntakenParts { parts, reply } = self.lane.end_reading(id, &mut shared.memory);
        self.tell_parts_left(id, parts, shared);
        if let Some(reply) = reply {
            self.end_by_held_reply(id, reply, shared);
        }
        true
    }

    fn tell_parts_left(&self, id: MessageId, parts: Vec<Bytes>, shared: &mut Shared) {
        if !parts.is_empty() {
            let rpc = self.rpc(id);
            shared.events.push_back(Event::PartsLeft { rpc, parts });
        }
    }

    /// Ends a call whose reply has come, if all parts of the reply are taken.
    pub(super) fn end_if_read(&mut self, id: MessageId, shared: &mut Shared) {
        let Some(reader) = self.lane.parts.reader_mut(id) else {
            return;
        };
        let before = reader.memory();
        let reply = reader.take_reply();
        let held = reader.memory();
        self.lane.memory_share.change_parts(before, held, &mut shared.memory);
        let Some(reply) = reply else {
            return;
        };
        self.lane.remove_parts(id, &mut shared.memory);
        self.end_by_held_reply(id, reply, shared);
    }

    fn end_by_held_reply(&mut self, id: MessageId, reply: HeldReply, shared: &mut Shared) {
        let HeldReply { body, failure, has_metadata } = reply;
        self.lane.client.remove_live(id);
        let reply = Reply { body, failure, has_metadata, parts: 0 };
        shared.statistics.messages_delivered += 1;
        self.tell_reply(id, reply, shared);
    }
}
