// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes in what the carrier has received.

use smt_carrier::{Arrival, ReceiveError, Wait};
use smt_proto::Time;

use super::{Driver, Receiver};
use crate::endpoint_state::EndpointState;
use crate::pump::take_report;
use crate::sync::{MutexGuard, PoisonError};

impl Driver {
    /// Receives one batch without waiting; whether there was one.
    pub(crate) fn receive_now(&self) -> bool {
        self.receive_one(&self.lock_receiver()).is_some()
    }

    pub(super) fn lock_receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives one batch without waiting; its bytes, if there was one.
    pub(super) fn receive_one(&self, receiver: &Receiver) -> Option<usize> {
        if !self.process.is_this() {
            // The socket is the original's.
            return None;
        }
        let carrier = receiver.carrier.as_ref()?;
        let mut intake = Intake::new(self);
        let outcome = carrier.receive(&mut |arrival| intake.take(arrival), Wait::Never);
        if matches!(outcome, Ok(0)) {
            return None;
        }
        let bytes = intake.bytes;
        intake.end(self.now(), outcome);
        match outcome {
            Ok(_) | Err(ReceiveError::Unreachable { .. }) => Some(bytes),
            // A carrier that does not work any more never has anything.
            Err(_) => None,
        }
    }
}

/// The taking in of what one receive call hands over: under the endpoint's lock, which is taken
/// when the first arrival comes and kept until all that follows from it is done.
pub(super) struct Intake<'a> {
    driver: &'a Driver,
    state: Option<(MutexGuard<'a, EndpointState>, Time)>,
    /// Bytes that have come.
    bytes: usize,
}

impl<'a> Intake<'a> {
    pub(super) fn new(driver: &'a Driver) -> Self {
        Self { driver, state: None, bytes: 0 }
    }

    /// Takes in datagrams that came together.
    pub(super) fn take(&mut self, arrival: Arrival<'_>) {
        let driver = self.driver;
        let _entered = driver.span.enter();
        let (state, now) = self.state.get_or_insert_with(|| {
            let now = driver.now();
            driver.lock_at(now)
        });
        self.bytes += arrival.bytes.len();
        state.endpoint.handle_arrival(*now, arrival);
    }

    /// Does what follows from it. Returns whether a waiter was told of something.
    pub(super) fn end(self, now: Time, outcome: Result<usize, ReceiveError>) -> bool {
        let driver = self.driver;
        let _entered = driver.span.enter();
        let (mut state, now) = self.state.unwrap_or_else(|| driver.lock_at(now));
        if let Err(report) = outcome {
            take_report(&mut state.endpoint, now, report);
        }
        let has_come = outcome.is_ok_and(|arrivals| arrivals > 0);
        state.fire_timers(now, has_come);
        state.tell_all();
        let has_told = state.has_woken();
        if driver.background.is_some() && driver.turn.untaken() > 0 && !state.is_closed {
            // Those who were told run soon, and the leader again after them.
            state.cork.put_in(now);
        }
        let (state, now) = driver.send(state, now);
        driver.give_back(state, now, Driver::wake_together);
        driver.take_answers();
        has_told
    }
}

impl Driver {
    /// The lock, and the time for the protocol.
    fn lock_at(&self, now: Time) -> (MutexGuard<'_, EndpointState>, Time) {
        let mut state = self.lock();
        let now = state.advance(now);
        (state, now)
    }
}
