// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The questions of a session about its messages when nothing came for a while (SPEC §9.3-§9.5).
//!
//! `timers` chooses the messages. A question asks for missing bytes, or whether the peer has what
//! it was sent; a question is put off if the peer waits for this side instead.

use smt_wire::{AbortCode, MessageId, PacketType};

use super::Session;
use crate::limits::{
    INCOMPLETE_LIFE, NEED_ACK_INTERVAL_MAX, NEED_ACK_TRIES, NEED_ACK_TRIES_PRESSED,
    QUESTIONS_UNTIL_UNGRANTED, RESEND_INTERVAL_MAX,
};
use crate::message::client_message::Content;
use crate::message::incoming::Incoming;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Asks for the missing bytes of a call for which nothing came. Returns whether the whole reply
    /// is missing.
    pub(super) fn ask_about_call(&mut self, now: Time, id: MessageId, shared: &mut Shared) -> bool {
        let rpc = self.rpc(id);
        let live = self.lane.client.live(id);
        let has_left = live.is_some_and(|live| self.lane.client.has_left(live));
        let Some(live) = self.lane.client.live_mut(id) else {
            return false;
        };
        if !has_left {
            // It waits here: for keys, or behind others.
            live.retry.waits_here(now);
            self.lane.queue_sendable(id);
            return false;
        }
        // This question counts already.
        let before = |count: u32| count.saturating_sub(1);
        let asked = before(live.retry.asked);
        let in_vain = before(live.retry.asked_in_vain);
        if live.is_bundle_of_replies() && is_kept_in_vain(asked, in_vain, shared) {
            self.give_up_bundle(now, id, shared);
            return false;
        }
        match &live.content {
            Content::OneWay | Content::Part(_) if live.bundle.is_some() => {
                // The bundle asks for all of its members.
                live.retry.waits_here(now);
                return false;
            }
            Content::OneWay | Content::Part(_) | Content::Bundle(_) => {
                self.lane.control.id(PacketType::NeedAck, id);
            }
            Content::Request(_) if self.lane.parts.has_reply(id) => {
                // The reply waits for its parts, about which the peer asks. Is the peer there?
                self.ping(now);
                return false;
            }
            Content::Request(reply) => {
                let incoming = reply.incoming.as_deref();
                if incoming.is_some_and(Incoming::waits_for_this_side) {
                    live.retry.waits_here(now);
                    return false;
                }
                self.lane.control.reply_progress(id, incoming, true);
            }
        }
        let waits_for_all = live.waits_for_reply();
        if live.retry.asked_in_vain >= QUESTIONS_UNTIL_UNGRANTED {
            shared.grants.pass_over(rpc);
        }
        self.liveness.asked(now);
        shared.statistics.resends_asked += 1;
        waits_for_all
    }

    /// Sends a short request once more ahead of the question, since the request may be lost and not
    /// the reply. The question then asks for the reply to it, not whether it is there (SPEC §9.3).
    pub(super) fn send_request_again(&mut self, id: MessageId) {
        let id = self.lane.client.carrier_of(id);
        let Some(live) = self.lane.client.live_mut(id) else {
            return;
        };
        let Some(outgoing) = live.outgoing.as_mut() else {
            return;
        };
        if live.is_seen || live.is_repeated || outgoing.is_large() || !outgoing.is_sent() {
            return;
        }
        if !self.liveness.repeat_request() {
            return;
        }
        live.is_repeated = true;
        outgoing.ask_all_again();
        self.lane.messages_first = true;
        self.lane.queue_sendable(id);
    }

    /// Asks about an RPC of the peer for which nothing came: for the rest of the request, or
    /// whether the reply has arrived.
    pub(super) fn ask_about_served(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let rpc = self.rpc(id);
        let Some(ServerRpc { state, retry, .. }) = self.lane.server.get_mut(id.0) else {
            return;
        };
        let is_over = match state {
            ServerRpcState::Receiving { .. } => now.since(retry.wanted_at) >= INCOMPLETE_LIFE,
            _ => is_kept_in_vain(retry.asked, retry.asked_in_vain, shared),
        };
        if is_over {
            self.forget_served(now, id, shared);
            return;
        }
        match state {
            ServerRpcState::Receiving { incoming, .. } => {
                retry.ask(now, RESEND_INTERVAL_MAX);
                if incoming.waits_for_this_side() {
                    retry.waits_here(now);
                } else {
                    self.liveness.asked(now);
                    shared.statistics.resends_asked += 1;
                    self.lane.control.progress(id, incoming, true);
                    if retry.asked_in_vain >= QUESTIONS_UNTIL_UNGRANTED {
                        shared.grants.pass_over(rpc);
                    }
                }
            }
            ServerRpcState::Replying(outgoing) if !outgoing.has_started() => {
                // It waits here: for keys, or behind others.
                retry.ask(now, NEED_ACK_INTERVAL_MAX);
                retry.waits_here(now);
            }
            _ => {
                retry.ask(now, NEED_ACK_INTERVAL_MAX);
                self.liveness.asked(now);
                self.lane.control.id(PacketType::NeedAck, id);
            }
        }
        let due = retry.due;
        self.pass_timer.set(due);
    }

    /// Forgets an RPC on which the peer does not follow up: its id stays marked as seen. The caller
    /// of a request that has not wholly come learns that it did not run.
    fn forget_served(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let served = self.lane.server.get_mut(id.0);
        let is_request = |served: &&mut ServerRpc| {
            matches!(served.state, ServerRpcState::Receiving { right: Some(_), .. })
        };
        if let Some(request) = served.filter(is_request) {
            let state = request.take_state();
            if let ServerRpcState::Receiving { incoming, .. } = state {
                self.forget_incoming(id, &incoming, shared);
            }
            self.end_served(now, id, AbortCode::Overloaded, shared);
            return;
        }
        let Some(served) = self.lane.server.remove(id.0) else {
            return;
        };
        match served.state {
            ServerRpcState::Receiving { incoming, .. } => {
                self.forget_incoming(id, &incoming, shared)
            }
            ServerRpcState::Replying(outgoing) => {
                self.lane.memory_share.leave_replies(outgoing.length(), &mut shared.memory)
            }
            _ => {}
        }
    }
}

/// Whether a reply, or a bundle of replies, is kept no longer: the peer was `asked` so often since
/// it was heard about it, or, where memory presses, so often without progress (SPEC §9.4, §10).
fn is_kept_in_vain(asked: u32, asked_in_vain: u32, shared: &Shared) -> bool {
    let presses = shared.memory.is_pressed_by_replies(shared.config.memory_max);
    asked >= NEED_ACK_TRIES || (presses && asked_in_vain >= NEED_ACK_TRIES_PRESSED)
}
