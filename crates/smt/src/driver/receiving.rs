// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes in what the carrier has received.

use smt_carrier::{ReceiveError, Received, Wait};
use smt_proto::Time;

use super::{Driver, Receiver};
use crate::sync::{MutexGuard, PoisonError};

impl Driver {
    /// Receives one batch without waiting; whether there was one.
    pub(crate) fn receive_now(&self) -> bool {
        self.receive_one(&mut self.lock_receiver()).is_some()
    }

    pub(super) fn lock_receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives one batch without waiting; its bytes, if there was one.
    pub(super) fn receive_one(&self, receiver: &mut Receiver) -> Option<usize> {
        if !self.process.is_this() {
            // The socket is the original's.
            return None;
        }
        let Receiver {
            carrier, buffer, ..
        } = receiver;
        let received = carrier.as_ref()?.receive(buffer, Wait::Never);
        let bytes = match &received {
            Ok(Some(received)) => Some(received.length),
            Err(ReceiveError::Unreachable { .. }) => Some(0),
            // A carrier that does not work any more never has anything.
            Ok(None) | Err(_) => None,
        };
        if bytes.is_some() || !matches!(received, Ok(None)) {
            self.take_in(self.now(), received, buffer);
        }
        bytes
    }

    /// Takes what was received. Returns whether a waiter was told of something.
    pub(super) fn take_in(
        &self,
        now: Time,
        received: Result<Option<Received>, ReceiveError>,
        buffer: &mut [u8],
    ) -> bool {
        let _entered = self.span.enter();
        let mut state = self.lock();
        let now = state.advance(now);
        let has_come = matches!(received, Ok(Some(_)));
        match received {
            Ok(None) => {}
            Ok(Some(received)) => {
                state.endpoint.handle_arrival(now, received.arrival(buffer));
            }
            Err(ReceiveError::Unreachable {
                remote: Some(remote),
            }) => state.endpoint.handle_unreachable(now, remote),
            Err(error) => tracing::trace!(?error, "receiving failed once"),
        }
        state.fire_timers(now, has_come);
        state.tell_all();
        let has_told = state.has_woken();
        if self.background.is_some() && self.turn.untaken() > 0 && !state.is_closed {
            // Those who were told run soon, and the leader again after them.
            state.cork.put_in(now);
        }
        let (state, now) = self.send(state, now);
        self.give_back(state, now, Self::wake_together);
        self.take_answers();
        has_told
    }
}
