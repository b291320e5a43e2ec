// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key epochs of a session (SPEC §7.3).
//!
//! ```text
//!   sender                                   receiver
//!   epoch e ── quota, or asked ──▶ e+1       first packet of e+1 opens: current = e+1, e kept
//!   nothing of e outstanding: EPOCH_DONE{e} ──▶ drops e
//!   e+2 allowed              ◀── EPOCH_ACK{e}
//! ```

use alloc::vec::Vec;
use smt_wire::{Body, MessageId, PacketType};

use super::Session;
use crate::limits::{OLD_EPOCH_LIFE, RESEND_INTERVAL_MAX};
use crate::message::client_rpc::Call;
use crate::message::server_rpc::ServerRpcState;
use crate::message::transmitting::Transmitting;
use crate::recovery::retry_timer::RetryTimer;
use crate::shared::Shared;
use crate::time::Time;

impl Session {
    /// Moves the sending keys on if it is time.
    pub(super) fn update_keys(&mut self, now: Time, shared: &mut Shared) {
        if !self.seal.wants_update() || !self.seal.can_update() {
            return;
        }
        self.seal.update();
        self.begun.key_changed();
        self.unpark();
        self.controls = 0;
        self.is_epoch_done = false;
        shared.statistics.key_updates += 1;
        let retry = RetryTimer::new(now, self.rto.interval());
        self.set_due(retry.due);
        self.epoch_done_retry = Some(retry);
    }

    /// Lets messages that waited for keys go on.
    fn unpark(&mut self) {
        for id in core::mem::take(&mut self.parked) {
            self.queue_sendable(id);
        }
    }

    /// Whether a message of `records` records may begin. The rest of the key is for messages that
    /// have begun. They could else not finish before the previous epoch has, and the peer's memory
    /// for them could keep out the very messages that hold that epoch.
    pub(super) fn key_suffices(&mut self, records: u32, shared: &Shared) -> bool {
        let most = shared.config.key_limits.records();
        let left = self.seal.records_left();
        if self.begun.leaves(left, records) {
            return true;
        }
        let has_previous = self.seal.previous().is_some();
        // Without a previous epoch nothing would count them anew later; but the next key makes room
        // for all, and is asked for once.
        let is_last_look = !has_previous && !self.seal.wants_update();
        if is_last_look || !self.begun.was_counted_at(left) {
            self.begun = Begun::counted(self.records_begun(most), left);
            if self.begun.leaves(left, records) {
                return true;
            }
        }
        if has_previous {
            return false;
        }
        if u64::from(records) > most {
            // The message takes several keys, since no key has so many records.
            return true;
        }
        self.seal.request_update(self.seal.epoch());
        false
    }

    /// Records that messages which have begun have yet to seal. Messages that take several keys of
    /// `most` records are left out: they would keep all others waiting until they end.
    fn records_begun(&self, most: u64) -> u64 {
        let transmitting_pool = self.transmitting_pool();
        let unsealed =
            transmitting_pool.map(|(_, transmitting)| u64::from(transmitting.records_unsealed()));
        unsealed.filter(|records| *records <= most).sum()
    }

    /// Tells the peer that the previous epoch is finished, once it is, until the peer acknowledges.
    pub(super) fn finish_epoch(&mut self, now: Time) {
        let Some(previous) = self.seal.previous() else {
            self.epoch_done_retry = None;
            return;
        };
        let Some(mut retry) = self.epoch_done_retry.filter(|retry| retry.due <= now) else {
            return;
        };
        let (holders, released): (Vec<MessageId>, Vec<u32>) = self.holders_of(previous).unzip();
        let is_waited_for = self.seal.wants_update() || !self.parked.is_empty();
        if !holders.is_empty() && is_waited_for {
            let held = Held::by(&released);
            if self.epoch_held != held {
                self.epoch_held = held;
                retry.asked_in_vain = 0;
            }
            let longest = match retry.asked_in_vain < HURRIES {
                true => self.rto.interval() * HURRY_INTERVALS,
                false => RESEND_INTERVAL_MAX,
            };
            retry.ask(now, longest);
            self.hurry(&holders);
        } else if !holders.is_empty() {
            retry.progressed(now, self.rto.interval());
        } else {
            retry.ask(now, RESEND_INTERVAL_MAX);
            self.asked_since.get_or_insert(now);
            self.control.push(0, Body::EpochDone { epoch: previous });
            self.is_epoch_done = true;
        }
        self.epoch_done_retry = Some(retry);
    }

    /// Takes EPOCH_DONE: the peer has nothing outstanding in `epoch`.
    pub(super) fn epoch_done(&mut self, epoch: u32) {
        // A repetition is answered too, since our answer was lost. The current epoch or a future
        // one is never acknowledged.
        if self.open.finish(epoch) {
            self.control.push(0, Body::EpochAck { epoch });
        }
    }

    pub(super) fn epoch_acked(&mut self, now: Time, epoch: u32, shared: &mut Shared) {
        // Only if we said so: with the key go the repetitions of what was sealed under it.
        if self.seal.previous() == Some(epoch) && self.is_epoch_done {
            self.seal.finish_previous();
            self.epoch_done_retry = None;
            self.update_keys(now, shared);
            // Nothing of the key is reserved any more, whether or not it was time for the next one.
            self.unpark();
        }
    }

    /// Asks for new keys of the peer when too much has failed to open, until they come; and drops
    /// old ones that it forgot to finish.
    pub(super) fn watch_opening_keys(&mut self, now: Time) {
        if let Some(epoch) = self.open.take_update_request() {
            let retry = RetryTimer::new(now, self.rto.interval());
            self.key_request = Some((epoch, retry));
            self.control.push(0, Body::KeyUpdateRequest { epoch });
        }
        let current = self.open.epoch();
        if let Some((epoch, retry)) = self
            .key_request
            .take()
            .filter(|(epoch, _)| *epoch == current)
        {
            self.repeat_key_request(now, epoch, retry);
        }
        match (self.open.previous(), self.old_epoch) {
            (Some(previous), Some((epoch, since))) if previous == epoch => {
                if now.since(since) >= OLD_EPOCH_LIFE {
                    self.open.finish(previous);
                }
            }
            (previous, _) => self.old_epoch = previous.map(|epoch| (epoch, now)),
        }
    }

    fn repeat_key_request(&mut self, now: Time, epoch: u32, mut retry: RetryTimer) {
        if retry.due <= now {
            retry.ask(now, RESEND_INTERVAL_MAX);
            self.asked_since.get_or_insert(now);
            self.control.push(0, Body::KeyUpdateRequest { epoch });
        }
        self.set_due(retry.due);
        self.key_request = Some((epoch, retry));
    }

    /// Messages that may still have to repeat a record of `epoch` or before, and the offset below
    /// which they need not.
    fn holders_of(&self, epoch: u32) -> impl Iterator<Item = (MessageId, u32)> {
        self.transmitting_pool()
            .filter(move |(_, transmitting)| transmitting.holds_epoch(epoch))
            .map(|(id, transmitting)| (id, transmitting.released()))
    }

    /// Messages of which something may have been sealed.
    fn transmitting_pool(&self) -> impl Iterator<Item = (MessageId, &Transmitting)> {
        let calls = self.calls.iter().filter_map(|(number, call)| match call {
            Call::Live(live) => Some((number, live.outgoing.as_ref()?.transmitting()?)),
            Call::Cancelling { .. } => None,
        });
        let replies = self
            .served
            .iter()
            .filter_map(|(number, served)| match &served.state {
                ServerRpcState::Replying(outgoing) => Some((number, outgoing.transmitting()?)),
                _ => None,
            });
        let all = calls.chain(replies);
        all.map(|(number, transmitting)| (MessageId(number), transmitting))
    }

    /// Asks at once about the messages that hold up the next epoch, whatever their own questions
    /// have backed off to, since all other messages would wait for their key. The question has a
    /// back-off of its own.
    fn hurry(&mut self, holders: &[MessageId]) {
        for id in holders.iter().copied() {
            match self.calls.get(id.0) {
                Some(Call::Live(live)) if !live.is_one_way => {
                    self.control
                        .reply_progress(id, live.incoming.as_deref(), true);
                }
                _ => self.control.id(PacketType::NeedAck, id),
            }
        }
    }
}

/// Messages that hold up an epoch are asked about at least once in this many resend intervals.
const HURRY_INTERVALS: u32 = 8;
/// Questions about an epoch that have changed nothing after which they become rarer: a loss that
/// lasts is asked about ever more rarely (SPEC §9.3).
const HURRIES: u32 = 8;

/// Holders of an epoch: while they stay the same, asking about it has changed nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Held {
    messages: u32,
    /// Bytes of the messages that the peer has opened, modulo 2^32; the number only goes up.
    released: u32,
}

impl Held {
    fn by(released: &[u32]) -> Self {
        Self {
            messages: u32::try_from(released.len()).unwrap_or(u32::MAX),
            released: released.iter().copied().fold(0, u32::wrapping_add),
        }
    }
}

/// An upper bound of the records that messages which have begun have yet to seal: the records of a
/// message are added when it begins, and those that it seals are not taken off. All are counted
/// anew when they seem to be too many, and not at every write: a peer may let an epoch last, and a
/// look through 20,000 messages takes 86 us.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    records: u32,
    /// Records left of the key when they were counted; [`u32::MAX`], which no key has, if that was
    /// another key.
    left: u32,
}

impl Begun {
    fn counted(records: u64, left: u64) -> Self {
        Self {
            records: records.try_into().unwrap_or(u32::MAX),
            left: left.try_into().unwrap_or(u32::MAX),
        }
    }

    /// Whether nothing was sealed since they were counted: then it is what they still need, unless
    /// some have ended.
    fn was_counted_at(&self, left: u64) -> bool {
        u64::from(self.left) == left
    }

    /// Notes that there is another key.
    fn key_changed(&mut self) {
        self.left = u32::MAX;
    }

    /// Adds a message of `records` records that begins.
    pub(super) fn add(&mut self, records: u32) {
        self.records = self.records.saturating_add(records);
    }

    /// Whether the rest of a key is enough for this many more records.
    pub(super) fn leaves(&self, left: u64, records: u32) -> bool {
        u64::from(self.records) + u64::from(records) <= left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_begins_counts_until_all_are_counted_anew() {
        let mut begun = Begun::counted(90, 500);
        assert!(begun.leaves(500, 410) && !begun.leaves(500, 411));
        begun.add(10);
        assert!(begun.leaves(500, 400) && !begun.leaves(500, 401));
        assert!(begun.was_counted_at(500) && !begun.was_counted_at(499));
        begun.key_changed();
        assert!(!begun.was_counted_at(500));
    }
}
