// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of a session in both directions, and the rules of their epochs (SPEC §7.3).
//!
//! ```text
//!   sender                                   receiver
//!   epoch e ── quota, or asked ──▶ e+1       first packet of e+1 opens: current = e+1, e kept
//!   nothing of e outstanding: EPOCH_DONE{e} ──▶ drops e
//!   e+2 allowed              ◀── EPOCH_ACK{e}
//! ```
//!
//! Not here: which messages hold an epoch, and the packets that carry its questions
//! (`session::key_epochs`).

mod begun_records;
mod epoch_done;
mod peer_epochs;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;

use smt_record::{IndexBits, OpenKeys, SealKeys};
use smt_wire::MessageId;

use crate::message::incoming::MessageKeys;
use crate::time::Time;

use begun_records::BegunRecords;
use epoch_done::{EpochDone, EpochInUse};
pub(super) use epoch_done::{Holder, PreviousEpoch};
use peer_epochs::{AskForUpdate, PeerEpochs};

/// The keys of a session.
pub(crate) struct Keys {
    pub(crate) seal: SealKeys,
    pub(crate) open: OpenKeys,
    epoch_done: EpochDone,
    begun: BegunRecords,
    peer_epochs: PeerEpochs,
    /// Messages that wait for the next epoch.
    waiting: BTreeSet<MessageId>,
}

impl Keys {
    pub(super) fn new(seal: SealKeys, open: OpenKeys) -> Self {
        Self {
            seal,
            open,
            epoch_done: EpochDone::default(),
            begun: BegunRecords::default(),
            peer_epochs: PeerEpochs::default(),
            waiting: BTreeSet::new(),
        }
    }

    /// The keys by which records of a message of the peer open.
    pub(super) fn of_message(&mut self, id: MessageId, index_bits: IndexBits) -> MessageKeys<'_> {
        MessageKeys { open: &mut self.open, index_bits, id }
    }

    /// Moves the sending keys on, if it is time and the epoch before the current one is finished.
    /// EPOCH_DONE is first due after `interval`. Returns whether there is a new epoch.
    pub(super) fn update(&mut self, now: Time, interval: Duration) -> bool {
        if !self.seal.wants_update() || !self.seal.can_update() {
            return false;
        }
        self.seal.update();
        self.begun.key_changed();
        self.epoch_done.restart(now, interval);
        true
    }

    /// Lets a message wait for the next epoch.
    pub(super) fn wait(&mut self, id: MessageId) {
        self.waiting.insert(id);
    }

    /// The messages that have waited for an epoch, which may go on.
    pub(super) fn take_waiting(&mut self) -> BTreeSet<MessageId> {
        core::mem::take(&mut self.waiting)
    }

    /// Counts a message of `records` records that begins.
    pub(super) fn count_message(&mut self, records: u32) {
        self.begun.add(records);
    }

    /// Whether the current key is known to be enough for a message of `records` records.
    pub(super) fn has_room_for(&self, records: u32) -> bool {
        self.begun.leaves(self.seal.records_left(), records)
    }

    /// Whether a message of `records` records may begin under a key of at most `most` records.
    ///
    /// The rest of a key is for messages that have begun. They could else not finish before the
    /// previous epoch has, and the peer's memory for them could keep out the very messages that
    /// hold that epoch. `unsealed` counts what those messages have yet to seal.
    pub(super) fn suffice(
        &mut self,
        records: u32,
        most: u64,
        unsealed: impl FnOnce() -> u64,
    ) -> bool {
        let left = self.seal.records_left();
        if self.begun.leaves(left, records) {
            return true;
        }
        let has_previous = self.seal.previous().is_some();
        // Without a previous epoch nothing would count them anew later; but the next key makes room
        // for all, and is asked for once.
        let is_last_look = !has_previous && !self.seal.wants_update();
        if is_last_look || !self.begun.was_counted_at(left) {
            self.begun = BegunRecords::counted(unsealed(), left);
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

    /// Asks about the previous epoch of this side, if that is due. `holders` finds its messages.
    pub(super) fn finish_previous(
        &mut self,
        now: Time,
        interval: Duration,
        holders: impl FnOnce(u32) -> Vec<Holder>,
    ) -> PreviousEpoch {
        let Some(previous) = self.seal.previous() else {
            self.epoch_done = EpochDone::default();
            return PreviousEpoch::NothingDue;
        };
        if !self.epoch_done.is_due(now) {
            return PreviousEpoch::NothingDue;
        }
        let is_waited_for = self.seal.wants_update() || !self.waiting.is_empty();
        let previous = EpochInUse { epoch: previous, holders: holders(previous), is_waited_for };
        self.epoch_done.ask(now, interval, previous)
    }

    /// Takes EPOCH_ACK. Returns whether the previous epoch is finished by it. EPOCH_DONE must have
    /// left: with the key go the repetitions of what was sealed under it.
    pub(super) fn epoch_acked(&mut self, epoch: u32) -> bool {
        let is_finished = self.seal.previous() == Some(epoch) && self.epoch_done.is_told();
        if is_finished {
            self.seal.finish_previous();
            self.epoch_done = EpochDone::default();
        }
        is_finished
    }

    /// Watches the keys of the peer: drops an old one that it forgot to finish. Returns whether the
    /// peer is to be asked for a new one now, and its epoch.
    pub(super) fn watch_peer(&mut self, now: Time, interval: Duration) -> Option<AskForUpdate> {
        self.peer_epochs.watch(now, interval, &mut self.open)
    }

    /// When EPOCH_DONE or a question about it is due.
    pub(super) fn epoch_done_due(&self) -> Option<Time> {
        self.epoch_done.due()
    }

    /// When KEY_UPDATE_REQUEST is due again.
    pub(super) fn update_request_due(&self) -> Option<Time> {
        self.peer_epochs.request_due()
    }

    /// The control packets that may still leave, of `most` under a key.
    ///
    /// The last ones are for what leads to the next key. Without EPOCH_DONE and EPOCH_ACK there
    /// would be none, and a message that holds the previous epoch ends only if it is asked about.
    pub(super) fn controls_left(&self, most: u64) -> ControlsLeft {
        let left = most.saturating_sub(self.seal.controls());
        if left > (most / 8).max(HOLDER_CONTROLS_MIN) {
            ControlsLeft::All
        } else if left > (most / 16).max(EPOCH_CONTROLS_MIN) {
            ControlsLeft::Holders
        } else {
            ControlsLeft::Epochs
        }
    }
}

/// The control packets that may still leave under a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ControlsLeft {
    /// Any.
    All,
    /// Questions about messages that hold the previous epoch, PING and PONG, and those of
    /// [`Self::Epochs`].
    Holders,
    /// EPOCH_DONE and EPOCH_ACK.
    Epochs,
}

/// Control packets kept for the messages that hold an epoch, and for its end, at least.
const HOLDER_CONTROLS_MIN: u64 = 8;
/// Control packets kept for EPOCH_DONE and EPOCH_ACK, at least.
const EPOCH_CONTROLS_MIN: u64 = 4;

#[cfg(test)]
mod tests;
