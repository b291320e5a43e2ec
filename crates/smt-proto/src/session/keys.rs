// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key epochs of a session (SPEC §7.3).
//!
//! ```text
//!   sender                                   receiver
//!   epoch e ── quota, or asked ──▶ e+1       first packet of e+1 opens: current = e+1, e kept
//!   nothing of e outstanding: EPOCH_DONE{e} ──▶ drops e
//!   e+2 allowed              ◀── EPOCH_ACK{e}
//! ```

use smt_wire::{Body, MessageId, PacketType};

use super::{Session, Shared};
use crate::call::Call;
use crate::leaving::Leaving;
use crate::limits::{OLD_EPOCH_LIFE, RESEND_INTERVAL_MAX};
use crate::question::Question;
use crate::served::ServedState;
use crate::time::Time;

impl Session {
    /// Moves the sending keys on if it is time.
    pub(super) fn update_keys(&mut self, now: Time, shared: &mut Shared) {
        if !self.seal.wants_update() || !self.seal.can_update() {
            return;
        }
        self.seal.update();
        self.unpark();
        self.controls = 0;
        self.is_epoch_done = false;
        shared.statistics.key_updates += 1;
        let question = Question::new(now, self.patience.interval());
        self.set_due(question.due);
        self.epoch_question = Some(question);
    }

    /// Messages that waited for keys go on.
    fn unpark(&mut self) {
        for id in std::mem::take(&mut self.parked) {
            self.queue_sendable(id);
        }
    }

    /// The previous epoch, if what is left of the current key is needed by the messages that hold it: else
    /// they could not finish, and the next epoch could never begin.
    pub(super) fn reserved_for(&mut self) -> Option<u32> {
        let previous = self.seal.previous()?;
        if !self.seal.is_well_used() {
            return None;
        }
        let left = self.seal.records_left();
        let known = self.reserve.take();
        let known = known.filter(|known| known.says(previous, left));
        let reserve = known.unwrap_or_else(|| {
            let needed = self.needed_by_holders(previous);
            Box::new(Reserve {
                epoch: previous,
                left,
                needed,
            })
        });
        let is_due = self.reserve.insert(reserve).is_due(left);
        is_due.then_some(previous)
    }

    /// Records that the messages which hold an epoch have yet to seal.
    fn needed_by_holders(&self, epoch: u32) -> u64 {
        let holders = self.holders_of(epoch);
        holders
            .map(|(_, leaving)| u64::from(leaving.records_unsealed()))
            .sum()
    }

    /// Says that the previous epoch is finished, once it is, until the peer acknowledges.
    pub(super) fn finish_epoch(&mut self, now: Time) {
        let Some(previous) = self.seal.previous() else {
            self.epoch_question = None;
            return;
        };
        let Some(mut question) = self.epoch_question.filter(|question| question.due <= now) else {
            return;
        };
        let holders: Vec<MessageId> = self.holders_of(previous).map(|(id, _)| id).collect();
        if !holders.is_empty() && self.seal.wants_update() {
            question.ask(now, self.patience.interval() * HURRY_INTERVALS);
            self.hurry(&holders);
        } else if !holders.is_empty() {
            question.progressed(now, self.patience.interval());
        } else {
            question.ask(now, RESEND_INTERVAL_MAX);
            self.asked_since.get_or_insert(now);
            self.control.push(0, Body::EpochDone { epoch: previous });
            self.is_epoch_done = true;
        }
        self.epoch_question = Some(question);
    }

    /// The peer has nothing outstanding in `epoch`.
    pub(super) fn epoch_done(&mut self, epoch: u32) {
        // Also to a repetition: our answer was lost. Never for the current epoch or a future one.
        if self.open.finish(epoch) {
            self.control.push(0, Body::EpochAck { epoch });
        }
    }

    pub(super) fn epoch_acked(&mut self, now: Time, epoch: u32, shared: &mut Shared) {
        // Only if we said so: with the key go the repetitions of what was sealed under it.
        if self.seal.previous() == Some(epoch) && self.is_epoch_done {
            self.seal.finish_previous();
            self.epoch_question = None;
            self.update_keys(now, shared);
            // Nothing of the key is reserved any more, whether or not it was time for the next one.
            self.unpark();
        }
    }

    /// Asks for new keys of the peer when too much has failed to open, until they come; and drops old ones
    /// that it forgot to finish.
    pub(super) fn watch_opening_keys(&mut self, now: Time) {
        if let Some(epoch) = self.open.take_update_request() {
            let question = Question::new(now, self.patience.interval());
            self.key_request = Some((epoch, question));
            self.control.push(0, Body::KeyUpdateRequest { epoch });
        }
        let current = self.open.epoch();
        if let Some((epoch, question)) = self
            .key_request
            .take()
            .filter(|(epoch, _)| *epoch == current)
        {
            self.repeat_key_request(now, epoch, question);
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

    fn repeat_key_request(&mut self, now: Time, epoch: u32, mut question: Question) {
        if question.due <= now {
            question.ask(now, RESEND_INTERVAL_MAX);
            self.asked_since.get_or_insert(now);
            self.control.push(0, Body::KeyUpdateRequest { epoch });
        }
        self.set_due(question.due);
        self.key_request = Some((epoch, question));
    }

    /// Messages that may still have to repeat a record of `epoch` or before.
    fn holders_of(&self, epoch: u32) -> impl Iterator<Item = (MessageId, &Leaving)> {
        let calls = self.calls.iter().filter_map(|(number, call)| match call {
            Call::Live(live) => Some((number, live.outgoing.as_ref()?.leaving()?)),
            Call::Cancelling(_) => None,
        });
        let replies = self
            .served
            .iter()
            .filter_map(|(number, served)| match &served.state {
                ServedState::Replying(outgoing) => Some((number, outgoing.leaving()?)),
                _ => None,
            });
        calls
            .chain(replies)
            .filter(move |(_, leaving)| leaving.holds_epoch(epoch))
            .map(|(number, leaving)| (MessageId(number), leaving))
    }

    /// The next epoch is wanted and these messages hold it up: ask about them now, whatever their own
    /// questions have backed off to. All others would wait for their key.
    fn hurry(&mut self, holders: &[MessageId]) {
        for id in holders.iter().copied() {
            match self.calls.get(id.0) {
                Some(Call::Live(live)) if !live.is_one_way => {
                    self.control
                        .reply_progress(id, live.incoming.as_deref(), false);
                }
                _ => self.control.id(PacketType::NeedAck, id),
            }
        }
    }
}

/// What a look through all messages has found. Not at every write: the peer may let an epoch last (it has no reason
/// to acknowledge its end), and each write of a session with 20,000 messages would take 86 us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    /// The epoch that was held.
    epoch: u32,
    /// Records that were left under the current key.
    left: u64,
    /// Records that the holders had yet to seal. Only ever fewer: what begins now holds a later epoch.
    needed: u64,
}

impl Reserve {
    /// Whether it still tells, with so many records left, if they are for the holders of `epoch` alone. It does
    /// while there are enough for all, and while no holder has sealed anything.
    fn says(&self, epoch: u32, left: u64) -> bool {
        self.epoch == epoch && (!self.is_due(left) || self.left == left)
    }

    fn is_due(&self, left: u64) -> bool {
        left <= self.needed + RECORDS_PER_BATCH
    }
}

/// Messages that hold up an epoch are asked about at least this often, in resend intervals.
const HURRY_INTERVALS: u32 = 8;

/// A batch is written in one go after one look: records of at most 64 KiB, and some that are short.
const RECORDS_PER_BATCH: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Reserve = Reserve {
        epoch: 4,
        left: 500,
        needed: 92,
    };

    #[test]
    fn while_there_is_enough_for_all_nobody_looks_again() {
        assert!(FOUND.says(4, 101) && !FOUND.is_due(101));
        assert!(!FOUND.says(4, 100));
        assert!(!FOUND.says(5, 500));
    }

    #[test]
    fn while_no_holder_has_sealed_anything_nobody_looks_again() {
        let found = Reserve { left: 90, ..FOUND };
        assert!(found.says(4, 90) && found.is_due(90));
        assert!(!found.says(4, 89));
    }
}
