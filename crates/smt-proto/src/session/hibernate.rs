// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hibernation: an idle session gives up memory that is made again when it is needed, which is
//! tables of ciphers and room in queues. It keeps its secrets, its windows, and the address of its
//! peer. A session in use gives up the tables of its ciphers when many are in use.

use super::Session;
use super::liveness::Hibernation;
use crate::limits::HIBERNATE_AFTER;
use crate::memory::cipher_cache::CipherSlot;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Tells the cipher cache that the session's tables were made.
    pub(crate) fn cache_ciphers(&mut self, shared: &mut Shared) {
        self.cipher_slot =
            shared.cipher_cache.enter(self.index, shared.config.cipher_cache_sessions);
    }

    /// Gives its ciphers' tables up.
    pub(crate) fn drop_ciphers(&mut self, shared: &mut Shared) {
        shared.cipher_cache.leave(core::mem::take(&mut self.cipher_slot));
        self.keys.seal.drop_ciphers();
        self.keys.open.drop_ciphers();
    }

    /// Whether the endpoint knows of its ciphers' tables, if there are any.
    pub(crate) fn is_cipher_slot_current(&self) -> bool {
        self.cipher_slot != CipherSlot::Empty
            || !(self.keys.seal.has_ciphers() || self.keys.open.has_ciphers())
    }

    /// Notes that a packet has come from any sender: keys may have been made again for it.
    pub(super) fn wake(&mut self, now: Time) {
        if self.liveness.wake() {
            self.pass_timer.set(now + HIBERNATE_AFTER);
        }
    }

    /// Hibernates if nothing has moved for [`HIBERNATE_AFTER`]; else its timer comes when that may
    /// be so.
    pub(super) fn hibernate_if_unused(&mut self, now: Time, shared: &mut Shared) {
        if !self.lane.is_idle() || self.liveness.is_hibernating() {
            return;
        }
        if !self.lane.control.is_empty() {
            self.pass_timer.set(now + HIBERNATE_AFTER);
            return;
        }
        match self.liveness.hibernate(now) {
            Hibernation::Already => return,
            Hibernation::At(at) => {
                self.pass_timer.set(at);
                return;
            }
            Hibernation::Now => {}
        }
        shared.cipher_cache.leave(core::mem::take(&mut self.cipher_slot));
        self.keys.seal.hibernate();
        self.keys.open.hibernate();
        self.lane.shrink_to_fit();
    }
}
