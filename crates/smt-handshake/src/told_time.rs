// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The date by which TLS judges certificates: as the endpoint's owner told it, else by another
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;
use smt_proto::WallTime;

/// A clock that is told the time with each attempt.
#[derive(Debug)]
pub(crate) struct ToldTime {
    /// Seconds since 1970; 0 until the time is told.
    seconds: AtomicU64,
    otherwise: Arc<dyn TimeProvider>,
}

impl ToldTime {
    /// A clock that goes by `otherwise` as long as it is told nothing.
    pub(crate) fn new(otherwise: Arc<dyn TimeProvider>) -> Self {
        Self { seconds: AtomicU64::new(0), otherwise }
    }

    pub(crate) fn set(&self, wall: Option<WallTime>) {
        if let Some(wall) = wall {
            self.seconds.store(wall.as_secs(), Ordering::Relaxed);
        }
    }
}

impl TimeProvider for ToldTime {
    fn current_time(&self) -> Option<UnixTime> {
        match self.seconds.load(Ordering::Relaxed) {
            0 => self.otherwise.current_time(),
            seconds => Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds))),
        }
    }
}
