// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The leader of tasks: it looks for datagrams, and sends the corked messages.
//!
//! The lead is the lock of what receiving needs, and is only ever tried: a future that `block_on`
//! polls has it for a poll (`asynchronous::leading`), the driver for a look or while it spins
//! (`background`).
//!
//! One rule holds it together: **the watch is on, or a leader looks, or has looked not long ago and
//! the driver has set a timer** ([`LED_MAX`]). The watch is off while a leader looks, since each
//! datagram would wake a worker for nothing.

use std::time::Duration;

use smt_proto::Time;

use super::watch::Watch;
use super::{Driver, Receiver};
use crate::sync::{MutexGuard, TryLockError, thread};

/// The state of looking, from one leader to the next.
pub(super) struct Looks {
    /// Until the endpoint is shut down.
    watch: Option<Box<dyn Watch>>,
    /// The leader that looked last.
    led_by: LedBy,
    /// When a leader last looked while the watch was off.
    last: Time,
    /// Outcomes and messages that the last look told of that has found something.
    told: usize,
    /// When the last leader ceased to look.
    slept: Option<Time>,
    /// Looks in a row that have found nothing.
    in_vain: u32,
    /// The corked changes at the last look, and when corking began.
    corked: usize,
    corked_since: Option<Time>,
}

impl Looks {
    pub(super) fn new() -> Self {
        Self {
            watch: None,
            led_by: LedBy::BackgroundDriver,
            last: Time::default(),
            told: 0,
            slept: None,
            in_vain: 0,
            corked: 0,
            corked_since: None,
        }
    }

    /// Whether the corked messages leave now. A future waits until no more comes between two looks,
    /// since workers are busy meanwhile; but not for long. The task that drives looks when they
    /// have run.
    fn sends(&mut self, now: Time, corked: usize, by: LedBy) -> bool {
        if by == LedBy::Future && corked != self.corked {
            self.corked = corked;
            let since = *self.corked_since.get_or_insert(now);
            if now.since(since) < CORKED_MAX {
                return false;
            }
        }
        self.corked = 0;
        self.corked_since = None;
        true
    }

    /// Lets go of the socket.
    pub(super) fn close(&mut self) {
        self.watch = None;
    }

    fn turn_watch(&mut self, on: bool) {
        if let Some(watch) = &mut self.watch {
            watch.turn(on);
        }
    }

    fn is_watched(&self) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch.is_on())
    }
}

/// A kind of leader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LedBy {
    /// The task or the thread that drives.
    BackgroundDriver,
    /// A future that `block_on` polls.
    Future,
}

/// The lead of an endpoint. Giving it up leaves the watch as it is.
pub(crate) struct Leader<'a> {
    driver: &'a Driver,
    by: LedBy,
    receiver: MutexGuard<'a, Receiver>,
}

impl Driver {
    /// Takes the lead, unless another leader has it.
    pub(crate) fn try_lead(&self, by: LedBy) -> Option<Leader<'_>> {
        let receiver = match self.receiver.try_lock() {
            Ok(receiver) => receiver,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Leader { driver: self, by, receiver })
    }

    /// From now on the runtime can watch.
    pub(crate) fn set_watch(&self, watch: impl Watch + 'static) {
        self.lock_receiver().looks.watch = Some(Box::new(watch));
    }
}

impl Leader<'_> {
    /// One look: sends the corked messages, takes in what has come, and now and then does what is
    /// due. Whether something has come.
    pub(crate) fn look(&mut self) -> bool {
        let turn = &self.driver.turn;
        self.receiver.looks.led_by = self.by;
        let corked = turn.corked();
        if corked > 0 && self.receiver.looks.sends(self.driver.now(), corked, self.by) {
            self.driver.send_corked();
        }
        let (mut batches, mut bytes) = (0, 0);
        while batches < BATCHES_PER_LOOK
            && bytes < BYTES_PER_LOOK
            && let Some(length) = self.driver.receive_one(&self.receiver)
        {
            batches += 1;
            bytes += length;
        }
        let looks = &mut self.receiver.looks;
        if batches > 0 {
            looks.in_vain = 0;
            looks.told = turn.untaken();
            return true;
        }
        looks.in_vain = looks.in_vain.wrapping_add(1);
        if looks.in_vain.is_multiple_of(LOOKS_PER_TIMER) {
            self.driver.fire_timers();
        }
        false
    }

    /// Looks in this thread until something comes, for as long as that may be spun for. Whether
    /// something has come.
    pub(crate) fn spin(&mut self) -> bool {
        if self.look() {
            self.receiver.looks.last = self.driver.now();
            return true;
        }
        let began = self.driver.now();
        if !self.begin(began) {
            return false;
        }
        loop {
            thread::yield_now();
            let has_come = self.look();
            let now = self.driver.now();
            if has_come {
                self.come(began, now);
                return true;
            }
            if now.since(began) >= self.bound() {
                self.receiver.spin.miss(now.since(began));
                return false;
            }
        }
    }

    /// A wait begins. If it may be spun for, messages are corked from now on, and the watch is off.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        if self.receiver.carrier.is_none() || !self.receiver.spin.begin(now) {
            return false;
        }
        if !self.driver.put_cork_in() {
            return false;
        }
        let looks = &mut self.receiver.looks;
        looks.last = now;
        looks.led_by = self.by;
        if looks.is_watched() {
            looks.turn_watch(false);
            if self.by == LedBy::Future {
                // The task that drives may sleep for long, and is to look after the leader.
                self.driver.wake_driver();
            }
        }
        true
    }

    /// Tells that a wait that was spun for since `began` has ended now.
    pub(crate) fn come(&mut self, began: Time, now: Time) {
        self.receiver.spin.hit(now.since(began));
        self.receiver.looks.last = now;
    }

    /// Tells how long was spun in vain.
    pub(crate) fn miss(&mut self, spun: Duration) {
        self.receiver.spin.miss(spun);
    }

    /// How long a wait is spun for at most.
    pub(crate) fn bound(&self) -> Duration {
        self.receiver.spin.bound()
    }

    /// Ceases to look: the corked messages leave, and then the runtime watches.
    pub(crate) fn stop(&mut self) {
        self.receiver.looks.slept = Some(self.driver.now());
        self.driver.take_cork_out();
        // Last: what has come meanwhile is told of now.
        self.receiver.looks.turn_watch(true);
    }

    /// The same, if the future that led last has left the watch off.
    pub(crate) fn stop_after_future(&mut self) {
        let looks = &self.receiver.looks;
        if looks.led_by == LedBy::Future && !looks.is_watched() {
            self.stop();
        }
    }

    /// Tells that the sleep is over that followed the last look; `has_come`: because something has
    /// come.
    pub(crate) fn wake(&mut self, has_come: bool) {
        if let Some(slept) = self.receiver.looks.slept.take() {
            let waited = self.driver.now().since(slept);
            self.receiver.spin.slept(waited, has_come);
        }
    }

    /// Whether a future leads: it has turned the watch off, and looked not long ago.
    pub(crate) fn is_led_by_future(&self) -> bool {
        let looks = &self.receiver.looks;
        looks.led_by == LedBy::Future
            && !looks.is_watched()
            && self.driver.now().since(looks.last) < LED_MAX
    }

    /// Whether the last look told enough tasks that a sleep costs each of them less than looking
    /// does.
    pub(crate) fn has_told_many(&self) -> bool {
        self.receiver.looks.told > MANY
    }
}

impl Driver {
    /// Sends the corked messages; messages that come after that are corked again.
    fn send_corked(&self) {
        self.turn.clear_corked();
        self.change(|state, now| state.cork.expire(now));
    }

    /// Corks messages: a leader is about to look. At the end nothing is corked, since the end waits
    /// for no message.
    fn put_cork_in(&self) -> bool {
        self.look(|state| {
            if state.is_closed {
                return false;
            }
            let now = state.advance(self.now());
            state.cork.put_in(now);
            true
        })
    }

    /// Each change sends for itself from now on.
    fn take_cork_out(&self) {
        self.turn.clear_corked();
        self.change(|state, _| state.cork.take_out());
    }

    /// Does what is due, if something is.
    fn fire_timers(&self) {
        let is_due = |idle: Duration| idle.is_zero();
        let idle = self.look(|state| state.idle_time(self.now()));
        if idle.is_some_and(is_due) {
            self.fire_due();
        }
    }

    /// Does what is due, and sends what the carrier had no room for.
    pub(crate) fn fire_due(&self) {
        self.change(|state, now| state.fire_timers(now, false));
    }

    /// Whether a future that `block_on` polls may lead.
    pub(crate) fn is_led_by_futures(&self) -> bool {
        self.has_workers
    }

    /// Outcomes and messages that were told of and not taken.
    pub(crate) fn untaken(&self) -> usize {
        self.turn.untaken()
    }

    /// The driver is about to wait for the end of the turn, unless that has come.
    pub(crate) fn await_turn(&self) -> bool {
        self.turn.await_end()
    }

    pub(crate) fn is_turn_awaited(&self) -> bool {
        self.turn.is_awaited()
    }

    /// The driver waits no longer for those who have not taken what they were told: perhaps they
    /// were not even woken.
    pub(crate) fn give_up_turn(&self) {
        self.turn.give_up();
        self.deferred.wake_now();
    }

    /// Whether requests were taken that are not answered yet.
    pub(crate) fn has_handlers(&self) -> bool {
        self.look(|state| state.has_unanswered())
    }
}

/// The task that drives looks after an endpoint that another one leads this often.
pub(crate) const LED_MAX: Duration = Duration::from_millis(1);
/// More than this are many.
const MANY: usize = 16;
/// Batches taken in by one look before what comes of them is dealt with.
const BATCHES_PER_LOOK: usize = 64;
/// Bytes likewise: long messages are worked on while the next ones come.
const BYTES_PER_LOOK: usize = 256 << 10;
/// Looks that find nothing, for each one that sees to what is due: that one takes the endpoint's
/// lock.
const LOOKS_PER_TIMER: u32 = 8;
/// Corked messages leave after this time although more are added.
const CORKED_MAX: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::default() + Duration::from_micros(micros)
    }

    #[test]
    fn future_waits_until_no_more_is_corked_between_two_looks() {
        let mut looks = Looks::new();
        assert!(!looks.sends(at(0), 3, LedBy::Future), "they are new");
        assert!(!looks.sends(at(1), 5, LedBy::Future), "two more have come");
        assert!(looks.sends(at(2), 5, LedBy::Future));
        assert!(!looks.sends(at(3), 1, LedBy::Future), "that is another one");
    }

    #[test]
    fn future_waits_no_longer_than_its_bound() {
        let mut looks = Looks::new();
        let mut sends = |corked: u64| looks.sends(at(corked), corked as usize, LedBy::Future);
        assert_eq!((1..100).find(|corked| sends(*corked)).unwrap(), 51);
    }

    #[test]
    fn driver_sends_the_corked_messages_with_each_look() {
        let mut looks = Looks::new();
        assert!(
            looks.sends(at(0), 1, LedBy::BackgroundDriver)
                && looks.sends(at(0), 9, LedBy::BackgroundDriver)
        );
    }
}
