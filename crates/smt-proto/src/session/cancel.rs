// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endings of messages without success (SPEC §9.3, §9.6): CANCEL and its answers, NEVER_SEEN,
//! SEEN_AND_GONE, ABORT.

use smt_wire::{Abort, AbortCode, MessageId, PacketType};

use super::Session;
use crate::error::{CallError, CallFailure, Execution};
use crate::event::Event;
use crate::message::client_message::Content;
use crate::message::server_rpc::ServerRpcState;
use crate::message::transmitting::Transmitting;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    pub(super) fn cancelled_by_peer(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let Some(parts) = self
            .agreement
            .layout
            .split(id)
            .filter(|parts| parts.initiator != self.agreement.side)
        else {
            shared.statistics.violations += 1;
            return;
        };
        let rpc = self.rpc(id);
        if let Some(served) = self.lane.server.remove(id.0) {
            self.liveness.used(now);
            let answer = match served.state {
                ServerRpcState::Receiving { incoming, .. } => {
                    // The rest of it may have been asked for: this is the answer.
                    self.liveness.answered(now);
                    self.forget_incoming(id, &incoming, shared);
                    // The id of an incomplete bundle is not marked yet.
                    let window = &mut self.lane.stripes.at(parts.stripe).window;
                    window.mark_seen(parts.counter);
                    self.tell_window(parts.stripe);
                    PacketType::Voided
                }
                ServerRpcState::Working { .. } => {
                    shared.events.push_back(Event::Cancelled(rpc));
                    PacketType::Seen
                }
                ServerRpcState::Replying(outgoing) => {
                    self.lane
                        .memory_share
                        .leave_replies(outgoing.length(), &mut shared.memory);
                    PacketType::Seen
                }
                ServerRpcState::Bundled(_) | ServerRpcState::Aborted(_) => PacketType::Seen,
            };
            self.lane.control.id(answer, id);
            return;
        }
        let stripe = parts.stripe;
        let window = &mut self.lane.stripes.at(stripe).window;
        if window.is_seen(parts.counter) {
            self.lane.control.id(PacketType::Seen, id);
        } else if window.mark_seen(parts.counter).is_some() {
            self.lane.control.id(PacketType::Voided, id);
            self.tell_window(stripe);
        } else {
            shared.statistics.violations += 1;
        }
    }

    pub(super) fn never_seen(&mut self, now: Time, id: MessageId) {
        let Some(live) = self.lane.client.live_mut(id) else {
            return;
        };
        if let Some(bundle) = live.bundle {
            live.retry.answered(now);
            self.send_bundle_again(now, bundle);
        } else if let Some(outgoing) = live.outgoing.as_mut() {
            // The interval stays grown: a peer without memory for the message is asked no sooner.
            live.retry.answered(now);
            // The question is no sign of a black hole: the peer may lack memory. Record 0 goes out
            // in a small datagram, so that the peer sees the message through one, and asks.
            outgoing.ask_all_again();
            self.lane.queue_sendable(id);
        }
    }

    /// Takes a question of the peer about a member that it has not seen, so it has not seen the
    /// bundle. Returns whether the bundle leaves again.
    pub(super) fn send_bundle_again(&mut self, now: Time, bundle: MessageId) -> bool {
        let interval = self.recovery.rto.interval();
        let Some(live) = self.lane.client.live_mut(bundle) else {
            return false;
        };
        if let Content::Bundle(members) = &mut live.content
            && !members.leave_again(now, interval)
        {
            return false;
        }
        let Some(outgoing) = live.outgoing.as_mut() else {
            return false;
        };
        live.retry.answered(now);
        let is_resending = outgoing
            .transmitting_mut()
            .is_some_and(Transmitting::repeat);
        self.lane.queue_sendable(bundle);
        is_resending
    }

    pub(super) fn seen_and_gone(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let error = CallError {
            reason: CallFailure::Forgotten,
            execution: Execution::MayHaveRun,
        };
        self.end_call(now, id, error, shared);
    }

    pub(super) fn aborted(&mut self, now: Time, abort: Abort, shared: &mut Shared) {
        let live = self.lane.client.live(abort.id);
        if live.is_some_and(|live| !live.is_request()) {
            // A one-way message expects no reply. Members of a bundle may expect one, and each of
            // those has a call of its own.
            shared.statistics.violations += 1;
            return;
        }
        let (reason, execution) = match AbortCode::from_code(abort.code) {
            AbortCode::Refused => (CallFailure::Refused, Execution::DidNotRun),
            AbortCode::Dropped => (CallFailure::Dropped, Execution::MayHaveRun),
            AbortCode::TooLarge => (CallFailure::TooLarge, Execution::DidNotRun),
            AbortCode::ReplyTooLarge => (CallFailure::ReplyTooLarge, Execution::MayHaveRun),
        };
        if self
            .checked(abort.id, shared)
            .is_some_and(|parts| parts.initiator == self.agreement.side)
        {
            self.lane.control.ack(self.lane.stripes.ack_of(abort.id));
        }
        self.end_call(now, abort.id, CallError { reason, execution }, shared);
    }

    /// Ends a call, live or cancelling, that is over for the peer.
    fn end_call(&mut self, now: Time, id: MessageId, error: CallError, shared: &mut Shared) {
        self.lane.client.end_cancelling(id);
        let Some(live) = self.lane.client.remove_live(id) else {
            return;
        };
        if let Content::Bundle(members) = live.content {
            self.bundle_arrived(now, *members, Some(error), shared);
            return;
        }
        self.release(id, &live, shared);
        self.report_failure(id, &live, error, shared);
    }
}
