// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The turns and timers of an endpoint's senders: sessions, and handshakes of either side.
//!
//! After each change of a sender [`Schedule::settle`] gives it the place and the timer that it
//! needs now. The sender holds both, so that a change which changes neither costs nothing here.

use alloc::collections::BTreeSet;

use smt_wire::SessionIndex;

use crate::establish::client::ClientHandshake;
use crate::establish::server::ServerHandshake;
use crate::event::ConnectId;
use crate::send::ready_queue::{Place, ReadyQueue, Slot};
use crate::session::Session;
use crate::shared::Shared;
use crate::time::Time;

/// The name of a sender.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Sender {
    Session(SessionIndex),
    ClientHandshake(ConnectId),
    ServerHandshake(SessionIndex),
}

/// A part of the endpoint that may have something to send, or a timer.
pub(super) trait Scheduled {
    /// How long it may wait for other senders, see [`ReadyQueue::insert`]; `None` if it has nothing
    /// to send.
    fn rank(&self, shared: &Shared) -> Option<u32>;

    /// When its timer is due next.
    fn due(&self) -> Option<Time>;

    /// Its entries in the schedule.
    fn slot(&mut self) -> &mut Slot;
}

/// The senders that wait for their turn, and the timers of all.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) ready: ReadyQueue<Sender>,
    timers: BTreeSet<(Time, Sender)>,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self { ready: ReadyQueue::new(), timers: BTreeSet::new() }
    }

    /// Gives a sender that has changed its place and its timer. A sender that has nothing to send
    /// any more keeps its place, and is passed over there.
    pub(super) fn settle<S: Scheduled>(&mut self, sender: Sender, of: &mut S, shared: &Shared) {
        if let Some(rank) = of.rank(shared) {
            let place = &mut of.slot().ready;
            if place.is_none_or(|(waiting, _)| rank < waiting) {
                if let Some(place) = *place {
                    self.ready.remove(place, sender);
                }
                *place = Some(self.ready.insert(rank, sender));
            }
        }
        let due = of.due();
        let before = core::mem::replace(&mut of.slot().timer, due);
        if due == before {
            return;
        }
        self.stop(sender, before);
        if let Some(due) = due {
            self.timers.insert((due, sender));
        }
    }

    /// Lets a sender that had its turn in vain wait where it has waited before.
    pub(super) fn put_back<S: Scheduled>(&mut self, sender: Sender, of: &mut S, before: Place) {
        if let Some(place) = of.slot().ready.filter(|place| place.0 >= before.0) {
            self.ready.remove(place, sender);
            self.ready.restore(before, sender);
            of.slot().ready = Some(before);
        }
    }

    /// Stops the timer of a sender.
    pub(super) fn stop(&mut self, sender: Sender, timer: Option<Time>) {
        if let Some(timer) = timer {
            self.timers.remove(&(timer, sender));
        }
    }

    /// The timer that is due first.
    pub(super) fn first_timer(&self) -> Option<(Time, Sender)> {
        self.timers.first().copied()
    }

    /// Takes out the first timer if it is due. Its sender still holds it.
    pub(super) fn pop_timer(&mut self, now: Time) -> Option<Sender> {
        let (_, sender) = self.first_timer().filter(|(due, _)| *due <= now)?;
        self.timers.pop_first();
        Some(sender)
    }
}

impl Scheduled for Session {
    fn rank(&self, shared: &Shared) -> Option<u32> {
        self.has_output(shared).then(|| Self::rank(self))
    }

    fn due(&self) -> Option<Time> {
        Self::due(self)
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.slot
    }
}

impl Scheduled for ClientHandshake {
    fn rank(&self, _: &Shared) -> Option<u32> {
        self.has_output().then_some(0)
    }

    fn due(&self) -> Option<Time> {
        Some(Self::due(self))
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.slot
    }
}

impl Scheduled for ServerHandshake {
    fn rank(&self, _: &Shared) -> Option<u32> {
        self.has_output().then_some(0)
    }

    fn due(&self) -> Option<Time> {
        Some(Self::due(self))
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::prelude::v1::*;

    /// A sender with this rank and timer.
    #[derive(Default)]
    struct One {
        rank: Option<u32>,
        due: Option<Time>,
        slot: Slot,
    }

    impl Scheduled for One {
        fn rank(&self, _: &Shared) -> Option<u32> {
            self.rank
        }
        fn due(&self) -> Option<Time> {
            self.due
        }
        fn slot(&mut self) -> &mut Slot {
            &mut self.slot
        }
    }

    const A: Sender = Sender::Session(SessionIndex(1));
    const B: Sender = Sender::Session(SessionIndex(2));

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// The senders in the order of their turns.
    fn turns(schedule: &mut Schedule) -> Vec<Sender> {
        core::iter::from_fn(|| schedule.ready.pop()).collect()
    }

    #[test]
    fn a_sender_waits_once_where_its_lowest_rank_puts_it() {
        let shared = Shared::new(Config::default());
        let (mut schedule, mut one, mut other) = (Schedule::new(), One::default(), One::default());
        schedule.settle(A, &mut one, &shared);
        assert!(one.slot.ready.is_none() && schedule.ready.is_empty());
        (one.rank, other.rank) = (Some(10), Some(10));
        for (sender, of) in [(A, &mut one), (B, &mut other)] {
            schedule.settle(sender, of, &shared);
        }
        // A higher rank and nothing to send change no place.
        for rank in [Some(10), Some(20), None] {
            one.rank = rank;
            schedule.settle(A, &mut one, &shared);
        }
        other.rank = Some(3);
        schedule.settle(B, &mut other, &shared);
        assert_eq!(turns(&mut schedule), [B, A]);
    }

    #[test]
    fn a_sender_that_had_its_turn_in_vain_keeps_it_among_its_equals() {
        let shared = Shared::new(Config::default());
        let (mut schedule, mut one, mut other) = (Schedule::new(), One::default(), One::default());
        (one.rank, other.rank) = (Some(10), Some(10));
        schedule.settle(A, &mut one, &shared);
        schedule.settle(B, &mut other, &shared);
        let before = one.slot.ready.take().unwrap();
        assert_eq!(schedule.ready.pop(), Some(A));
        schedule.settle(A, &mut one, &shared);
        schedule.put_back(A, &mut one, before);
        assert_eq!(one.slot.ready, Some(before));
        assert_eq!(turns(&mut schedule), [A, B]);
    }

    #[test]
    fn a_sender_has_one_timer_which_follows_what_is_due() {
        let shared = Shared::new(Config::default());
        let (mut schedule, mut one) = (Schedule::new(), One::default());
        for due in [Some(at(7)), Some(at(9)), Some(at(8))] {
            one.due = due;
            schedule.settle(A, &mut one, &shared);
            assert_eq!(schedule.first_timer(), due.map(|due| (due, A)));
        }
        assert_eq!(schedule.pop_timer(at(7)), None);
        assert_eq!(schedule.pop_timer(at(8)), Some(A));
        (one.slot.timer, one.due) = (None, Some(at(20)));
        schedule.settle(A, &mut one, &shared);
        one.due = None;
        schedule.settle(A, &mut one, &shared);
        assert_eq!(schedule.first_timer(), None);
    }
}
