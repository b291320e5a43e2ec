// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of an endpoint while handles of it live: sessions close, and the socket goes with the
//! last thread that is in it.

use smt_proto::CloseCode;

use super::Driver;
use crate::endpoint_state::{EndpointState, SEND_AGAIN};
use crate::sync::thread;

impl Driver {
    /// Closes all sessions and the carrier. Threads that receive have left it when this returns; a
    /// task that drives leaves it when it runs next.
    pub(crate) fn shut_down(&self, code: CloseCode) {
        self.begin_shutdown(code);
        self.send_the_rest();
        self.release();
    }

    /// Begins to close all sessions: that is over when [`Driver::has_sent_the_rest`], and
    /// [`Driver::release`] closes the carrier.
    pub(crate) fn begin_shutdown(&self, code: CloseCode) {
        self.answers.close();
        self.change(|state, now| state.shut_down(now, code));
        self.wake_driver();
    }

    /// Waits until what the end of the sessions brings about has left; not for long if the socket
    /// has no room.
    pub(super) fn send_the_rest(&self) {
        while !self.has_sent_the_rest() {
            thread::sleep(SEND_AGAIN);
        }
    }

    /// Whether what the end of the sessions brings about has left now, or it is too late for it.
    pub(crate) fn has_sent_the_rest(&self) -> bool {
        self.change(|_, _| ());
        self.look(|state| state.has_closed(self.now()))
    }

    /// Ends an endpoint whose driver is gone: its runtime has ended, and waiting here for a full
    /// socket holds up none of its tasks.
    #[cfg(feature = "async")]
    pub(crate) fn abandon(&self) {
        self.answers.close();
        self.change(|state, now| state.abandon(now));
        self.send_the_rest();
        self.release();
        self.change(|state, _| state.tell_released());
    }

    /// Lets go of the carrier.
    pub(crate) fn release(&self) {
        // The receiving thread may want the state meanwhile: one lock after the other.
        let socket = self.look(EndpointState::release);
        if !self.process.is_this() {
            // The original has the same socket and goes on receiving; what its leader has locked
            // stays locked here.
            return;
        }
        if let Some(socket) = socket {
            socket.stop_receiving();
        }
        // A leader on a carrier that is no socket looks up every 250 ms.
        let mut receiver = self.lock_receiver();
        receiver.carrier = None;
        #[cfg(feature = "async")]
        receiver.looks.close();
    }
}
