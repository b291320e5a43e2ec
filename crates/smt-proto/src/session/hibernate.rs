// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session that nobody uses gives up memory that is made again when it is needed: tables of ciphers, room in queues.
//! It keeps secrets, windows, and where its peer is. One that is used gives up the tables of its ciphers when many are.

use super::Session;
use crate::limits::REST_AFTER;
use crate::memory::cipher_cache::Warmth;
use crate::send::control_queue::ControlQueue;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Its ciphers' tables were made.
    pub(crate) fn warm_up(&mut self, shared: &mut Shared) {
        self.warmth = shared.warm.enter(self.index, shared.config.warm_sessions);
    }

    /// Gives its ciphers' tables up.
    pub(crate) fn cool(&mut self, shared: &mut Shared) {
        shared.warm.leave(std::mem::take(&mut self.warmth));
        self.seal.cool();
        self.open.cool();
    }

    /// Whether the endpoint knows of its ciphers' tables, if there are any.
    pub(crate) fn has_settled_warmth(&self) -> bool {
        self.warmth != Warmth::Cold || !(self.seal.is_warm() || self.open.is_warm())
    }

    /// Something has come, whoever sent it: keys may have been made again for it.
    pub(super) fn stir(&mut self, now: Time) {
        if std::mem::take(&mut self.is_resting) {
            self.set_due(now + REST_AFTER);
        }
    }

    /// Rests if nothing has moved for [`REST_AFTER`]; else its timer comes when that may be so.
    pub(super) fn rest_if_unused(&mut self, now: Time, shared: &mut Shared) {
        let is_unused = self.calls.is_empty() && self.served.is_empty();
        if !is_unused || self.is_resting {
            return;
        }
        if !self.control.is_empty() {
            self.set_due(now + REST_AFTER);
            return;
        }
        let at = self.last_active() + REST_AFTER;
        if now < at {
            self.set_due(at);
            return;
        }
        self.is_resting = true;
        shared.warm.leave(std::mem::take(&mut self.warmth));
        self.seal.rest();
        self.open.rest();
        self.calls.rest();
        self.served.rest();
        self.sendable.rest();
        self.control = ControlQueue::default();
        for stripe in &mut self.stripes {
            stripe.window.rest();
        }
    }
}
