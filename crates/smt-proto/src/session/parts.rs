// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls in parts (SPEC §5.9): parts of a request or of a reply, each a message of its own.
//!
//! 1. A call gets a reader for the parts of its reply and a writer for those of its request; at the
//!    server it is the other way round. Both end with the call.
//! 2. A part leaves as a one-way message does, once its reader's window has room for it.
//! 3. A part that has come is put in order by its number; the application takes it, which moves the
//!    window.
//! 4. A reply that comes before the last of its parts is taken waits for that.
//! 5. A call that ends otherwise leaves the parts that have come in order to its application; if
//!    the reply and all parts have come, it ends by the reply.
//!
//! Not here: the memory of parts of replies until they are acknowledged (`kept_parts`).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use smt_record::Body;
use smt_wire::{
    AbortCode, MessageId, PART_OVERHEAD, PART_PREFIX_LEN, PacketType, PartMarks, PartWindow,
};

use super::Session;
use super::lane::Lane;
use super::receive::replies::Reply;
use crate::error::{CallFailure, PartViolation, Refused};
use crate::event::Event;
use crate::limits::RESEND_INTERVAL_MAX;
use crate::memory::accounting::MemoryAccount;
use crate::message::client_message::{Content, LiveMessage};
use crate::message::outgoing::{Marks, Outgoing};
use crate::message::part_reader::{
    HeldReply, NumberedPart, PartReader, PartsOf, TakenPart, UntakenParts,
};
use crate::message::part_writer::{NoPart, PartWriter};
use crate::message::server_rpc::ServerRpcState;
use crate::recovery::retry_timer::RetryTimer;
use crate::shared::Shared;
use crate::time::Time;

/// The calls in parts of a session, of both sides. Few sessions have any.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "an idle session is to be small")]
pub(super) struct CallsInParts(Option<Box<BTreeMap<MessageId, CallInParts>>>);

/// The two directions of a call in parts.
#[derive(Debug)]
struct CallInParts {
    reader: Option<PartReader>,
    writer: Option<PartWriter>,
}

impl CallInParts {
    /// The bytes that parts hold which wait for the application.
    fn memory(&self) -> usize {
        self.reader.as_ref().map_or(0, PartReader::memory)
    }
}

impl CallsInParts {
    fn insert(&mut self, id: MessageId, call: CallInParts) {
        self.0.get_or_insert_default().insert(id, call);
    }

    fn get_mut(&mut self, id: MessageId) -> Option<&mut CallInParts> {
        self.0.as_mut()?.get_mut(&id)
    }

    fn get(&self, id: MessageId) -> Option<&CallInParts> {
        self.0.as_ref()?.get(&id)
    }

    fn reader_mut(&mut self, id: MessageId) -> Option<&mut PartReader> {
        self.get_mut(id)?.reader.as_mut()
    }

    pub(super) fn writer_mut(&mut self, id: MessageId) -> Option<&mut PartWriter> {
        self.get_mut(id)?.writer.as_mut()
    }

    fn reader(&self, id: MessageId) -> Option<&PartReader> {
        self.get(id)?.reader.as_ref()
    }

    /// Whether the reply of a call has come, which waits for its parts.
    pub(super) fn has_reply(&self, id: MessageId) -> bool {
        self.reader(id).is_some_and(PartReader::has_reply)
    }

    /// Forgets the writer of a request that was answered.
    fn end_writer(&mut self, id: MessageId) {
        if let Some(call) = self.get_mut(id) {
            call.writer = None;
        }
    }

    /// Whether a call is in parts, in either direction.
    pub(super) fn contains(&self, id: MessageId) -> bool {
        self.get(id).is_some()
    }

    /// Whether the application of this side can take nothing of a call before this part: the part
    /// is then taken although memory is full, since it is what the application gets on by.
    pub(super) fn is_starved_of(&self, request: MessageId, number: u32) -> bool {
        let reader = self.reader(request);
        reader.is_some_and(|reader| reader.is_starved_of(number))
    }

    /// How many parts of its reply this side has sent.
    pub(super) fn sent(&self, id: MessageId) -> u32 {
        let writer = self.get(id).and_then(|call| call.writer.as_ref());
        writer.map_or(0, PartWriter::count)
    }

    /// Takes a call out that is over.
    fn remove(&mut self, id: MessageId) -> Option<CallInParts> {
        let calls = self.0.as_mut()?;
        let call = calls.remove(&id);
        if calls.is_empty() {
            self.0 = None;
        }
        call
    }

    /// Forgets all calls. Returns the bytes that their parts held.
    #[must_use]
    fn clear(&mut self) -> usize {
        let Some(calls) = self.0.take() else { return 0 };
        let mut held = 0;
        for call in calls.into_values() {
            held += call.memory();
        }
        held
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn writers_mut(&mut self) -> impl Iterator<Item = (MessageId, &mut PartWriter)> {
        let calls = self.0.iter_mut().flat_map(|calls| calls.iter_mut());
        calls.filter_map(|(id, call)| Some((*id, call.writer.as_mut()?)))
    }
}

impl Lane {
    /// Forgets a call in parts that is over, and the parts that wait.
    pub(super) fn remove_parts(&mut self, id: MessageId, account: &mut MemoryAccount) {
        let held = self.parts.remove(id).map_or(0, |call| call.memory());
        self.memory_share.change_parts(held, 0, account);
    }

    /// Ends the reading of a call's parts. Returns what the application can still get.
    fn end_reading(&mut self, id: MessageId, account: &mut MemoryAccount) -> UntakenParts {
        let Some(call) = self.parts.remove(id) else {
            return UntakenParts::default();
        };
        self.memory_share.change_parts(call.memory(), 0, account);
        call.reader.map(PartReader::into_untaken).unwrap_or_default()
    }

    /// Forgets all calls in parts.
    pub(super) fn clear_parts(&mut self, account: &mut MemoryAccount) {
        let held = self.parts.clear();
        self.memory_share.change_parts(held, 0, account);
    }
}

/// A part to be sent.
#[derive(Debug)]
pub(crate) struct OutgoingPart {
    pub(crate) body: Body,
    /// Whether parts follow.
    pub(crate) more: bool,
}

impl Session {
    /// The parts of a call that this side begins with these marks.
    ///
    /// # Errors
    /// The peer takes no parts.
    pub(super) fn check_parts(&self, marks: PartMarks) -> Result<(), Refused> {
        let is_in_parts = marks.more || marks.reply_in_parts;
        match is_in_parts && !self.agreement.has_parts() {
            true => Err(Refused::NoParts),
            false => Ok(()),
        }
    }

    /// Bytes of the longest part that the peer accepts.
    pub(crate) fn part_max(&self) -> u32 {
        self.agreement.part_max()
    }

    /// Notes that a call of this side has begun, with these marks.
    pub(super) fn begin_parts(&mut self, id: MessageId, marks: PartMarks, shared: &Shared) {
        if !marks.more && !marks.reply_in_parts {
            return;
        }
        let width = shared.config.part_window;
        let call = CallInParts {
            reader: marks.reply_in_parts.then(|| PartReader::new(width, PartsOf::Reply)),
            // The server tells how far parts may be sent when its application reads them.
            writer: marks.more.then(|| PartWriter::new(id, 0)),
        };
        self.lane.parts.insert(id, call);
    }

    /// Notes that a request of the peer has come, with these marks.
    pub(super) fn serve_parts(&mut self, id: MessageId, marks: PartMarks, shared: &mut Shared) {
        if !marks.more && !marks.reply_in_parts {
            return;
        }
        if !self.agreement.has_parts() {
            shared.statistics.violations += 1;
            return;
        }
        let limit = u64::from(self.agreement.peer_part_window);
        let call = CallInParts {
            reader: marks
                .more
                .then(|| PartReader::new(shared.config.part_window, PartsOf::Request)),
            writer: marks.reply_in_parts.then(|| PartWriter::new(id, limit)),
        };
        self.lane.parts.insert(id, call);
    }

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
        let why_not = self.why_no_writer(id);
        let writer = self.lane.parts.writer_mut(id).ok_or(why_not)?;
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

    /// Why a call has no writer of parts on this side, if it has none.
    fn why_no_writer(&self, id: MessageId) -> Refused {
        let served = self.lane.server.get(id.0);
        match served.is_some_and(|served| matches!(served.state, ServerRpcState::Working { .. })) {
            true if !self.is_own(id) => Refused::NoParts,
            _ => Refused::NoRpc,
        }
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
    pub(super) fn part_window_told(&mut self, window: PartWindow, shared: &mut Shared) {
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

    /// Takes PART_WINDOW_REQUEST. It is not inlined, for the same reason.
    #[inline(never)]
    pub(super) fn part_window_asked(&mut self, id: MessageId, shared: &mut Shared) {
        if self.checked(id, shared).is_none() {
            return;
        }
        let reader = self.lane.parts.reader_mut(id);
        if let Some(limit) = reader.and_then(PartReader::limit_asked) {
            self.lane.control.part_window(PartWindow { id, limit });
        }
    }

    /// Asks for room in the windows for which the application waits (SPEC §5.9).
    pub(super) fn repeat_part_window_requests(&mut self, now: Time) {
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

    /// Tells the application of a part of the peer that is whole: nobody needs any more of it.
    pub(super) fn tell_part(&mut self, now: Time, part: ReceivedPart, shared: &mut Shared) {
        let ReceivedPart { marks, mut bytes } = part;
        let Ok(request) = smt_wire::request_of_part(&bytes) else {
            shared.statistics.violations += 1;
            return;
        };
        let body = shared.body_to_wait(bytes.split_off(PART_PREFIX_LEN));
        // The call may be over: then nobody waits for its parts.
        let Some(reader) = self.lane.parts.reader_mut(request) else {
            return;
        };
        let before = reader.memory();
        let part = NumberedPart { number: marks.number, more: marks.more, body };
        let outcome = reader.accept(part);
        let held = reader.memory();
        self.lane.memory_share.change_parts(before, held, &mut shared.memory);
        match outcome {
            Ok(is_ready) => {
                shared.statistics.parts_delivered += 1;
                self.part_came(now, request);
                if is_ready {
                    let rpc = self.rpc(request);
                    shared.events.push_back(Event::PartReady(rpc));
                }
            }
            Err(violation) => self.end_for_violation(now, request, violation, shared),
        }
    }

    /// A part of a reply says what BUSY says: the request has arrived, and the peer works on it.
    fn part_came(&mut self, now: Time, request: MessageId) {
        self.peer_is_busy(request);
        if let Some(live) = self.lane.client.live_mut(request) {
            live.retry.answered(now);
        }
    }

    /// Ends a call whose peer has broken a rule of parts.
    fn end_for_violation(
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

    /// Gives the next part of a call to the application, if it has come. The window moves.
    pub(crate) fn take_part(
        &mut self,
        id: MessageId,
        shared: &mut Shared,
    ) -> Result<Option<TakenPart>, Refused> {
        let is_own = self.is_own(id);
        let reader = self.lane.parts.reader_mut(id).ok_or(Refused::NoRpc)?;
        let before = reader.memory();
        let taken = reader.take();
        let held = reader.memory();
        if let Some(limit) = reader.limit_to_tell() {
            self.lane.control.part_window(PartWindow { id, limit });
        }
        self.lane.memory_share.change_parts(before, held, &mut shared.memory);
        if is_own {
            self.end_if_read(id, shared);
        }
        // The end of a reply is an event of its own.
        Ok(taken.filter(|taken| !is_own || *taken != TakenPart::End))
    }

    /// Takes a reply that is whole. Returns it if it ends its call now; else it waits for its parts
    /// to be taken.
    ///
    /// # Errors
    /// It says another number of parts than its call has.
    pub(super) fn hold_reply(
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
    pub(super) fn leave_parts(&mut self, id: MessageId, shared: &mut Shared) {
        if self.is_own(id) {
            let UntakenParts { parts, .. } = self.lane.end_reading(id, &mut shared.memory);
            self.tell_parts_left(id, parts, shared);
        }
    }

    /// Ends a call of this side by its reply if that and all parts have come, taken or not.
    pub(super) fn end_if_whole(&mut self, id: MessageId, shared: &mut Shared) -> bool {
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
    fn end_if_read(&mut self, id: MessageId, shared: &mut Shared) {
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

/// A part of the peer that is whole.
pub(super) struct ReceivedPart {
    pub(super) marks: PartMarks,
    /// Its application bytes, the id of the request in front.
    pub(super) bytes: Bytes,
}

impl crate::establish::agreement::Agreement {
    /// Whether both sides take parts.
    pub(super) fn has_parts(&self) -> bool {
        self.peer_part_window > 0
    }

    /// Bytes of the longest part that the peer accepts.
    pub(super) fn part_max(&self) -> u32 {
        let by_window = self.peer_part_window.saturating_sub(PART_OVERHEAD);
        let by_message = self.message_max.saturating_sub(PART_PREFIX_LEN as u32);
        by_window.min(by_message)
    }
}
