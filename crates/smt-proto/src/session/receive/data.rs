// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA: from a packet to a delivered message (SPEC §5.4).
//!
//! 1. The id tells whether it is a reply to a call of ours or a message of the peer.
//! 2. If the message is live, its record 0 has opened and decides what the packet may claim.
//! 3. Else a packet with offset 0 is opened at once; another waits among the reordered packets.
//! 4. The first record that opens marks the id as seen; then, and only then, what rides along
//!    counts.

use alloc::boxed::Box;
use smt_record::{IdParts, OutgoingId};
use smt_wire::{InnerHeader, Kind, MessageId};

use crate::limits;
use crate::message::arrived_data::{ArrivedData, OpenedRecords};
use crate::message::incoming::{
    FirstRecord, Incoming, Message, MessageKeys, Opener, Piece, record_end,
};
use crate::message::reordered::ReorderedPacket;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::recovery::retry_timer::RetryTimer;
use crate::session::Session;
use crate::session::receive::delivery::{NewRequest, ReceivedBody, WholeMessage};
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Takes a DATA packet that names this session.
    pub(crate) fn handle_data(&mut self, now: Time, data: &ArrivedData<'_>, shared: &mut Shared) {
        if self.ended.is_some() {
            return;
        }
        self.wake(now);
        let id = data.header.id;
        let Some(parts) = self.lane.stripes.split(id) else {
            shared.statistics.packets_contradicting += 1;
            return;
        };
        if !self.is_acceptable_length(data.header.message_length, shared) {
            shared.statistics.packets_contradicting += 1;
            return;
        }
        if parts.initiator == self.agreement.side {
            self.handle_reply_data(now, id, data, shared);
        } else if self.lane.server.contains(id.0) {
            self.handle_more_data(now, id, piece(data), shared);
        } else {
            self.handle_new_data(now, parts, data, shared);
        }
        self.watch_opening_keys(now);
    }

    /// Takes DATA of a message of the peer whose record 0 has opened before.
    fn handle_more_data(
        &mut self,
        now: Time,
        id: MessageId,
        piece: Piece<'_>,
        shared: &mut Shared,
    ) {
        // Only a record that opens earns the message a place among those that are granted.
        if self.take_data(now, id, piece, shared) {
            self.finish_receiving(now, id, shared);
        }
    }

    /// Gives a piece to a message of the peer. Returns whether a record has opened.
    fn take_data(
        &mut self,
        now: Time,
        id: MessageId,
        piece: Piece<'_>,
        shared: &mut Shared,
    ) -> bool {
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return false;
        };
        let ServerRpcState::Receiving { incoming, .. } = &mut served.state else {
            shared.statistics.packets_duplicate += 1;
            return false;
        };
        let bits = self.agreement.receive_bits;
        let has_opened = accept(incoming, self.keys.of_message(id, bits), piece, shared);
        if has_opened {
            let length = piece.payload.len();
            let retransmit = piece.retransmit;
            served.retry.came(now, &mut self.recovery.rto, retransmit);
            self.liveness.answered(now);
            self.liveness.used(now);
            self.recovery.payload_opened(length);
        }
        has_opened
    }

    /// Takes DATA of an id of the peer without live state.
    fn handle_new_data(
        &mut self,
        now: Time,
        parts: IdParts,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let Some(first) = self.open_new_message(now, parts, data, shared) else {
            return;
        };
        if first.header.kind == Kind::Bundle {
            self.first_came(&first, data, shared);
            self.handle_new_bundle(now, first, data, shared);
            return;
        }
        let (id, stripe) = (data.header.id, parts.stripe);
        let window = &mut self.lane.stripes.at(stripe).window;
        let Some(sight) = window.mark_seen(parts.counter) else {
            return;
        };
        self.liveness.answered(now);
        self.liveness.used(now);
        self.first_came(&first, data, shared);
        self.take_ride(now, id, &first.header, shared);
        match first.message {
            Message::Whole(body) => {
                // Other packets that came of the id belong to no message.
                self.lane.reordered.forget(id, &mut shared.reordered_memory);
                self.recovery.rto.on_whole_message();
                let body = ReceivedBody { bytes: body, has_metadata: first.header.has_metadata };
                match first.header.kind {
                    Kind::Request => {
                        let request = NewRequest {
                            sight,
                            body,
                            reply_unscheduled: first.header.reply_unscheduled,
                            deadline: ServerRpc::deadline_of(now, first.header.deadline_us),
                            parts: first.header.parts,
                        };
                        self.take_whole_request(now, request, shared);
                    }
                    kind => {
                        let message = WholeMessage {
                            id,
                            body,
                            deadline: ServerRpc::deadline_of(now, first.header.deadline_us),
                            parts: first.header.parts,
                        };
                        match kind {
                            Kind::Part => self.deliver_part(now, message, shared),
                            _ => self.deliver_one_way(now, message, shared),
                        }
                    }
                }
            }
            Message::Part(mut incoming) => {
                let is_request = first.header.kind == Kind::Request;
                let right = is_request.then(|| sight.reply_right());
                incoming.allow(shared.config.unscheduled, 0);
                shared.memory.enter(&incoming);
                self.insert_served(now, id, incoming, right);
                self.take_data(now, id, piece(data), shared);
                self.receive_reordered(now, id, shared);
            }
        }
        self.tell_window(stripe);
    }

    /// Opens record 0 of a message of the peer without live state, if the message may begin.
    fn open_new_message(
        &mut self,
        now: Time,
        parts: IdParts,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) -> Option<FirstRecord> {
        let window = &self.lane.stripes.at(parts.stripe).window;
        if window.is_seen(parts.counter) {
            shared.statistics.packets_duplicate += 1;
            return None;
        }
        if !window.in_range(parts.counter) {
            shared.statistics.packets_contradicting += 1;
            return None;
        }
        let memory = self.lane.memory(shared);
        // A bundle, or a part of a call, may be what makes room.
        let looks_inside = self.agreement.takes_bundles || !self.lane.parts.is_empty();
        let admission = self.lane.memory_share.admission(memory, looks_inside);
        // The packet may be all of a message, or of a bundle with replies, which make room.
        if !admission.takes_packet(data.header.offset) {
            shared.statistics.memory_refusals += 1;
            return None;
        }
        let first = self.open_first_record(now, data.header.id, data, shared)?;
        match first.header.kind {
            Kind::Bundle => {}
            Kind::Part => {
                let is_whole = matches!(first.message, Message::Whole(_));
                let memory = self.lane.memory(shared);
                let has_room = self.lane.memory_share.takes_part(is_whole, memory);
                if !has_room && !self.is_let_in(data.header.id, &first) {
                    shared.statistics.memory_refusals += 1;
                    return None;
                }
            }
            Kind::Request | Kind::OneWay => {
                let is_whole = matches!(first.message, Message::Whole(_));
                if !admission.takes_message(is_whole) || !self.may_wait(&first.message, shared) {
                    shared.statistics.memory_refusals += 1;
                    return None;
                }
            }
            Kind::Reply => {
                shared.statistics.violations += 1;
                return None;
            }
        }
        Some(first)
    }

    /// Whether a message is let in without room: a part that the application of this side waits
    /// for, but one at a time of those that come in several packets.
    fn is_let_in(&mut self, id: MessageId, first: &FirstRecord) -> bool {
        if !self.is_starved_of(first) {
            return false;
        }
        let (server, share) = (&self.lane.server, &mut self.lane.memory_share);
        matches!(first.message, Message::Whole(_))
            || share.reserve.take(id, |held| server.contains(held.0))
    }

    /// Whether the first record is that of a part which the application of this side waits for.
    fn is_starved_of(&self, first: &FirstRecord) -> bool {
        let bytes = match &first.message {
            Message::Whole(body) => body,
            Message::Part(incoming) => incoming.first_bytes(),
        };
        let request = smt_wire::request_of_part(bytes).ok();
        let number = first.header.parts.number;
        first.header.kind == Kind::Part
            && request.is_some_and(|request| self.lane.parts.is_starved_of(request, number))
    }

    /// Takes the packets that came before record 0 of a message, after the one that opened it.
    pub(in crate::session) fn receive_reordered(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        for packet in self.lane.reordered.take(id, &mut shared.reordered_memory) {
            match packet.payload.is_empty() {
                true => self.note_trimmed(now, self.trimmed(&packet.header), shared),
                false => {
                    self.take_data(now, id, reordered_piece(&packet), shared);
                }
            }
        }
        self.first_opened(now, id, shared);
        self.finish_receiving(now, id, shared);
    }

    /// Whether the peer has so many replies unacknowledged that it gets no more.
    pub(crate) fn keeps_too_much(&self, shared: &Shared) -> bool {
        self.lane.memory_share.keeps_too_much(self.lane.memory(shared))
    }

    /// Tells the memory account how many requests are served.
    pub(crate) fn account_served(&mut self, shared: &mut Shared) {
        self.lane.memory_share.account_served(self.lane.server.len(), &mut shared.memory);
    }

    /// Whether there is room for all of a message until the application takes it.
    fn may_wait(&self, message: &Message, shared: &Shared) -> bool {
        let length = match message {
            Message::Whole(body) => body.len(),
            Message::Part(incoming) => incoming.length() as usize,
        };
        self.lane.memory_share.may_wait(length, self.lane.memory(shared))
    }

    /// Begins an incomplete message of the peer. Without a right to reply it is a one-way message,
    /// or a bundle.
    pub(in crate::session) fn insert_served(
        &mut self,
        now: Time,
        id: MessageId,
        incoming: Box<Incoming>,
        right: Option<OutgoingId>,
    ) {
        let header = *incoming.header();
        let retry = RetryTimer::new(now, self.recovery.rto.interval());
        self.pass_timer.set(retry.due);
        self.lane.memory_share.promise(incoming.promised());
        let served = ServerRpc {
            state: ServerRpcState::Receiving {
                incoming,
                right,
                deadline: ServerRpc::deadline_of(now, header.deadline_us),
            },
            retry,
            reply_unscheduled: header.reply_unscheduled,
        };
        self.lane.server.insert(id.0, served);
    }

    /// Drops a message of the peer that is over before it was whole.
    pub(in crate::session) fn forget_incoming(
        &mut self,
        id: MessageId,
        incoming: &Incoming,
        shared: &mut Shared,
    ) {
        self.lane.memory_share.end_promise(incoming.promised());
        shared.forget(self.rpc(id), incoming);
    }

    /// Opens record 0, or keeps the packet until it comes.
    pub(in crate::session) fn open_first_record(
        &mut self,
        now: Time,
        id: MessageId,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) -> Option<FirstRecord> {
        if data.header.offset != 0 {
            self.keep_reordered(now, data, shared);
            return None;
        }
        let mut opener = Opener {
            keys: self.keys.of_message(id, self.agreement.receive_bits),
            scratch: &mut shared.open_scratch,
            record_buffer: &mut shared.record_buffer,
            bodies: &mut shared.bodies,
            buffer_pool: &shared.buffer_pool,
            statistics: &mut shared.statistics,
        };
        FirstRecord::open(piece(data), self.agreement.geometry, &mut opener)
    }

    /// Keeps a packet, or its header if the packet was trimmed, until its record 0 has opened.
    pub(in crate::session) fn keep_reordered(
        &mut self,
        now: Time,
        data: &ArrivedData<'_>,
        shared: &mut Shared,
    ) {
        let ArrivedData { header, payload, .. } = data;
        let end = header.offset as usize + payload.len().max(1);
        let padded = header.message_length;
        let most = record_end(self.agreement.geometry, padded, shared.config.unscheduled);
        if end > most as usize {
            shared.statistics.packets_contradicting += 1;
            return;
        }
        let packet = ReorderedPacket {
            at: now,
            header: *header,
            payload: payload.to_vec(),
            opened: data.opened.of_first(payload.len()),
        };
        self.lane.reordered.keep(packet, &mut shared.reordered_memory);
        self.pass_timer.set(now + limits::REORDERED_LIFE);
    }

    /// Takes the fields that ride in an inner header: the peer's window and acknowledgements (SPEC
    /// §5.2).
    pub(in crate::session) fn take_ride(
        &mut self,
        now: Time,
        id: MessageId,
        header: &InnerHeader,
        shared: &mut Shared,
    ) {
        let stripe = self.lane.stripes.of(id);
        if let Some(limit) = header.extend_window(stripe.peer_limit()) {
            self.raise_peer_limit(self.lane.stripes.number_of(id), limit, shared);
        }
        if let Some(ack) = header.ack {
            self.acked(now, ack, shared);
        }
    }

    pub(in crate::session) fn is_acceptable_length(&self, padded: u32, shared: &Shared) -> bool {
        let header = InnerHeader::LEN as u32;
        padded >= header
            && padded - header <= shared.config.message_limit
            && padded <= self.agreement.received_max
    }

    /// Tells the peer about ids that it may use, before it would have to ask.
    pub(in crate::session) fn tell_window(&mut self, stripe: u16) {
        let width = self.agreement.own_window;
        if let Some(limit) = self.lane.stripes.at(stripe).limit_to_tell(width) {
            self.lane.control.push(stripe, smt_wire::Body::Window { limit });
        }
    }
}

/// Gives a piece to its message, and accounts for it. Returns whether a record has opened: bytes
/// alone are no progress, anybody may have sent them.
pub(in crate::session) fn accept(
    incoming: &mut Incoming,
    keys: MessageKeys<'_>,
    piece: Piece<'_>,
    shared: &mut Shared,
) -> bool {
    let before = incoming.arrived();
    let mut opener = Opener {
        keys,
        scratch: &mut shared.open_scratch,
        record_buffer: &mut shared.record_buffer,
        bodies: &mut shared.bodies,
        buffer_pool: &shared.buffer_pool,
        statistics: &mut shared.statistics,
    };
    shared.memory.change(incoming, |incoming| {
        incoming.accept(piece, &mut opener);
    });
    let more = incoming.arrived() - before;
    shared.opened(incoming, more);
    more > 0
}

pub(in crate::session) fn piece<'a>(data: &ArrivedData<'a>) -> Piece<'a> {
    Piece {
        epoch: data.header.epoch,
        retransmit: data.header.retransmit,
        message_length: data.header.message_length,
        offset: data.header.offset,
        payload: data.payload,
        opened: data.opened,
    }
}

pub(in crate::session) fn reordered_piece(packet: &ReorderedPacket) -> Piece<'_> {
    piece(&ArrivedData {
        header: packet.header,
        payload: &packet.payload,
        opened: OpenedRecords::new(&packet.opened),
    })
}
