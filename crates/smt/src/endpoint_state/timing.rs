// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When something is to be done although nothing comes: the protocol's timers, alarms of those who
//! wait, and until when the driver sleeps.

use std::task::Waker;
use std::time::Duration;

use smt_proto::Time;

use super::{EndpointState, SEND_AGAIN};

impl EndpointState {
    /// The task that drives is about to sleep: until when, if nothing comes and nobody wakes it.
    pub(crate) fn sleep(&mut self, now: Time, longest: Duration) -> Duration {
        let idle = self.idle_time(now).map_or(longest, |idle| idle.min(longest));
        self.sleeps_until = Some(now + idle);
        idle
    }

    /// Whether the task that drives sleeps for too long. It is to be woken then, once.
    pub(crate) fn oversleeps(&mut self, now: Time) -> bool {
        let Some(until) = self.sleeps_until else {
            return false;
        };
        let is_late = self.idle_time(now).is_some_and(|idle| now + idle < until);
        if is_late {
            self.sleeps_until = None;
        }
        is_late
    }

    /// Fires the timers that are due. If something `has_come` just now, the carrier may have more:
    /// then the protocol's timers wait until a look has found nothing, but not for long. An
    /// endpoint that was held up shall not ask again for datagrams that lie in its socket.
    pub(crate) fn fire_timers(&mut self, now: Time, has_come: bool) {
        self.wall_time_told.tell(now, &mut self.endpoint);
        let put_off = if has_come { PUT_OFF } else { Duration::ZERO };
        if self.endpoint.poll_timeout().is_some_and(|(due, _)| due + put_off <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.handle_servers_timeout(now);
        self.close_refused(now);
        self.peer_log.tell_due(now);
        while let Some(alarm) = self.alarms.first_entry()
            && alarm.key().0 <= now
        {
            self.woken.push(alarm.remove());
        }
    }

    /// Wakes at `due`, unless [`EndpointState::clear_alarm`] comes first. A ticket has one alarm.
    pub(crate) fn set_alarm(&mut self, due: Time, ticket: &mut Option<u64>, waker: &Waker) {
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        self.alarms.insert((due, ticket), waker.clone());
    }

    pub(crate) fn clear_alarm(&mut self, due: Time, ticket: &mut Option<u64>) {
        if let Some(ticket) = ticket.take() {
            self.alarms.remove(&(due, ticket));
        }
    }

    /// How long nothing is to be done here, unless something comes.
    pub(crate) fn idle_time(&self, now: Time) -> Option<Duration> {
        let timer = self.endpoint.poll_timeout().map(|(due, _)| due);
        let alarm = self.alarms.keys().next().map(|(due, _)| *due);
        let servers = self.servers.due();
        let due = [timer, alarm, servers, self.refused_due(), self.peer_log.due()];
        let due = due.into_iter().flatten().min();
        let timer = due.map(|due| due.since(now));
        let has_more = self.outbox.has_unsent() || !self.has_closed(now);
        match (has_more, timer) {
            (true, timer) => Some(timer.map_or(SEND_AGAIN, |timer| timer.min(SEND_AGAIN))),
            (false, timer) => timer,
        }
    }
}

/// The protocol's timers are late by this time at most while something comes all the time.
pub(super) const PUT_OFF: Duration = Duration::from_millis(1);
