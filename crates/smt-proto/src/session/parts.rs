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

mod ending;
mod sending;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use bytes::Bytes;
use smt_wire::{MessageId, PART_OVERHEAD, PART_PREFIX_LEN, PartMarks, PartWindow};

use super::Session;
use super::lane::Lane;
use crate::error::Refused;
use crate::event::Event;
use crate::memory::accounting::MemoryAccount;
use crate::message::part_reader::{NumberedPart, PartReader, PartsOf, TakenPart, UntakenParts};
use crate::message::part_writer::PartWriter;
use crate::shared::Shared;
use crate::time::Time;

pub(crate) use sending::OutgoingPart;

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

    /// Takes PART_WINDOW_REQUEST. It is not inlined, since it would need room in the stack frame of
    /// all control packets.
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
