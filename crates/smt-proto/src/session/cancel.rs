// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endings of messages without success (SPEC §9.3, §9.6): CANCEL and its answers, NEVER_SEEN,
//! SEEN_AND_GONE, ABORT.

use smt_wire::{Abort, AbortCode, MessageId, PacketType};

use super::Session;
use crate::error::{CallError, CallFailure, Execution};
use crate::event::Event;
use crate::limits::{CANCEL_ANSWER_MAX, RESEND_INTERVAL_MAX};
use crate::message::client_message::{Cancelling, Content, LiveMessage, Untold};
use crate::message::server_rpc::ServerRpcState;
use crate::message::transmitting::Transmitting;
use crate::recovery::retry_timer::RetryTimer;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Gives a call up: it ends at once here, and the peer is told until it answers.
    pub(crate) fn cancel(
        &mut self,
        now: Time,
        id: MessageId,
        reason: CallFailure,
        shared: &mut Shared,
    ) -> bool {
        if self.tell_undecided(id, reason.clone(), shared) {
            return true;
        }
        // An application that gives a call up wants nothing of it.
        if reason != CallFailure::Cancelled {
            if self.end_if_whole(id, shared) {
                return true;
            }
            self.leave_parts(id, shared);
        }
        let Some(live) = self.start_cancelling(now, id, None, shared) else {
            return false;
        };
        let execution = execution_of(&live);
        self.report_failure(id, live.is_request(), CallError { reason, execution }, shared);
        true
    }

    /// Gives up a message whose deadline has passed. The peer's answer to CANCEL shows whether the
    /// message has run; the application is told when it comes, and soon in any case (SPEC §9.7).
    pub(super) fn expire(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        if self.end_if_whole(id, shared) {
            return;
        }
        let Some(live) = self.lane.client.live(id) else {
            return;
        };
        if execution_of(live) == Execution::DidNotRun {
            self.cancel(now, id, CallFailure::DeadlineExceeded, shared);
            return;
        }
        let untold = Untold {
            until: now + self.recovery.rto.interval().min(CANCEL_ANSWER_MAX),
            is_request: live.is_request(),
        };
        self.leave_parts(id, shared);
        self.start_cancelling(now, id, Some(untold), shared);
    }

    fn start_cancelling(
        &mut self,
        now: Time,
        id: MessageId,
        untold: Option<Untold>,
        shared: &mut Shared,
    ) -> Option<LiveMessage> {
        self.lane.client.live(id).filter(|live| !live.is_bundle())?;
        self.lane.remove_parts(id, &mut shared.memory);
        let mut retry = RetryTimer::new(now, self.recovery.rto.interval());
        retry.ask(now, RESEND_INTERVAL_MAX);
        let cancelling = Cancelling { untold, ..Cancelling::new(retry) };
        let live = self.lane.client.cancel(id, cancelling)?;
        self.lane.control.id(PacketType::Cancel, id);
        self.pass_timer.set(cancelling.due());
        self.release(id, &live, shared);
        self.part_over(&live, shared);
        Some(live)
    }

    /// Takes the peer's answer to CANCEL: it decides the outcome of a message whose deadline has
    /// passed, if the application waits for it.
    pub(super) fn cancel_answered(
        &mut self,
        id: MessageId,
        execution: Execution,
        shared: &mut Shared,
    ) {
        if let Some(untold) = self.lane.client.end_cancelling(id) {
            let reason = CallFailure::DeadlineExceeded;
            let error = CallError { reason, execution };
            self.report_failure(id, untold.is_request, error, shared);
        }
    }

    /// Tells the application of a message whose deadline has passed, without the peer's answer.
    /// Returns whether it was not told before.
    pub(super) fn tell_undecided(
        &mut self,
        id: MessageId,
        reason: CallFailure,
        shared: &mut Shared,
    ) -> bool {
        let Some(untold) = self.lane.client.take_untold(id) else {
            return false;
        };
        let execution = Execution::MayHaveRun;
        let error = CallError { reason, execution };
        self.report_failure(id, untold.is_request, error, shared);
        true
    }

    /// Takes CANCEL. It is not inlined, since it would need room in the stack frame of all control
    /// packets.
    #[inline(never)]
    pub(super) fn cancelled_by_peer(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        let Some(parts) =
            self.agreement.layout.split(id).filter(|parts| parts.initiator != self.agreement.side)
        else {
            shared.statistics.violations += 1;
            return;
        };
        let rpc = self.rpc(id);
        if let Some(served) = self.lane.server.remove(id.0) {
            self.lane.remove_parts(id, &mut shared.memory);
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
                ServerRpcState::Working { is_delivered, .. } if is_delivered => {
                    shared.events.push_back(Event::Cancelled(rpc));
                    PacketType::Seen
                }
                ServerRpcState::Working { .. } => {
                    shared.taken_back += 1;
                    PacketType::Voided
                }
                ServerRpcState::Replying(outgoing) => {
                    self.lane.memory_share.leave_replies(outgoing.length(), &mut shared.memory);
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
        let is_resending = outgoing.transmitting_mut().is_some_and(Transmitting::repeat);
        self.lane.queue_sendable(bundle);
        is_resending
    }

    pub(super) fn seen_and_gone(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        if self.lane.parts.has_reply(id) {
            // The reply has come, and its sender has forgotten it since.
            return;
        }
        let error = CallError { reason: CallFailure::Forgotten, execution: Execution::MayHaveRun };
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
            AbortCode::ShuttingDown => (CallFailure::ShuttingDown, Execution::DidNotRun),
            AbortCode::Overloaded => (CallFailure::Overloaded, Execution::DidNotRun),
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
        self.cancel_answered(id, error.execution, shared);
        if self.end_if_whole(id, shared) {
            return;
        }
        let Some(live) = self.lane.client.remove_live(id) else {
            return;
        };
        if let Content::Bundle(members) = live.content {
            self.bundle_arrived(now, *members, Some(error), shared);
            return;
        }
        self.leave_parts(id, shared);
        self.release(id, &live, shared);
        self.part_over(&live, shared);
        if !live.is_part() {
            self.report_failure(id, live.is_request(), error, shared);
        }
    }
}

/// Whether a message that is given up may have run. A member leaves with its bundle all the same,
/// if that still waits.
fn execution_of(live: &LiveMessage) -> Execution {
    match live.has_left() {
        true => Execution::MayHaveRun,
        false => Execution::DidNotRun,
    }
}
