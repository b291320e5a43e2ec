// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way between a carrier and a protocol core that one owner drives.
//!
//! 1. [`Pump::receive`] takes what has come by the carrier into the core.
//! 2. [`Pump::flush`] sends what the core has for the carrier. A batch for which the carrier has no
//!    room waits, and leaves before all others with the next flush.
//! 3. [`Pump::next_wake`] tells when the core or a waiting batch wants the next turn.
//!
//! An endpoint that several threads share keeps its lock out of the carrier's calls, and has the
//! two halves apart: the driver takes arrivals in (`driver/receiving.rs`), and its state has the
//! outbox (`pump/outbox.rs`).

mod outbox;

use std::sync::Arc;

use smt_carrier::{Carrier, ReceiveError, Wait};
use smt_proto::{Endpoint, Time};

use crate::endpoint_state::SEND_AGAIN;

pub(crate) use outbox::{Outbox, OutgoingBatch};

/// Moves datagrams between a carrier and a protocol core.
pub struct Pump {
    carrier: Arc<dyn Carrier>,
    outbox: Outbox,
}

impl Pump {
    /// A pump with nothing to send. The core should know the carrier's abilities
    /// ([`Endpoint::set_capabilities`]).
    #[must_use]
    pub fn new(carrier: Arc<dyn Carrier>) -> Self {
        let outbox = Outbox::new(Arc::clone(&carrier));
        Self { carrier, outbox }
    }

    /// Takes in what has come, by one call to the carrier, and tells whether something came: then
    /// there may be more. `now` is asked for the time when it comes. A report of an unreachable
    /// peer is something, too.
    ///
    /// # Errors
    /// The carrier could not receive; the next call may.
    pub fn receive(
        &self,
        endpoint: &mut Endpoint,
        now: impl Fn() -> Time,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        let mut sink = |arrival: smt_carrier::Arrival<'_>| endpoint.handle_arrival(now(), arrival);
        match self.carrier.receive(&mut sink, wait) {
            Ok(arrivals) => Ok(arrivals > 0),
            Err(report @ ReceiveError::Unreachable { .. }) => {
                take_report(endpoint, now(), report);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends what is ready. Returns whether all has left; if not, the carrier has no room.
    pub fn flush(&mut self, endpoint: &mut Endpoint, now: Time) -> bool {
        while let Some(batch) = self.outbox.take(now, endpoint) {
            let outcome = batch.send();
            if !self.outbox.put_back(now, endpoint, batch, outcome) {
                return false;
            }
        }
        true
    }

    /// When the next turn is due, if nothing comes before: for the core's timers, or for a batch
    /// that waits for the carrier to have room.
    #[must_use]
    pub fn next_wake(&self, endpoint: &Endpoint, now: Time) -> Option<Time> {
        let timer = endpoint.poll_timeout().map(|(due, _)| due);
        let unsent = self.outbox.has_unsent().then(|| now + SEND_AGAIN);
        timer.into_iter().chain(unsent).min()
    }

    /// Whether a batch waits for the carrier to have room.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.outbox.has_unsent()
    }

    /// Drops the batch that waits for the carrier to have room.
    pub fn forget_unsent(&mut self) {
        self.outbox.forget_unsent();
    }
}

impl std::fmt::Debug for Pump {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Pump")
            .field("local_address", &self.carrier.local_address())
            .field("has_unsent", &self.has_unsent())
            .finish_non_exhaustive()
    }
}

/// Takes in why a carrier had nothing to hand over.
pub(crate) fn take_report(endpoint: &mut Endpoint, now: Time, report: ReceiveError) {
    match report {
        ReceiveError::Unreachable { remote: Some(remote) } => {
            endpoint.handle_unreachable(now, remote)
        }
        error => tracing::trace!(?error, "receiving failed once"),
    }
}

#[cfg(test)]
mod tests;
