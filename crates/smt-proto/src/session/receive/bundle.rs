// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bundle of the peer, from its opened record to its members (SPEC §5.7).
//!
//! All members are looked at before the first is taken; then each is judged alone, by its id and by
//! what waits for it.

use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use smt_record::IdParts;
use smt_wire::{BUNDLE_RECORDS_MAX, InnerHeader, Kind, MemberHeader, Members, MessageId};

use super::data::{accept, piece};
use super::delivery::{NewRequest, ReceivedBody, WholeMessage};
use super::replies::Reply;
use crate::message::arrived_data::ArrivedData;
use crate::message::incoming::{FirstRecord, Incoming, Message};
use crate::message::server_rpc::ServerRpc;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Takes record 0 of a bundle of the peer, which has opened. A bundle leaves in one packet;
    /// only a repetition comes in several.
    pub(in crate::session) fn handle_new_bundle(
        &mut self,
        now: Time,
        first: FirstRecord,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let id = data.header.id;
        if !self.agreement.takes_bundles {
            shared.statistics.violations += 1;
            return;
        }
        let mut incoming = match first.message {
            Message::Whole(body) => {
                self.lane.reordered.forget(id, &mut shared.reordered_memory);
                let bundle = WholeBundle {
                    id,
                    header: first.header,
                    body,
                    is_again: data.header.retransmit,
                };
                self.open_bundle(now, &bundle, shared);
                return;
            }
            Message::Part(incoming) => incoming,
        };
        if incoming.records() > BUNDLE_RECORDS_MAX {
            shared.statistics.violations += 1;
            return;
        }
        incoming.allow(shared.config.unscheduled, 0);
        let bits = self.agreement.receive_bits;
        shared.memory.enter(&incoming);
        accept(&mut incoming, self.keys.of_message(id, bits), piece(data), shared);
        shared.memory.leave(&incoming);
        if incoming.is_complete() {
            self.lane.reordered.forget(id, &mut shared.reordered_memory);
            let bundle = WholeBundle {
                id,
                header: first.header,
                body: incoming.into_body(),
                is_again: data.header.retransmit,
            };
            self.open_bundle(now, &bundle, shared);
            return;
        }
        self.liveness.answered(now);
        let is_live = |held: MessageId| self.lane.server.contains(held.0);
        if self.lane.memory_share.may_begin(self.lane.memory(shared))
            || self.lane.memory_share.reserve.take(id, is_live)
        {
            // Its id is marked when all of it is there: until then it may be forgotten, and comes
            // again.
            shared.memory.enter(&incoming);
            self.insert_served(now, id, incoming, None);
            self.receive_reordered(now, id, shared);
        } else {
            shared.statistics.memory_refusals += 1;
        }
    }

    /// Takes a bundle that has come in several packets and is whole.
    pub(in crate::session) fn finish_bundle(
        &mut self,
        now: Time,
        id: MessageId,
        incoming: Incoming,
        shared: &mut Shared,
    ) {
        let bundle = WholeBundle {
            id,
            header: *incoming.header(),
            body: incoming.into_body(),
            is_again: true,
        };
        self.open_bundle(now, &bundle, shared);
    }

    /// Takes a bundle of the peer that has opened: all of it or nothing. Where there is no room for
    /// its new messages only its replies are taken, since they make room. The bundle is then
    /// treated as if it had not come, and comes again.
    pub(in crate::session) fn open_bundle(
        &mut self,
        now: Time,
        bundle: &WholeBundle,
        shared: &mut Shared,
    ) {
        let id = bundle.id;
        let Some(IdParts { counter, stripe, .. }) = self.lane.stripes.split(id) else {
            return;
        };
        let Ok(members) = Members::parse(&bundle.body) else {
            shared.statistics.violations += 1;
            return;
        };
        let newcomers = members.newcomers();
        let mut untaken = Some(members);
        let memory = self.lane.memory(shared);
        let share = &self.lane.memory_share;
        let takes_parts = !share.has_too_many_parts(memory)
            || members.into_iter().all(|(member, _)| member.kind != Kind::Part);
        let has_room = takes_parts
            && !share.serves_too_much(memory)
            && share.has_room_for_whole(newcomers, memory);
        if newcomers > 0 && !has_room {
            shared.statistics.memory_refusals += 1;
            self.liveness.answered(now);
            // Their taking makes room.
            let (mut needed, mut is_left) = (Vec::new(), false);
            for (member, place) in members {
                if member.kind == Kind::Reply || self.is_starved_of_member(bundle, &member, &place)
                {
                    needed.push((member, place));
                } else {
                    is_left |= !self.is_member_seen(&member);
                }
            }
            self.take_members(now, bundle, needed.into_iter(), shared);
            // One of which all was taken by and by is like one that was taken as a whole.
            if is_left {
                return;
            }
            untaken = None;
        }
        let window = &mut self.lane.stripes.at(stripe).window;
        if window.mark_seen(counter).is_none() {
            return;
        }
        window.mark_delivered(counter);
        self.liveness.answered(now);
        self.take_ride(now, id, &bundle.header, shared);
        let (calls, parts) = (self.lane.client.len(), shared.statistics.parts_delivered);
        if let Some(members) = untaken {
            self.take_members(now, bundle, members, shared);
        }
        // A request is followed by a reply in which the acknowledgement rides. Nothing need follow
        // a part for long, and its sender keeps it meanwhile.
        match untaken.is_none() || shared.statistics.parts_delivered > parts {
            true => self.lane.control.ack(self.lane.stripes.ack_of(id)),
            false => self.lane.stripes.ack_later(id),
        }
        if newcomers > 0 || self.lane.client.len() < calls {
            self.liveness.used(now);
        }
        self.first_opened(now, id, shared);
        self.tell_window(stripe);
    }

    /// Takes members of a bundle, each as if it had come alone. They came in one packet, and were
    /// lost in one if they come again.
    fn take_members(
        &mut self,
        now: Time,
        bundle: &WholeBundle,
        members: impl Iterator<Item = (MemberHeader, Range<usize>)>,
        shared: &mut Shared,
    ) {
        let stripe = self.lane.stripes.number_of(bundle.id);
        let is_again = bundle.is_again;
        let mut is_telling = false;
        let mut answered = Answered { is_again, ..Answered::default() };
        for (header, place) in members {
            let parts = self.lane.stripes.split(header.id);
            let Some(parts) = parts.filter(|parts| parts.stripe == stripe) else {
                shared.statistics.violations += 1;
                continue;
            };
            let body = bundle.body.slice(place);
            let member = Member { header: &header, parts, body };
            if header.kind == Kind::Reply {
                is_telling |= self.take_member_reply(now, member, &mut answered, shared);
            } else {
                self.take_member_message(now, member, shared);
            }
        }
        self.note_answered(&mut answered, shared);
        if is_telling {
            self.recovery.rto.answered(now, is_again);
        }
    }

    /// Whether a member was seen. One with an id that nobody has is never taken.
    fn is_member_seen(&mut self, member: &MemberHeader) -> bool {
        let parts = self.lane.stripes.split(member.id);
        parts.is_none_or(|parts| self.lane.stripes.at(parts.stripe).window.is_seen(parts.counter))
    }

    /// Whether a member is a part that the application of this side waits for.
    fn is_starved_of_member(
        &self,
        bundle: &WholeBundle,
        member: &MemberHeader,
        place: &Range<usize>,
    ) -> bool {
        let request = smt_wire::request_of_part(&bundle.body[place.clone()]).ok();
        let number = member.parts.number;
        member.kind == Kind::Part
            && request.is_some_and(|request| self.lane.parts.is_starved_of(request, number))
    }

    /// Takes a request that came as early data, as a member of a bundle.
    pub(in crate::session) fn take_early_request(
        &mut self,
        now: Time,
        header: &MemberHeader,
        body: Bytes,
        shared: &mut Shared,
    ) {
        if let Some(parts) = self.lane.stripes.split(header.id) {
            let member = Member { header, parts, body };
            self.take_member_message(now, member, shared);
        }
    }

    /// Takes a request, one-way message or part of the peer.
    fn take_member_message(&mut self, now: Time, member: Member<'_>, shared: &mut Shared) {
        let Member { header, parts, body } = member;
        let id = header.id;
        if parts.initiator == self.agreement.side {
            shared.statistics.violations += 1;
            return;
        }
        let window = &mut self.lane.stripes.at(parts.stripe).window;
        if window.is_seen(parts.counter) {
            // The request was given up, and VOIDED answered that.
            shared.statistics.packets_duplicate += 1;
            return;
        }
        // The id of a bundle that is incomplete is unseen, and no message's.
        if self.lane.server.contains(id.0) {
            shared.statistics.violations += 1;
            return;
        }
        let Some(sight) = window.mark_seen(parts.counter) else {
            shared.statistics.violations += 1;
            return;
        };
        self.recovery.rto.on_whole_message();
        let deadline = ServerRpc::deadline_of(now, header.deadline_us);
        let body = ReceivedBody { bytes: body, has_metadata: header.has_metadata };
        if matches!(header.kind, Kind::OneWay | Kind::Part) {
            let message = WholeMessage { id, body, deadline, parts: header.parts };
            match header.kind {
                Kind::Part => self.take_whole_part(now, message, shared),
                _ => self.tell_one_way(now, message, shared),
            }
            return;
        }
        let request = NewRequest {
            sight,
            body,
            reply_unscheduled: header.reply_unscheduled,
            deadline,
            parts: header.parts,
        };
        self.take_whole_request(now, request, shared);
    }

    /// Takes a reply to a call of ours. It counts only if the call is live and its reply has not
    /// begun otherwise. Returns whether it was asked for and tells of the interval.
    fn take_member_reply(
        &mut self,
        now: Time,
        member: Member<'_>,
        answered: &mut Answered,
        shared: &mut Shared,
    ) -> bool {
        let id = member.header.id;
        if self.lane.parts.contains(id) {
            return self.take_member_reply_in_parts(now, member, answered.is_again, shared);
        }
        let ended = self.lane.client.take_request(id, |live| {
            let waits = live.waits_for_reply();
            waits.then(|| (live.outgoing.take(), live.bundle, live.retry))
        });
        let Some((outgoing, bundle, retry)) = ended else {
            shared.statistics.packets_duplicate += 1;
            return false;
        };
        self.recovery.rto.on_whole_message();
        if !answered.is_again {
            retry.reply_sample(now, &mut self.recovery.rto);
        }
        if let Some(outgoing) = outgoing {
            if outgoing.is_large() {
                self.recovery.pmtud.progressed();
            }
            shared.give_back(Some(outgoing));
        }
        if answered.bundle != bundle {
            self.note_answered(answered, shared);
            answered.bundle = bundle;
        }
        answered.count += 1;
        shared.statistics.messages_delivered += 1;
        self.tell_reply(id, member.into_reply(), shared);
        retry.is_telling(now, &self.recovery.rto, answered.is_again)
    }

    /// Takes a reply to a call in parts, as one that came alone.
    #[cold]
    fn take_member_reply_in_parts(
        &mut self,
        now: Time,
        member: Member<'_>,
        is_again: bool,
        shared: &mut Shared,
    ) -> bool {
        let id = member.header.id;
        let has_reply = self.lane.parts.has_reply(id);
        let live = self.lane.client.live_mut(id);
        let Some(live) = live.filter(|live| live.waits_for_reply() && !has_reply) else {
            shared.statistics.packets_duplicate += 1;
            return false;
        };
        if !is_again {
            live.retry.reply_sample(now, &mut self.recovery.rto);
        }
        let is_telling = live.retry.is_telling(now, &self.recovery.rto, is_again);
        shared.give_back(live.outgoing.take());
        self.end_with_reply(id, member.into_reply(), shared);
        is_telling
    }

    fn note_answered(&mut self, answered: &mut Answered, shared: &mut Shared) {
        if let Some(bundle) = answered.bundle.take() {
            self.members_answered(bundle, answered.count, shared);
        }
        answered.count = 0;
    }
}

/// A bundle of the peer that is whole.
pub(in crate::session) struct WholeBundle {
    id: MessageId,
    header: InnerHeader,
    body: Bytes,
    /// Whether the packet that made it whole was a repetition.
    is_again: bool,
}

/// A message in a bundle of the peer.
struct Member<'a> {
    header: &'a MemberHeader,
    parts: IdParts,
    body: Bytes,
}

impl Member<'_> {
    fn into_reply(self) -> Reply {
        Reply {
            body: self.body,
            failure: self.header.failure,
            has_metadata: self.header.has_metadata,
            parts: self.header.parts.number,
        }
    }
}

/// Answered requests of one bundle, counted: requests that have left together are mostly answered
/// together.
#[derive(Default)]
struct Answered {
    /// Whether the packet that answers them was lost before.
    is_again: bool,
    bundle: Option<MessageId>,
    count: usize,
}
