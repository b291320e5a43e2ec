// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The counts of quinn over all connections of the process.

use std::sync::{Arc, Mutex, PoisonError};

use kit_process::Counts;
use quinn::Connection;

/// The counts so far.
#[derive(Clone, Default)]
pub(crate) struct Total(Arc<Mutex<Counts>>);

impl Total {
    /// Adds a connection that has ended.
    pub(crate) fn add(&self, connection: &Connection) {
        let path = connection.stats().path;
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.sent = Some(counts.sent.unwrap_or_default() + path.sent_packets);
        counts.lost = Some(counts.lost.unwrap_or_default() + path.lost_packets);
        counts.window = Some(counts.window.map_or(path.cwnd, |of| of.min(path.cwnd)));
    }

    pub(crate) fn get(&self) -> Counts {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
