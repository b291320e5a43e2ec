// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Timers of a session: deadlines, questions (`retransmit`), death (SPEC §9.3-§9.9, §10).
//!
//! One pass looks at every live message, does what is due, and finds the next moment that anything
//! is. It runs the more rarely the more messages are live ([`TIMER_GRAIN_EACH`]), and not at all
//! while nothing waits.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use smt_wire::{Body, MessageId, PacketType};

use super::Session;
use super::liveness::Silence;
use crate::error::{CallFailure, CloseCode, SessionEnd};
use crate::limits::{
    CALLER_QUIET_MAX, QUESTIONS_PER_PASS, RESEND_INTERVAL_MAX, TIMER_GRAIN_EACH, TIMER_GRAIN_MAX,
    TIMER_GRAIN_MIN,
};
use crate::message::client_message::ClientMessage;
use crate::message::server_rpc::ServerRpcState;
use crate::shared::Shared;
use crate::time::Time;

/// How long a caller may say nothing before it is asked.
pub(in crate::session) fn caller_quiet_max(shared: &Shared) -> Duration {
    CALLER_QUIET_MAX.min(shared.config.silence_max / 2)
}

impl Session {
    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time, shared: &mut Shared) {
        if self.ended.is_some() || !self.pass_timer.start_pass(now) {
            return;
        }
        self.time_calls(now, shared);
        self.time_served(now, shared);
        self.finish_epoch(now);
        self.watch_opening_keys(now);
        self.watch_associations(now);
        self.repeat_session_questions(now);
        self.probe_sizes(now);
        let reordered_due = self.lane.reordered.expire(now, &mut shared.reordered_memory);
        self.pass_timer.set_if(reordered_due);
        if let Some(silent) = self.watch_silence(now, shared) {
            self.end(SessionEnd::Silent(silent), shared);
            return;
        }
        if !self.waits_to_be_confirmed() {
            self.pass_timer.set_if(self.recovery.pmtud.due());
        }
        self.hibernate_if_unused(now, shared);
        self.close_if_idle(now, shared);
        self.close_if_expired(now, shared);
        self.pass_timer.end_pass(now, self.timer_grain());
    }

    fn timer_grain(&self) -> Duration {
        let live = self.lane.len();
        let grain = TIMER_GRAIN_EACH.saturating_mul(u32::try_from(live).unwrap_or(u32::MAX));
        grain.clamp(TIMER_GRAIN_MIN, TIMER_GRAIN_MAX)
    }

    /// Asks a peer that is silent. Returns how long it has been silent, if that means that it is
    /// dead (SPEC §9.9).
    fn watch_silence(&mut self, now: Time, shared: &Shared) -> Option<Duration> {
        match self.liveness.silence(now, shared.config.silence_max) {
            Silence::None => {}
            Silence::Asked { ping_at } => self.pass_timer.set(ping_at),
            Silence::Suspect { dead_at } => {
                self.ping(now);
                self.pass_timer.set_if(dead_at);
            }
            Silence::Dead(silent) => return Some(silent),
        }
        None
    }

    /// Takes an unreachable hint: finds out whether the peer still answers, if anything waits for
    /// it.
    pub(crate) fn suspect(&mut self, now: Time) {
        if !self.lane.is_idle() {
            self.ping(now);
        }
    }

    pub(super) fn ping(&mut self, now: Time) {
        if self.ended.is_none() && self.liveness.start_ping(now, self.recovery.rto.interval()) {
            self.lane.control.push(0, Body::Ping(now.as_nanos()));
            self.pass_timer.set(now + TIMER_GRAIN_MAX);
        }
    }

    /// Asks for room in the id window, and hurries the oldest id of each stripe that the peer may
    /// not have seen, before all newer ones (SPEC §4.2).
    pub(super) fn ask_for_window(&mut self) {
        let mut oldest: Vec<Option<MessageId>> = vec![None; self.lane.stripes.len()];
        let window = self.agreement.peer_window;
        for (id, live) in self.lane.client.iter_live() {
            let place = &mut oldest[usize::from(self.lane.stripes.number_of(id))];
            let is_seen = live.is_seen || self.lane.stripes.is_below_peer_floor(id, window);
            if !is_seen && place.is_none_or(|other| id < other) {
                *place = Some(id);
            }
        }
        for (stripe, oldest) in oldest.into_iter().enumerate() {
            self.lane.control.push(stripe as u16, Body::WindowRequest);
            let oldest = oldest.map(|id| self.lane.client.carrier_of(id));
            if let Some(id) = oldest
                && let Some(outgoing) = self.lane.client.outgoing_mut(id)
            {
                outgoing.ask_again(0, 1);
                outgoing.is_queued = true;
                self.lane.sendable.push((0, id));
            }
        }
    }

    /// Questions that are about the session: is the peer there, may new ids be used?
    fn repeat_session_questions(&mut self, now: Time) {
        if self.liveness.repeat_ping(now) {
            self.lane.control.push(0, Body::Ping(now.as_nanos()));
        }
        self.pass_timer.set_if(self.liveness.ping_due());
        self.repeat_part_window_requests(now);
        if let Some(retry) = &mut self.lane.blocked {
            let is_due = retry.due <= now;
            if is_due {
                retry.ask(now, RESEND_INTERVAL_MAX);
            }
            self.pass_timer.set(retry.due);
            if is_due {
                self.liveness.asked(now);
                self.ask_for_window();
            }
        }
    }

    fn time_calls(&mut self, now: Time, shared: &mut Shared) {
        let mut expired = Vec::new();
        let mut undecided = Vec::new();
        let mut silent = Vec::new();
        let mut earliest = None;
        for (id, message) in self.lane.client.iter_mut() {
            let due = match message {
                ClientMessage::Live(live) => {
                    if live.deadline.is_some_and(|deadline| deadline <= now) {
                        expired.push(id);
                        continue;
                    }
                    if live.retry.due <= now && silent.len() < QUESTIONS_PER_PASS {
                        let is_first_probe = live.retry.ask(now, RESEND_INTERVAL_MAX);
                        silent.push((id, is_first_probe));
                    }
                    live.due()
                }
                ClientMessage::Cancelling(cancelling) => {
                    if cancelling.retry.due <= now {
                        cancelling.retry.ask(now, RESEND_INTERVAL_MAX);
                        self.lane.control.id(PacketType::Cancel, id);
                        self.liveness.asked(now);
                    }
                    if cancelling.untold.is_some_and(|untold| untold.until <= now) {
                        undecided.push(id);
                        cancelling.retry.due
                    } else {
                        cancelling.due()
                    }
                }
            };
            earliest = Some(earliest.map_or(due, |earlier: Time| earlier.min(due)));
        }
        if let Some(due) = earliest {
            self.pass_timer.set(due);
        }
        for id in expired {
            self.expire(now, id, shared);
        }
        for id in undecided {
            self.tell_undecided(id, CallFailure::DeadlineExceeded, shared);
        }
        for (id, is_first_probe) in silent {
            let waits_for_all = self.ask_about_call(now, id, shared);
            if is_first_probe && waits_for_all {
                self.send_request_again(id);
            }
        }
    }

    fn time_served(&mut self, now: Time, shared: &mut Shared) {
        let mut due = Vec::new();
        let mut earliest: Option<Time> = None;
        let mut is_working = false;
        for (number, served) in self.lane.server.iter() {
            // The application's turn; or the bundle asks.
            if matches!(served.state, ServerRpcState::Working { .. } | ServerRpcState::Bundled(_)) {
                is_working |= matches!(served.state, ServerRpcState::Working { .. });
                continue;
            }
            if served.retry.due <= now && due.len() < QUESTIONS_PER_PASS {
                due.push(MessageId(number));
            } else {
                earliest = Some(earliest.map_or(served.retry.due, |e| e.min(served.retry.due)));
            }
        }
        if let Some(earliest) = earliest {
            self.pass_timer.set(earliest);
        }
        for id in due {
            self.ask_about_served(now, id, shared);
        }
        if is_working {
            self.watch_callers(now, shared);
        }
    }

    /// A caller asks about its call twice a second. One that has said nothing for longer may be
    /// gone: it is asked, so that the application need not work in vain (SPEC §9.9).
    fn watch_callers(&mut self, now: Time, shared: &Shared) {
        let quiet_until = self.liveness.received_at() + caller_quiet_max(shared);
        match now < quiet_until {
            true => self.pass_timer.set(quiet_until),
            false => self.ping(now),
        }
    }

    fn probe_sizes(&mut self, now: Time) {
        // PROBE leaves as DATA does, in a sealed packet if the session has such.
        if self.waits_to_be_confirmed() || !self.may_send_messages() {
            return;
        }
        for size in self.recovery.pmtud.probe(now) {
            let padding = size - smt_wire::ControlHeader::LEN - smt_wire::TAG_LEN;
            self.lane.control.push(0, Body::Probe { padding });
        }
    }

    /// Closes idle sessions of a server (SPEC §10).
    fn close_if_idle(&mut self, now: Time, shared: &mut Shared) {
        if !self.lane.is_idle() || self.agreement.side == smt_record::Side::Client {
            return;
        }
        let end = self.liveness.used_at() + shared.config.idle_life;
        if now >= end {
            self.close(CloseCode::Idle, shared);
        } else {
            self.pass_timer.set(end);
        }
    }
}
