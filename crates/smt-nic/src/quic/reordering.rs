// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Puts packets that have opened back into the order of their numbers, for a while (NiQUIC §3.2).
//!
//! A packet that comes before its predecessors is held until they come, until three later ones have
//! come (a sender that skips numbers, or a loss: RFC 9002 §6.1.1 takes it as such too), or until a
//! timer ends. Nothing is dropped, each packet goes up once, and with the time of its arrival.
//!
//! Held packets whose numbers follow each other share one slot, as in the paper; slots are bounded
//! over all connections, and so is the reach of each. A bitmap tells which of the next [`REACH`]
//! numbers are held, in the place of the paper's TCAM; the packets stand in three places.
//!
//! **Only packets that have authenticated come here.** The paper reorders before it opens: then
//! anyone who guesses a connection id fills the slots (`tests/quic_reordering.rs` shows it).

use core::time::Duration;

/// Numbers above the next one that are told apart.
pub const REACH: u64 = 64;
/// Later packets after which a missing one is waited for no more (RFC 9002 §6.1.1).
pub const LATER_PACKETS: u32 = 3;

/// A packet to be put into order: its number, when it came, and what else is known of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Arrived<T> {
    /// The packet's number.
    pub number: u64,
    /// When it came, since any fixed moment. The host measures round trips by it.
    pub at: Duration,
    /// The packet.
    pub packet: T,
}

/// The slots of a device, shared by all its connections.
#[derive(Clone, Debug)]
pub struct Slots {
    most: u32,
    used: u32,
}

impl Slots {
    /// A device with this many slots.
    #[must_use]
    pub const fn new(most: u32) -> Self {
        Self { most, used: 0 }
    }

    /// Slots that are taken.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.used
    }
}

/// The packets of one connection that are held.
#[derive(Clone, Debug)]
pub struct Reordering<T> {
    /// The number that is waited for.
    next: u64,
    /// Bit n: the packet of number `next + n` is held.
    held: u64,
    /// The held packets, in no order: with the third the first gap is skipped, so that two stay.
    places: [Option<Arrived<T>>; LATER_PACKETS as usize],
    wait: Duration,
    /// When the oldest of the held came.
    since: Option<Duration>,
}

impl<T> Reordering<T> {
    /// Waits for `first`, and at most so long for a missing packet: less than a millisecond, so
    /// that the host's acknowledgements are not late.
    #[must_use]
    pub fn new(first: u64, wait: Duration) -> Self {
        Self {
            next: first,
            held: 0,
            places: [const { None }; LATER_PACKETS as usize],
            wait,
            since: None,
        }
    }

    /// Takes a packet, and hands over those that go up now, in the order of their numbers. One
    /// below the awaited number goes up at once.
    pub fn take(
        &mut self,
        slots: &mut Slots,
        arrived: Arrived<T>,
        up: &mut impl FnMut(Arrived<T>),
    ) {
        let Some(distance) = arrived.number.checked_sub(self.next) else {
            return up(arrived);
        };
        if distance == 0 {
            self.next += 1;
            self.held >>= 1;
            up(arrived);
            // The run behind it, if there is one, gives its slot back.
            slots.used -= u32::from(self.held & 1 != 0);
            return self.release_run(up);
        }
        if distance >= REACH {
            self.release_all(slots, up);
            self.next = arrived.number + 1;
            return up(arrived);
        }
        self.hold(slots, distance, arrived, up);
    }

    fn hold(
        &mut self,
        slots: &mut Slots,
        distance: u64,
        arrived: Arrived<T>,
        up: &mut impl FnMut(Arrived<T>),
    ) {
        let bit = 1 << distance;
        if self.held & bit != 0 {
            // The engine tells repetitions before; a held one stays.
            return up(arrived);
        }
        let before = runs(self.held);
        let after = runs(self.held | bit);
        if after > before && slots.used >= slots.most {
            // No slot: what is held goes up with it, out of order.
            let number = arrived.number;
            self.release_all(slots, up);
            self.next = self.next.max(number + 1);
            return up(arrived);
        }
        slots.used = slots.used + after - before;
        self.held |= bit;
        self.since = self.since.or(Some(arrived.at));
        if let Some(free) = self.places.iter_mut().find(|place| place.is_none()) {
            *free = Some(arrived);
        }
        if self.held.count_ones() >= LATER_PACKETS {
            self.skip_gap(slots, up);
        }
    }

    /// When the timer ends, if a packet is held.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.since.map(|since| since + self.wait)
    }

    /// Hands over all that is held, if the timer has ended.
    pub fn handle_timeout(
        &mut self,
        slots: &mut Slots,
        now: Duration,
        up: &mut impl FnMut(Arrived<T>),
    ) {
        if self.timeout().is_some_and(|end| end <= now) {
            self.release_all(slots, up);
        }
    }

    /// Packets that are held.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.count_ones()
    }

    /// The missing packets before the first held one are waited for no more.
    fn skip_gap(&mut self, slots: &mut Slots, up: &mut impl FnMut(Arrived<T>)) {
        let gap = self.held.trailing_zeros();
        self.next += u64::from(gap);
        self.held >>= gap;
        slots.used -= 1;
        self.release_run(up);
    }

    /// Hands over the packets that follow each other from the awaited number on. Their slot is free
    /// already.
    fn release_run(&mut self, up: &mut impl FnMut(Arrived<T>)) {
        for _ in 0..self.held.trailing_ones() {
            let next = self.next;
            let is_it = |place: &mut Arrived<T>| place.number == next;
            if let Some(arrived) = self.places.iter_mut().find_map(|it| it.take_if(is_it)) {
                up(arrived);
            }
            self.next += 1;
            self.held >>= 1;
        }
        if self.held == 0 {
            self.since = None;
        }
    }

    /// Hands over all that is held. A connection does so before it is removed: its slots are free
    /// then.
    pub fn release_all(&mut self, slots: &mut Slots, up: &mut impl FnMut(Arrived<T>)) {
        while self.held != 0 {
            self.skip_gap(slots, up);
        }
    }
}

/// How many runs of packets that follow each other these are.
fn runs(held: u64) -> u32 {
    (held & !(held << 1)).count_ones()
}
