// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets of the peer: open, check the number, then act (SPEC §3.4, §8).
//!
//! Nothing here believes a packet before its tag has opened. An opened packet with an impossible id
//! is counted as a violation and has no effect.

use smt_carrier::AssociationKey;
use smt_record::{Delivered, IdParts, Side};
use smt_wire::{Ack, Body, Control, Grant, MessageId, PacketType, Resend};

use crate::control_packet::{self, Opened};
use crate::error::{CallFailure, CloseCode, Execution, OneWayOutcome, SessionEnd};
use crate::event::Event;
use crate::limits::RESEND_INTERVAL_MAX;
use crate::message::client_message::{ClientMessage, Content, LiveMessage};
use crate::message::incoming::Incoming;
use crate::message::outgoing::Outgoing;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::message::transmitting::Transmitting;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Takes a control packet that names this session. Returns whether it opened.
    pub(crate) fn handle_control(
        &mut self,
        now: Time,
        control: &Control<'_>,
        shared: &mut Shared,
    ) -> bool {
        if self.ended.is_some() {
            return false;
        }
        self.wake(now);
        let number = control.header.number;
        let Some(stripe) = self.lane.stripes.get_mut(number.stripe) else {
            shared.statistics.packets_contradicting += 1;
            return false;
        };
        if !stripe.control_window.check(number.counter) {
            shared.statistics.controls_replayed += 1;
            return false;
        }
        let Some(opened) = self.open_control(control, shared) else {
            self.watch_opening_keys(now);
            return false;
        };
        let stripe = self.lane.stripes.at(number.stripe);
        stripe.control_window.accept(number.counter);
        match answers_nothing(&control.body) {
            true => self.liveness.received(now),
            false => self.liveness.answered(now),
        }
        self.act(now, control, opened.association_key, shared);
        true
    }

    fn open_control(&mut self, control: &Control<'_>, shared: &mut Shared) -> Option<Opened> {
        let opened = control_packet::open(&mut self.keys.open, control);
        match &opened {
            Ok(opened) => self.peer_reset_token = opened.reset_token.or(self.peer_reset_token),
            Err(failure) => shared.statistics.control_not_opened(*failure),
        }
        opened.ok()
    }

    fn act(
        &mut self,
        now: Time,
        control: &Control<'_>,
        association_key: Option<AssociationKey>,
        shared: &mut Shared,
    ) {
        let stripe = control.header.number.stripe;
        match control.body {
            // The client repeats it until ours opens. One that owes its own still does.
            Body::Confirm => self.confirm_due |= self.agreement.side == Side::Server,
            Body::Grant(list) => list.iter().for_each(|grant| self.granted(now, &grant)),
            Body::Resend(list) => {
                list.iter().for_each(|resend| self.asked_again(now, resend, shared))
            }
            Body::Busy(list) => list.iter().for_each(|id| self.peer_is_busy(id)),
            Body::Ack(list) => list.iter().for_each(|ack| self.acked(now, ack, shared)),
            Body::NeedAck(list) => list.iter().for_each(|id| self.asked_for_ack(now, id, shared)),
            Body::Cancel(list) => {
                list.iter().for_each(|id| self.cancelled_by_peer(now, id, shared))
            }
            Body::Voided(list) => {
                list.iter().for_each(|id| self.cancel_answered(id, Execution::DidNotRun, shared))
            }
            Body::Seen(list) => {
                list.iter().for_each(|id| self.cancel_answered(id, Execution::MayHaveRun, shared))
            }
            Body::NeverSeen(list) => list.iter().for_each(|id| self.never_seen(now, id)),
            Body::SeenAndGone(list) => {
                list.iter().for_each(|id| self.seen_and_gone(now, id, shared))
            }
            Body::Abort(abort) => self.aborted(now, abort, shared),
            Body::Window { limit } => self.raise_peer_limit(stripe, limit, shared),
            Body::WindowRequest => {
                let limit = self.lane.stripes.at(stripe).window.limit();
                self.lane.control.push(stripe, Body::Window { limit });
            }
            Body::KeyUpdateRequest { epoch } => self.keys.seal.request_update(epoch),
            Body::EpochDone { epoch } => self.epoch_done(epoch),
            Body::EpochAck { epoch } => self.epoch_acked(now, epoch, shared),
            Body::Ping(value) => self.lane.control.push(0, Body::Pong(value)),
            Body::Pong(_) => {}
            Body::Probe { .. } => {
                let size = (control.aad.len() + control.sealed.len()) as u32;
                self.lane.control.push(0, Body::ProbeAck { size });
            }
            Body::ProbeAck { size } => self.recovery.pmtud.answered(size as usize),
            Body::PartWindow(list) => {
                list.iter().for_each(|window| self.part_window_told(window, shared))
            }
            Body::PartWindowRequest(list) => {
                list.iter().for_each(|id| self.part_window_asked(id, shared))
            }
            Body::Association(fields) => self.association_told(fields, association_key, shared),
            Body::AssociationAck { serial } => self.association_acked(serial, shared),
            Body::AssociationRequest { serial } => self.association_asked(now, serial, shared),
            Body::Close { code } => {
                self.end(SessionEnd::ClosedByPeer(CloseCode::from_code(code)), shared)
            }
        }
    }

    /// Takes GRANT: how far the peer has got with a message of ours, and how far this side may
    /// send.
    fn granted(&mut self, now: Time, grant: &Grant) {
        let (outgoing, retry, interval) = match self.lane.client.live_mut(grant.id) {
            Some(live) if live.is_bundle() => {
                // All of it may leave. How far an incomplete one has got counts for nothing: it may
                // be forgotten.
                live.retry.answered(now);
                return;
            }
            Some(live) => {
                live.is_seen = true;
                let interval = self.recovery.rto.interval();
                (live.outgoing.as_mut(), &mut live.retry, interval)
            }
            None => match self.lane.server.get_mut(grant.id.0) {
                Some(ServerRpc { state: ServerRpcState::Replying(outgoing), retry, .. }) => {
                    // A message that gets grants is long.
                    let interval = outgoing.need_ack_interval(true, self.recovery.jitter);
                    (Some(outgoing), retry, interval)
                }
                _ => return,
            },
        };
        let Some(outgoing) = outgoing else { return };
        let transmitting = outgoing.transmitting_mut();
        if transmitting.is_some_and(|transmitting| transmitting.grant(grant)) {
            retry.progressed(now, interval);
            let due = retry.due;
            self.pass_timer.set(due);
            self.recovery.pmtud.progressed();
        } else {
            retry.answered(now);
        }
        self.lane.queue_sendable(grant.id);
    }

    /// Takes RESEND: the peer misses bytes of a message of ours (SPEC §9.3).
    fn asked_again(&mut self, now: Time, resend: Resend, shared: &mut Shared) {
        if self.lane.stripes.is_unissued(resend.id) && resend.offset == 0 {
            // The peer has seen a forged header (SPEC §9.10).
            shared.statistics.packets_contradicting += 1;
            return;
        }
        let Some(parts) = self.checked(resend.id, shared) else {
            return;
        };
        if parts.initiator != self.agreement.side {
            self.asked_for_reply(now, resend, parts, shared);
            return;
        }
        match self.lane.client.get_mut(resend.id) {
            Some(ClientMessage::Live(live)) => {
                // A peer that asks for record 0 has not opened it.
                live.is_seen |= resend.offset > 0 && !live.is_bundle();
                live.retry.answered(now);
                let Some(outgoing) = live.outgoing.as_mut() else {
                    return;
                };
                if outgoing.ask_again(resend.offset, resend.length) && outgoing.is_large() {
                    self.recovery.pmtud.stalled(now);
                }
                self.lane.queue_sendable(resend.id);
            }
            // The peer is told by CANCEL.
            Some(ClientMessage::Cancelling(_)) => {}
            None => self.lane.control.ack(self.lane.stripes.ack_of(resend.id)),
        }
    }

    /// Answers a RESEND of an initiator that wants its reply.
    fn asked_for_reply(&mut self, now: Time, resend: Resend, parts: IdParts, shared: &mut Shared) {
        let id = resend.id;
        let Some(served) = self.lane.server.get_mut(id.0) else {
            self.answer_unknown(now, id, parts);
            return;
        };
        match &mut served.state {
            ServerRpcState::Receiving { incoming, .. } => {
                let is_asked = !incoming.has_trimmed_waiting()
                    && served.retry.ask_beside_answer(now, RESEND_INTERVAL_MAX);
                shared.statistics.resends_asked += u64::from(is_asked);
                self.lane.control.progress(id, incoming, is_asked);
                served.retry.peer_asked(now);
            }
            ServerRpcState::Working { .. } => self.lane.control.id(PacketType::Busy, id),
            ServerRpcState::Replying(outgoing)
                if resend.offset == 0
                    && resend.length == u32::MAX
                    && outgoing.is_likely_late(now.since(served.retry.since)) =>
            {
                self.lane.control.id(PacketType::Busy, id);
            }
            ServerRpcState::Replying(outgoing) => {
                if outgoing.ask_again(resend.offset, resend.length) && outgoing.is_large() {
                    self.recovery.pmtud.stalled(now);
                }
                // Nothing to send again: what has not left yet waits for grants, keys or its turn.
                if !outgoing.transmitting().is_some_and(Transmitting::is_resending) {
                    self.lane.control.id(PacketType::Busy, id);
                }
                served.retry.answered(now);
                self.lane.queue_sendable(id);
            }
            ServerRpcState::Bundled(bundle) => {
                let bundle = *bundle;
                served.retry.answered(now);
                if !self.send_bundle_again(now, bundle) {
                    self.lane.control.id(PacketType::Busy, id);
                }
            }
            ServerRpcState::Aborted(code) => {
                let code = *code;
                self.send_abort(id, code);
            }
        }
    }

    /// Answers an authenticated question about an id of the peer without live state.
    fn answer_unknown(&mut self, now: Time, id: MessageId, parts: IdParts) {
        if !self.recovery.answers.take(now) {
            return;
        }
        let window = &self.lane.stripes.of(id).window;
        let answer = if window.is_seen(parts.counter) {
            PacketType::SeenAndGone
        } else {
            PacketType::NeverSeen
        };
        self.lane.control.id(answer, id);
    }

    /// Takes BUSY: the application has the request, or the reply cannot leave now. Either way the
    /// whole request has arrived, and need not be kept.
    pub(in crate::session) fn peer_is_busy(&mut self, id: MessageId) {
        if let Some(live) = self.lane.client.live_mut(id)
            && live.is_request()
        {
            live.is_seen = true;
            live.retry.busy();
            live.outgoing = None;
            let bundle = live.bundle;
            if let Some(bundle) = bundle.and_then(|id| self.lane.client.live_mut(id)) {
                bundle.is_seen = true;
            }
        }
    }

    pub(in crate::session) fn acked(&mut self, now: Time, ack: Ack, shared: &mut Shared) {
        for id in ack.ids(self.agreement.layout.stripes_log2) {
            self.acknowledged(now, id, shared);
        }
    }

    /// Ends our message of this id, which the peer does not need any more.
    pub(in crate::session) fn acknowledged(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        if !self.lane.stripes.is_own(id) {
            let answer = |served: &mut ServerRpc| match served.state {
                ServerRpcState::Working { .. } => None,
                _ => Some(served.take_state()),
            };
            let Some(state) = self.lane.server.take(id.0, answer) else {
                return;
            };
            match state {
                ServerRpcState::Receiving { incoming, .. } => {
                    self.forget_incoming(id, &incoming, shared);
                }
                ServerRpcState::Replying(outgoing) => {
                    if outgoing.is_large() {
                        self.recovery.pmtud.progressed();
                    }
                    self.lane.memory_share.leave_replies(outgoing.length(), &mut shared.memory);
                    shared.give_back(Some(outgoing));
                }
                _ => {}
            }
            self.liveness.used(now);
            return;
        }
        // A request is acknowledged by its reply.
        if self.lane.client.live(id).is_none_or(LiveMessage::is_request) {
            return;
        }
        let Some(live) = self.lane.client.remove_live(id) else {
            return;
        };
        if live.outgoing.as_ref().is_some_and(Outgoing::is_large) {
            self.recovery.pmtud.progressed();
        }
        let is_part = live.is_part();
        self.part_over(&live, shared);
        shared.give_back(live.outgoing);
        self.liveness.used(now);
        if let Content::Bundle(members) = live.content {
            self.bundle_arrived(now, *members, None, shared);
            return;
        }
        if !is_part {
            self.tell_delivered(now, id, live.deadline, shared);
        }
    }

    /// Tells the application that the peer has a one-way message. If its time had passed the peer
    /// may not have delivered it (SPEC §9.5).
    pub(in crate::session) fn tell_delivered(
        &self,
        now: Time,
        id: MessageId,
        deadline: Option<Time>,
        shared: &mut Shared,
    ) {
        let is_late = deadline.is_some_and(|deadline| deadline < now);
        let outcome = match is_late {
            true => OneWayOutcome::MayHaveBeenDelivered(CallFailure::DeadlineExceeded),
            false => OneWayOutcome::Delivered,
        };
        let rpc = self.rpc(id);
        shared.events.push_back(Event::OneWayDone { rpc, outcome });
    }

    /// Takes NEED_ACK: the peer asks whether this side has its message of this id (SPEC §9.4,
    /// §9.5).
    fn asked_for_ack(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let Some(parts) = self.checked(id, shared) else {
            return;
        };
        if parts.initiator == self.agreement.side {
            match self.lane.client.live(id) {
                Some(live) if live.is_request() && !self.lane.parts.has_reply(id) => {
                    self.answer_for_reply(now, id, shared);
                }
                Some(live) if live.is_request() => {
                    self.lane.control.ack(self.lane.stripes.ack_of(id));
                }
                // The peer has no message under the id of a one-way message of ours.
                Some(_) => shared.statistics.violations += 1,
                None => self.lane.control.ack(self.lane.stripes.ack_of(id)),
            }
            return;
        }
        if let Some(served) = self.lane.server.get_mut(id.0) {
            served.retry.peer_asked(now);
            if let ServerRpcState::Receiving { incoming, .. } = &served.state {
                let is_asked = !incoming.has_trimmed_waiting()
                    && served.retry.ask_beside_answer(now, RESEND_INTERVAL_MAX);
                shared.statistics.resends_asked += u64::from(is_asked);
                self.lane.control.progress(id, incoming, is_asked);
            }
            return;
        }
        match self.lane.stripes.of(id).window.is_delivered(parts.counter) {
            Delivered::Yes => self.lane.control.ack(self.lane.stripes.ack_of(id)),
            Delivered::No | Delivered::Unknown => self.answer_unknown(now, id, parts),
        }
    }

    /// Answers NEED_ACK for a reply that is not whole: how far it is, and what is missing.
    fn answer_for_reply(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let Some(live) = self.lane.client.live_mut(id) else {
            return;
        };
        let Content::Request(reply) = &live.content else {
            return;
        };
        let incoming = reply.incoming.as_deref();
        // No record has opened, and no bytes were asked for: all of the reply is lost.
        let is_first = incoming.is_none() && live.retry.asked_in_vain == 0;
        if is_first {
            live.retry.make_due_by(now);
        }
        let is_asked = !incoming.is_some_and(Incoming::has_trimmed_waiting)
            && live.retry.ask_beside_answer(now, RESEND_INTERVAL_MAX);
        shared.statistics.resends_asked += u64::from(is_asked);
        self.lane.control.reply_progress(id, incoming, is_asked);
    }

    pub(in crate::session) fn raise_peer_limit(
        &mut self,
        stripe: u16,
        limit: u64,
        shared: &mut Shared,
    ) {
        let is_more = self.lane.stripes.at(stripe).raise_peer_limit(limit);
        if is_more && self.lane.blocked.take().is_some() {
            shared.events.push_back(Event::Unblocked(self.index));
        }
    }

    /// The parts of an id that either side may have issued; an id of ours must have been.
    pub(in crate::session) fn checked(
        &self,
        id: MessageId,
        shared: &mut Shared,
    ) -> Option<IdParts> {
        let parts = self.lane.stripes.issued(id);
        if parts.is_none() {
            shared.statistics.violations += 1;
        }
        parts
    }
}

/// Questions that a peer asks of itself, whether or not anything of this side arrives (SPEC §9.9).
/// RESEND is none of them: it may be the answer to NEED_ACK.
fn answers_nothing(body: &Body<'_>) -> bool {
    matches!(
        body,
        Body::Ping(_)
            | Body::NeedAck(_)
            | Body::Cancel(_)
            | Body::WindowRequest
            | Body::PartWindowRequest(_)
            | Body::Probe { .. }
            | Body::Association(_)
            | Body::AssociationRequest { .. }
    )
}
