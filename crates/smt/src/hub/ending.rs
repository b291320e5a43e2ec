// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of an endpoint while handles of it live: sessions close, and the socket goes with the last thread that is in it.

use std::sync::PoisonError;

use smt_proto::CloseCode;

use super::Hub;

impl Hub {
    /// Closes all sessions and the carrier. Threads that receive have left it when this returns; a task that drives leaves
    /// it when it runs next.
    pub(crate) fn shut_down(&self, code: CloseCode) {
        self.change(|core, now| core.shut_down(now, code));
        self.wake_driver();
        self.release();
    }

    /// What drove it is gone.
    #[cfg(feature = "tokio")]
    pub(crate) fn abandon(&self) {
        self.change(|core, now| core.abandon(now));
        self.release();
    }

    fn release(&self) {
        // Whoever receives may want the state meanwhile: one lock after the other.
        let socket = self.lock().release();
        if !self.process.is_this() {
            // The original has the same socket and goes on receiving; what its leader has locked stays locked here.
            return;
        }
        if let Some(socket) = socket {
            socket.stop_receiving();
        }
        // Of a carrier that is no socket a leader looks up every 250 ms.
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.carrier = None;
    }
}
