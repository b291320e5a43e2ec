// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When each name is looked up, by times that the caller tells.
//!
//! 1. A name that is added is due at once.
//! 2. After a lookup with a ticket it is due again when the record's time is over ([`kept_for`]),
//!    up to a tenth earlier, so that clients that began together do not ask together.
//! 3. After one without it is due again after a pause, which doubles up to its bound.
//!
//! [`kept_for`]: crate::kept_for

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits::{
    FAILURE_PAUSE_FIRST, FAILURE_PAUSE_MAX, LOOKUP_PAUSE_MIN, LOOKUPS_AT_ONCE, NAMES_MAX,
};
use crate::server::Server;

/// The lookups to come. Times are since any moment, the same for all calls.
#[derive(Debug, Default)]
pub(crate) struct RefreshPlan(BTreeMap<Server, Entry>);

#[derive(Debug, Default)]
struct Entry {
    /// `None` while it is being looked up.
    due: Option<Duration>,
    failed: u32,
}

impl RefreshPlan {
    /// Looks a server up from now on; false if there are too many already.
    pub(crate) fn add(&mut self, server: Server, now: Duration) -> bool {
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(&server) {
            return false;
        }
        let entry = || Entry { due: Some(now), failed: 0 };
        self.0.entry(server).or_insert_with(entry);
        true
    }

    /// Looks it up no more.
    pub(crate) fn remove(&mut self, server: &Server) {
        self.0.remove(server);
    }

    /// The servers to be looked up now, those that wait longest first. Each is being looked up
    /// until [`Self::found`] or [`Self::failed`] tells the end.
    pub(crate) fn begin(&mut self, now: Duration) -> Vec<Server> {
        let busy = self.0.values().filter(|entry| entry.due.is_none()).count();
        let is_due = |entry: &Entry| entry.due.filter(|due| *due <= now);
        let due = self.0.iter().filter_map(|(server, entry)| Some((is_due(entry)?, server)));
        let mut due: Vec<_> = due.collect();
        due.sort();
        due.truncate(LOOKUPS_AT_ONCE.saturating_sub(busy));
        let servers: Vec<Server> = due.into_iter().map(|(_, server)| server.clone()).collect();
        for server in &servers {
            if let Some(entry) = self.0.get_mut(server) {
                entry.due = None;
            }
        }
        servers
    }

    /// When the next server is due; `None` if the end of a lookup has to come first.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let busy = self.0.values().filter(|entry| entry.due.is_none()).count();
        match busy {
            LOOKUPS_AT_ONCE.. => None,
            _ => self.0.values().filter_map(|entry| entry.due).min(),
        }
    }

    /// A lookup has found a ticket that is kept so long. `random` is any number.
    pub(crate) fn found(&mut self, server: &Server, now: Duration, kept: Duration, random: u32) {
        let part = f64::from(random) / f64::from(u32::MAX);
        let pause = kept.mul_f64(1.0 - part / 10.0).max(LOOKUP_PAUSE_MIN);
        if let Some(entry) = self.0.get_mut(server) {
            *entry = Entry { due: Some(now.saturating_add(pause)), failed: 0 };
        }
    }

    /// A lookup has found none.
    pub(crate) fn failed(&mut self, server: &Server, now: Duration) {
        if let Some(entry) = self.0.get_mut(server) {
            let longer = FAILURE_PAUSE_FIRST.saturating_mul(1 << entry.failed.min(16));
            entry.due = Some(now.saturating_add(longer.min(FAILURE_PAUSE_MAX)));
            entry.failed = entry.failed.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests;
