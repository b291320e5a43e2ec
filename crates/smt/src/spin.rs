// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting that adapts: spin for a bounded time if answers have been coming fast, else block.
//!
//! A sleep and a wake-up cost about 7 us, a third of an unloaded round trip (docs/PERF.md). Spinning yields
//! the core between looks, so that a peer on the same core is not starved. The price is CPU: at most the
//! bound per wait that comes to nothing, and after one such wait there is no spinning until answers are
//! fast again.

use std::time::{Duration, Instant};

use smt_carrier::{Carrier, ReceiveError, Received, Wait};

/// The state of one waiting place.
#[derive(Debug)]
pub(crate) struct Spin {
    bound: Duration,
    is_worthwhile: bool,
}

impl Spin {
    /// Spins for at most `bound`; zero: never.
    pub(crate) fn new(bound: Duration) -> Self {
        Self {
            bound,
            is_worthwhile: true,
        }
    }

    /// Receives, waiting for at most `wait`.
    pub(crate) fn receive(
        &mut self,
        carrier: &dyn Carrier,
        buffer: &mut [u8],
        wait: Duration,
    ) -> Result<Option<Received>, ReceiveError> {
        let bound = match self.is_worthwhile {
            true => self.bound.min(wait),
            false => Duration::ZERO,
        };
        if !bound.is_zero()
            && let Some(received) = carrier.receive(buffer, Wait::Never)?
        {
            return Ok(Some(received));
        }
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        while waited < bound {
            std::thread::yield_now();
            if let Some(received) = carrier.receive(buffer, Wait::Never)? {
                return Ok(Some(received));
            }
            waited = began.elapsed();
        }
        let received = carrier.receive(buffer, Wait::AtMost(wait.saturating_sub(waited)))?;
        self.is_worthwhile = received.is_some() && began.elapsed() < self.bound * 2;
        Ok(received)
    }
}
