// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bundles: small messages that wait together leave in one message, of one or two records (SPEC
//! §5.7).
//!
//! A bundle travels as a one-way message does: under an id of its own, repeated until it is
//! acknowledged. Only the ids and kinds of its members are kept here.
//! 1. [`Session::bundle_with_waiting`] puts the messages that wait behind a message into a bundle
//!    with it; a single message leaves alone.
//! 2. At the peer [`Session::open_bundle`] (`session::receive::bundle`) hands out each member as
//!    if it had come alone.
//! 3. A peer that has seen the bundle has all members: [`Session::bundle_arrived`]. An answered
//!    request says so too.

use alloc::boxed::Box;
use alloc::vec::Vec;
use smt_record::{Body, OutgoingId, Padding};
use smt_wire::{
    BUNDLE_RECORDS_MAX, DataHeader, InnerHeader, MemberHeader, MessageId, PacketType,
    RECORD_OVERHEAD,
};

use crate::error::CallError;
use crate::establish::agreement::Agreement;
use crate::limits;
use crate::message::client_message::{Cancelling, Content, HeaderFields, LiveMessage, Members};
use crate::message::outgoing::Outgoing;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::recovery::retry_timer::RetryTimer;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

/// A bundle while it is filled.
struct Filling {
    right: OutgoingId,
    body: Vec<u8>,
    members: Members,
}

impl Filling {
    /// Writes a member behind the others.
    fn append(&mut self, id: MessageId, header_fields: HeaderFields, text: &Body) {
        let header = MemberHeader {
            id,
            kind: header_fields.kind,
            // Record 0 would hold it, which has at most 1,142 bytes.
            length: text.len() as u16,
            deadline_us: header_fields.deadline_us,
            reply_unscheduled: header_fields.reply_unscheduled,
            failure: header_fields.marks.failure(),
            has_metadata: header_fields.marks.has_metadata,
            parts: header_fields.marks.parts,
        };
        let mut place = [0; MemberHeader::LEN];
        header.emit(&mut place);
        self.body.extend_from_slice(&place);
        text.append_to(&mut self.body);
        self.members.ids.push(id);
    }
}

impl Session {
    /// Bundles `first`, which is about to leave, with other small messages that wait. Returns the
    /// bundle's id, or `first` if it leaves alone.
    pub(in crate::session) fn bundle_with_waiting(
        &mut self,
        now: Time,
        first: MessageId,
        shared: &mut Shared,
    ) -> MessageId {
        if self.lane.client.bundles() >= limits::BUNDLES_MAX || !self.agreement.sends_bundles {
            return first;
        }
        let padding = &shared.config.padding;
        let most = self.agreement.bundle_max(padding, self.recovery.pmtud.size());
        let Some(mut filling) = self.fill(now, first, most) else {
            return first;
        };
        shared.statistics.messages_sent += filling.members.ids.len() as u64;
        shared.statistics.bundles_sent += 1;
        let (id, length) = (filling.right.id(), filling.body.len() as u32);
        let padded = self.agreement.padded(&shared.config.padding, length);
        let (geometry, unscheduled) = (self.agreement.geometry, self.agreement.unscheduled);
        // It was made for as much as waited, and other stripes may have ended it.
        if filling.body.capacity() > 2 * filling.body.len() {
            filling.body.shrink_to_fit();
        }
        let body = Body::from(filling.body);
        let outgoing = Outgoing::new(filling.right, body, padded, geometry, unscheduled);
        let retry = RetryTimer::new(now, self.recovery.rto.interval());
        let content = Content::Bundle(Box::new(filling.members));
        let live = LiveMessage::new(content, outgoing, retry);
        self.pass_timer.set(live.due());
        self.lane.client.insert(id, live);
        id
    }

    /// A bundle of `first` and those messages behind it that fit, of the same stripe, at most
    /// `most` bytes. It is `None`, and nothing has changed, if `first` is alone or the window has
    /// no id for a bundle.
    fn fill(&mut self, now: Time, first: MessageId, most: usize) -> Option<Filling> {
        let first_length = self.member_len(first)?;
        let stripe = self.lane.stripes.number_of(first);
        let mut filling: Option<Filling> = None;
        // Nothing is allocated for a message that leaves alone.
        let mut others = Vec::new();
        while let Some((_, id)) = self.lane.sendable.first() {
            let found = filling.as_ref().map_or(1, |filling| filling.members.ids.len());
            // It waits twice if a full window has put it before all others.
            if id == first {
                self.lane.sendable.pop();
                continue;
            }
            if self.lane.stripes.number_of(id) != stripe {
                if others.len() >= OTHERS_PER_MEMBER * found {
                    break;
                }
                others.extend(self.lane.sendable.pop());
                continue;
            }
            if filling.is_none() {
                let length = self.member_len(id);
                if length.is_none_or(|length| first_length + length > most) {
                    break;
                }
                // Those that wait are at least as long.
                let room = most.min(first_length * (self.lane.sendable.len() + 1));
                filling = self.first_member(now, first, room);
            }
            let Some(filling) = filling.as_mut() else {
                break;
            };
            if !self.put_member(now, id, filling, most) {
                break;
            }
            self.lane.sendable.pop();
        }
        others.into_iter().for_each(|other| self.lane.sendable.push(other));
        filling
    }

    /// A bundle of one member; `None` if the window has no id for it.
    fn first_member(&mut self, now: Time, first: MessageId, room: usize) -> Option<Filling> {
        let mut filling = Filling {
            right: self.lane.stripes.of_mut(first).next_id().ok()?,
            body: Vec::with_capacity(room),
            members: Members::default(),
        };
        self.put_member(now, first, &mut filling, room);
        Some(filling)
    }

    /// Bytes that a waiting message takes in a bundle; `None` if it has left, or cannot be bundled.
    fn member_len(&self, id: MessageId) -> Option<usize> {
        let outgoing = if self.lane.stripes.is_own(id) {
            let live = self.lane.client.live(id).filter(|live| !live.is_bundle());
            live?.outgoing.as_ref()?
        } else {
            match &self.lane.server.get(id.0)?.state {
                ServerRpcState::Replying(outgoing) => outgoing,
                _ => return None,
            }
        };
        let length = outgoing.waiting()?.len();
        (length <= self.agreement.member_max()).then_some(MemberHeader::LEN + length)
    }

    /// Makes a waiting message a member, if the bundle then has at most `most` bytes: the message
    /// cannot be sealed under its own id any more.
    fn put_member(&mut self, now: Time, id: MessageId, filling: &mut Filling, most: usize) -> bool {
        // An empty message has a header too.
        let Some(room) = most.checked_sub(filling.body.len() + MemberHeader::LEN) else {
            return false;
        };
        let text_max = room.min(self.agreement.member_max());
        match self.lane.stripes.is_own(id) {
            true => self.put_own_message(now, id, filling, text_max),
            false => self.put_reply(id, filling, text_max),
        }
    }

    fn put_own_message(
        &mut self,
        now: Time,
        id: MessageId,
        filling: &mut Filling,
        text_max: usize,
    ) -> bool {
        let live = self.lane.client.live_mut(id);
        let Some(live) = live.filter(|live| !live.is_bundle()) else {
            return false;
        };
        let header_fields = live.header_fields(now);
        let waiting = live.outgoing.as_ref().and_then(Outgoing::waiting);
        let Some(text) = waiting.filter(|text| text.len() <= text_max) else {
            return false;
        };
        filling.append(id, header_fields, text);
        filling.members.has_others = true;
        filling.members.replies += live.part().map_or(0, |part| part.kept);
        live.bundle = Some(filling.right.id());
        live.outgoing = None;
        true
    }

    fn put_reply(&mut self, id: MessageId, filling: &mut Filling, text_max: usize) -> bool {
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return false;
        };
        let ServerRpcState::Replying(outgoing) = &served.state else {
            return false;
        };
        let waiting = outgoing.waiting();
        let Some(text) = waiting.filter(|text| text.len() <= text_max) else {
            return false;
        };
        filling.append(id, HeaderFields::of_reply(outgoing.marks()), text);
        filling.members.replies += outgoing.length();
        served.state = ServerRpcState::Bundled(filling.right.id());
        true
    }

    /// Counts `count` answered requests of a bundle: the peer has seen it. When all are answered,
    /// no question is needed.
    pub(in crate::session) fn members_answered(
        &mut self,
        bundle: MessageId,
        count: usize,
        shared: &mut Shared,
    ) {
        let Some(live) = self.lane.client.live_mut(bundle) else {
            return;
        };
        let Content::Bundle(members) = &mut live.content else {
            return;
        };
        members.answered += count;
        if members.answered == members.ids.len() {
            // All of them were requests: no reply is kept for it.
            if live.outgoing.as_ref().is_some_and(Outgoing::is_large) {
                self.recovery.pmtud.progressed();
            }
            shared.give_back(live.outgoing.take());
            self.lane.client.remove_live(bundle);
        }
    }

    /// Gives up a bundle of replies about which the peer was asked in vain: they are kept no
    /// longer, like replies that left alone (SPEC §9.4). The bundle's id must be seen all the same,
    /// so it is cancelled.
    pub(in crate::session) fn give_up_bundle(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        let mut retry = RetryTimer::new(now, self.recovery.rto.interval());
        retry.ask(now, limits::RESEND_INTERVAL_MAX);
        let Some(live) = self.lane.client.cancel(id, Cancelling::new(retry)) else {
            return;
        };
        self.lane.control.id(PacketType::Cancel, id);
        self.pass_timer.set(retry.due);
        shared.give_back(live.outgoing);
        let Content::Bundle(members) = live.content else {
            return;
        };
        self.lane.memory_share.leave_replies(members.replies, &mut shared.memory);
        for member in members.ids {
            let bundled = |served: &mut ServerRpc| {
                matches!(served.state, ServerRpcState::Bundled(_)).then_some(())
            };
            self.lane.server.take(member.0, bundled);
        }
    }

    /// Ends a bundle of ours that the peer has opened; with an error, the peer has opened and
    /// forgotten it.
    pub(in crate::session) fn bundle_arrived(
        &mut self,
        now: Time,
        members: Members,
        error: Option<CallError>,
        shared: &mut Shared,
    ) {
        self.lane.memory_share.leave_replies(members.replies, &mut shared.memory);
        for id in members.ids {
            if !self.lane.stripes.is_own(id) {
                let bundled = |served: &mut ServerRpc| {
                    matches!(served.state, ServerRpcState::Bundled(_)).then_some(())
                };
                if self.lane.server.take(id.0, bundled).is_some() {
                    self.liveness.used(now);
                }
                continue;
            }
            // Most were answered meanwhile.
            match self.lane.client.live_mut(id) {
                Some(live) if live.is_request() => {
                    live.is_seen = true;
                    live.bundle = None;
                }
                Some(_) => {
                    let Some(live) = self.lane.client.remove_live(id) else {
                        continue;
                    };
                    self.part_over(&live, shared);
                    match &error {
                        // Its call tells what becomes of a part.
                        _ if live.is_part() => {}
                        Some(error) => {
                            self.report_failure(id, live.is_request(), error.clone(), shared)
                        }
                        None => self.tell_delivered(now, id, live.deadline, shared),
                    }
                }
                None => {}
            }
        }
    }
}

impl Agreement {
    /// Application bytes of the largest bundle with its padding in a datagram of this size.
    fn bundle_max(&self, padding: &Padding, datagram: usize) -> usize {
        let inner = self.bundle_inner_max(datagram);
        let unpadded = inner.saturating_sub(InnerHeader::LEN as u32).min(self.message_max);
        let fits = |length| self.padded(padding, length) <= inner;
        if fits(unpadded) {
            return unpadded as usize;
        }
        // More bytes never have less padding behind them.
        let (mut most, mut too_many) = (0, unpadded);
        while too_many - most > 1 {
            let middle = most.midpoint(too_many);
            if fits(middle) {
                most = middle;
            } else {
                too_many = middle;
            }
        }
        most as usize
    }

    /// Inner bytes of the largest bundle: record 0, and where a datagram holds as much again a
    /// second record. All of it leaves at once, so the peer must take it without a grant.
    fn bundle_inner_max(&self, datagram: usize) -> u32 {
        let first = u32::from(self.geometry.first);
        let stream = (datagram - DataHeader::LEN).min(self.unscheduled as usize);
        let inner = (stream as u32).saturating_sub(BUNDLE_RECORDS_MAX * RECORD_OVERHEAD as u32);
        match inner >= 2 * first {
            true => inner.min(first + u32::from(self.geometry.rest)),
            false => first,
        }
    }

    /// Application bytes of the longest member: what record 0 alone would hold.
    fn member_max(&self) -> usize {
        usize::from(self.geometry.first) - InnerHeader::LEN
    }
}

/// Messages of other stripes that are passed over for each one that is found for a bundle: two heap
/// operations each.
const OTHERS_PER_MEMBER: usize = 16;
