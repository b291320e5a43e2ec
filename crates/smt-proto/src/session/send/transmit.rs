// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The order in which a session sends: control packets first, then the message with the fewest
//! bytes left (SPEC §9.1).
//!
//! One call writes one batch: either a datagram of control packets, or datagrams of DATA of equal
//! size.

use smt_wire::MessageId;

use super::message::Written;
use crate::error::CallFailure;
use crate::limits::DATAGRAM_FLOOR;
use crate::send::batch::DatagramBatch;
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Writes what may leave now; an empty batch means nothing. Behind another session's it writes
    /// messages alone.
    pub(crate) fn write(&mut self, now: Time, shared: &mut Shared, batch: &mut DatagramBatch<'_>) {
        let permitted = self.permitted();
        if let Some(permitted) = permitted {
            batch.limit(permitted);
        }
        let before = batch.datagram_bytes();
        self.write_what_may(now, shared, batch);
        if permitted.is_some() {
            let written = u16::try_from(batch.datagram_bytes() - before).unwrap_or(u16::MAX);
            self.permitted = self.permitted.saturating_sub(written);
        }
    }

    fn write_what_may(&mut self, now: Time, shared: &mut Shared, batch: &mut DatagramBatch<'_>) {
        self.update_keys(now, shared);
        let messages_first = core::mem::take(&mut self.lane.messages_first);
        if batch.is_empty() && !messages_first && self.write_controls(shared, batch) {
            return;
        }
        if self.may_send_messages() {
            self.write_messages(now, shared, batch);
        }
        if batch.is_empty() && messages_first {
            self.write_controls(shared, batch);
        }
        // The key may have been used up just now, and the next one be free.
        self.update_keys(now, shared);
    }

    /// Writes a datagram of control packets, if any wait.
    fn write_controls(&mut self, shared: &Shared, batch: &mut DatagramBatch<'_>) -> bool {
        if core::mem::take(&mut self.confirm_due) {
            self.write_confirm(shared.config.version, batch.bytes);
        } else if self.write_control(shared, batch.bytes) {
            // PROBE takes the way of DATA, with all that the carrier adds.
            batch.association = self.association();
            if let Some(associations) = &mut self.associations {
                associations.count(1);
            }
        }
        let has_written = !batch.bytes.is_empty();
        if has_written {
            batch.close_datagram(batch.bytes.len());
            batch.priority = CONTROL_PRIORITY;
        }
        has_written
    }

    /// Writes messages, whose packets the carrier seals if the session has associations.
    fn write_messages(&mut self, now: Time, shared: &mut Shared, batch: &mut DatagramBatch<'_>) {
        if let Some(associations) = &self.associations {
            batch.limit_datagrams(associations.left());
        }
        let before = batch.datagrams();
        self.write_sendable(now, shared, batch);
        let written = batch.datagrams() - before;
        if written == 0 {
            return;
        }
        if let Some(associations) = &mut self.associations {
            batch.association = associations.handle();
            associations.count(written);
            self.watch_associations(now);
        }
    }

    /// Writes messages until the batch is full.
    fn write_sendable(&mut self, now: Time, shared: &mut Shared, batch: &mut DatagramBatch<'_>) {
        while let Some((rank, id)) = self.lane.sendable.pop() {
            let id = self.bundle_with_waiting(now, id, shared);
            if !self.has_key_for(id, shared) {
                self.wait_for_keys(id);
                continue;
            }
            match self.write_message(now, id, shared, batch) {
                Written::AllItMay => {}
                Written::Full => {
                    self.queue_again(id, rank);
                    return;
                }
                Written::WaitsForKeys => {
                    self.keys.wait(id);
                }
                Written::BodyChanged => self.end_changed(now, id, shared),
                Written::Lost => shared.statistics.crypto_unavailable += 1,
            }
        }
    }

    /// Ends a message whose body has changed since a part of it left: that part cannot be repeated.
    fn end_changed(&mut self, now: Time, id: MessageId, shared: &mut Shared) {
        shared.statistics.bodies_changed += 1;
        if self.lane.stripes.is_own(id) {
            self.cancel(now, id, CallFailure::BodyChanged, shared);
        } else {
            self.abort_reply(now, id, shared);
        }
    }

    /// Queues a message that did not fit again, at its old turn; a bundle has the turn of its
    /// shortest member.
    fn queue_again(&mut self, id: MessageId, rank: u32) {
        if let Some(outgoing) = self.lane.outgoing_mut(id)
            && !outgoing.is_queued
        {
            outgoing.is_queued = true;
            let rank = outgoing.remaining().min(rank);
            self.lane.sendable.push((rank, id));
        }
    }

    /// How long it may wait for other sessions: the bytes left of its shortest message; control
    /// packets do not wait.
    pub(crate) fn rank(&self) -> u32 {
        if self.confirm_due || !self.lane.control.is_empty() {
            return 0;
        }
        self.lane
            .sendable
            .first()
            .filter(|_| self.may_send_messages())
            .map_or(0, |(remaining, _)| remaining.saturating_add(1))
    }

    /// Whether messages are all that it has to send.
    pub(crate) fn has_only_messages(&self) -> bool {
        !self.confirm_due && self.lane.control.is_empty() && self.has_messages()
    }

    pub(crate) fn has_output(&self, shared: &Shared) -> bool {
        if self.permitted().is_some_and(|bytes| bytes < DATAGRAM_FLOOR) {
            return false;
        }
        self.confirm_due || self.has_control(shared) || self.ended.is_none() && self.has_messages()
    }

    /// Whether messages wait that may leave.
    fn has_messages(&self) -> bool {
        !self.lane.sendable.is_empty() && self.may_send_messages()
    }

    /// Whether the endpoint's accounts have it as it is: the first of many commands changes them.
    pub(crate) fn is_schedule_current(&self, shared: &Shared) -> bool {
        self.due() == self.slot.timer
            && self.is_cipher_slot_current()
            && match self.slot.ready {
                Some((waiting, _)) => self.rank() >= waiting,
                None => !self.has_output(shared) && !self.has_ended(),
            }
    }
}

/// Control packets leave before all data.
const CONTROL_PRIORITY: u8 = 7;
