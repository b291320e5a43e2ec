// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tickets of one attempt: the session that it resumes, and those that may be resumed later.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::store::{Entry, Place};
use super::{Proof, Sessions};

/// TLS's view of a side's sessions during one attempt.
pub(crate) struct AttemptTickets<V> {
    sessions: Arc<Sessions<V>>,
    may_resume: bool,
    state: Mutex<State<V>>,
}

struct State<V> {
    /// When the identity ends that the session has proved which was taken last.
    proved_until: u64,
    /// Tickets that have come or are to leave, by name, with bytes of memory.
    collected: Vec<(Vec<u8>, V, usize)>,
}

impl<V> AttemptTickets<V> {
    /// An attempt that keeps tickets, and resumes a session if it may and there is one.
    pub(super) fn new(sessions: &Arc<Sessions<V>>, may_resume: bool) -> Self {
        Self {
            sessions: Arc::clone(sessions),
            may_resume,
            state: Mutex::new(State { proved_until: 0, collected: Vec::new() }),
        }
    }

    /// Takes a session to resume.
    pub(super) fn take(&self, name: &[u8]) -> Option<V> {
        if !self.may_resume {
            return None;
        }
        let (value, until) = self.sessions.take(name)?;
        self.lock().proved_until = until;
        Some(value)
    }

    /// Collects a ticket until the attempt's end. Returns false if it has enough.
    pub(super) fn collect(&self, name: Vec<u8>, value: V, bytes: usize) -> bool {
        let mut state = self.lock();
        let has_room = state.collected.len() < TICKETS_MAX;
        if has_room {
            state.collected.push((name, value, bytes));
        }
        has_room
    }

    /// Keeps what was collected; each ticket takes so many bytes more.
    pub(super) fn keep(&self, proof: Proof<'_>, bytes: usize) {
        let mut state = self.lock();
        if state.collected.is_empty() {
            return;
        }
        // Resumption proves nothing anew: a chain of it ends with the proof at its beginning.
        let until = match proof.is_resumed {
            true => state.proved_until,
            false => self.sessions.end_of(proof.certificates),
        };
        let Some(now) = self.sessions.now() else {
            state.collected.clear();
            return;
        };
        let mut store = self.sessions.lock();
        for (name, value, own) in state.collected.drain(..) {
            let entry = Entry { value, until, bytes: own + bytes };
            store.put(Place { name: &name, now }, entry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> fmt::Debug for AttemptTickets<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTickets").finish_non_exhaustive()
    }
}

/// Tickets of an attempt that are kept.
const TICKETS_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::super::SessionsPlan;
    use super::*;
    use crate::told_time::ToldTime;

    // SMT [6.10-12]
    #[test]
    fn an_attempt_keeps_few_tickets_however_many_come() {
        let plan =
            SessionsPlan { memory: 10_000, of_name: 8, judges_dates: false, trust_until: None };
        let time = ToldTime::new(Arc::new(rustls::time_provider::DefaultTimeProvider));
        let sessions = Sessions::new(plan, Arc::new(time));
        let tickets = AttemptTickets::new(&sessions, true);
        let kept = (0..9).filter(|number| tickets.collect(vec![*number], *number, 10));
        assert_eq!(kept.count(), TICKETS_MAX);
    }
}
