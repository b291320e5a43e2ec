// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Id windows, replay windows, allocators and numbers, each against sets of numbers (SPEC §4,
//! §5.1).
//!
//! The input is a session's layout and a sequence of steps; every step asks the window and the sets
//! the same question. The sets forget nothing.

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use smt_record::{
    AllocationError, ControlWindow, Delivered, IdAllocator, IdLayout, IdWindow, IndexBits, Side,
};
use smt_wire::MessageId;

/// A session's layout, and the steps of the case.
#[derive(Arbitrary, Debug)]
pub struct Case {
    wide: bool,
    bits: (u8, u8),
    stripes_log2: u8,
    stripe: u16,
    is_client: bool,
    start: u64,
    steps: Vec<Step>,
}

/// One step of a case. Counters are given by their distance from the window's floor.
#[derive(Arbitrary, Debug)]
enum Step {
    Seen(i16),
    SeenRun(u8),
    Delivered(i16),
    Ask(u64),
    Control(i16),
    ControlAt(u64),
    Allocate { limit: i8 },
    Number { id: u64, index: u32 },
}

/// Runs all steps.
pub fn check(case: &Case) {
    let bits = [case.bits.0, case.bits.1].map(|bits| IndexBits::new(8 + bits % 10));
    let [Some(client), Some(server)] = bits else {
        unreachable!("8 to 17 bits");
    };
    let stripes_log2 = case.stripes_log2 % 9;
    let layout = IdLayout::new(client, server, stripes_log2).expect("at most 256 stripes");
    let mut model = Model::new(case, client, layout);
    for step in case.steps.iter().take(STEPS_MAX) {
        model.step(step);
    }
}

struct Model {
    bits: IndexBits,
    layout: IdLayout,
    peer: Side,
    stripe: u16,
    width: u64,
    ids: IdWindow,
    seen: BTreeSet<u64>,
    /// All counters below are seen.
    floor: u64,
    delivered: BTreeSet<u64>,
    controls: ControlWindow,
    accepted: BTreeSet<u64>,
    allocator: IdAllocator,
    next: u64,
}

impl Model {
    fn new(case: &Case, bits: IndexBits, layout: IdLayout) -> Self {
        let width = if case.wide { 256 } else { 64 };
        let stripe = case.stripe % (1 << layout.stripes_log2);
        let peer = if case.is_client { Side::Client } else { Side::Server };
        // Near the end of the counters as well as at their beginning.
        let next = case.start % (layout.counters() + 2);
        Self {
            bits,
            layout,
            peer,
            stripe,
            width: width.into(),
            ids: IdWindow::new(width, layout, peer, stripe),
            seen: BTreeSet::new(),
            floor: 0,
            delivered: BTreeSet::new(),
            controls: ControlWindow::new(),
            accepted: BTreeSet::new(),
            allocator: IdAllocator::starting_at(layout, peer, stripe, next),
            next,
        }
    }

    fn step(&mut self, step: &Step) {
        let floor = self.floor;
        let near = |distance: &i16| floor.saturating_add_signed(i64::from(*distance) % 400);
        match step {
            Step::Seen(distance) => self.mark_seen(near(distance)),
            Step::SeenRun(count) => {
                (0..u64::from(*count)).for_each(|at| self.mark_seen(floor + at))
            }
            Step::Delivered(distance) => self.mark_delivered(near(distance)),
            Step::Ask(counter) => self.ask(*counter),
            Step::Control(distance) => {
                let last = self.accepted.last().copied().unwrap_or_default();
                self.control(last.saturating_add_signed(i64::from(*distance) % 3_000));
            }
            Step::ControlAt(counter) => self.control(*counter % (1 << 49)),
            Step::Allocate { limit } => {
                self.allocate(self.next.saturating_add_signed((*limit).into()))
            }
            Step::Number { id, index } => self.number(MessageId(*id), *index),
        }
        assert_eq!(self.ids.floor(), self.floor);
        assert_eq!(self.ids.limit(), self.floor + self.width);
    }

    fn mark_seen(&mut self, counter: u64) {
        let is_new = counter < self.floor + self.width && !self.seen.contains(&counter);
        let id = self.layout.id(counter, self.peer, self.stripe).ok();
        let sight = self.ids.mark_seen(counter);
        assert_eq!(sight.map(|sight| sight.id()), id.filter(|_| is_new));
        if is_new && id.is_some() {
            self.seen.insert(counter);
        }
        while self.seen.contains(&self.floor) {
            self.floor += 1;
        }
        self.ask(counter);
    }

    fn mark_delivered(&mut self, counter: u64) {
        self.ids.mark_delivered(counter);
        if self.is_remembered(counter) {
            self.delivered.insert(counter);
        }
        self.ask(counter);
    }

    fn ask(&self, counter: u64) {
        let is_seen = self.seen.contains(&counter);
        assert_eq!(self.ids.is_seen(counter), is_seen, "counter {counter}");
        let is_below = counter < self.floor + self.width;
        assert_eq!(self.ids.in_range(counter), is_below, "counter {counter}");
        let delivered = match (is_seen, self.is_remembered(counter)) {
            (false, _) => Delivered::No,
            (true, false) => Delivered::Unknown,
            (true, true) if self.delivered.contains(&counter) => Delivered::Yes,
            (true, true) => Delivered::No,
        };
        assert_eq!(self.ids.is_delivered(counter), delivered, "counter {counter}");
    }

    /// A delivery is remembered until the id one window further is seen.
    fn is_remembered(&self, counter: u64) -> bool {
        self.seen.contains(&counter) && !self.seen.contains(&(counter + self.width))
    }

    /// SPEC §4.3: each once, and none older than the last 1,024.
    fn control(&mut self, counter: u64) {
        let newest = self.accepted.last().copied();
        let is_young = newest.is_none_or(|newest| counter + 1_024 > newest);
        let is_fresh = counter < 1 << 48 && is_young && !self.accepted.contains(&counter);
        assert_eq!(self.controls.check(counter), is_fresh, "control {counter}");
        assert_eq!(self.controls.accept(counter), is_fresh, "control {counter}");
        if is_fresh {
            self.accepted.insert(counter);
        }
    }

    fn allocate(&mut self, limit: u64) {
        let allocated = self.allocator.next(limit).map(|right| right.id());
        let counter = self.next;
        if counter >= self.layout.counters() {
            assert_eq!(allocated, Err(AllocationError::Exhausted { counter }));
        } else if counter >= limit {
            assert_eq!(allocated, Err(AllocationError::Blocked { counter, limit }));
        } else {
            let id = self.layout.id(counter, self.peer, self.stripe);
            assert_eq!(allocated.ok(), id.ok());
            self.next += 1;
        }
        assert_eq!(self.allocator.counter(), self.next);
    }

    /// SPEC §4.1 and §5.1: a number that fits comes apart into the parts it was made of; nothing is
    /// cut off.
    fn number(&self, id: MessageId, index: u32) {
        let width = u32::from(self.bits.bits());
        let wide = u128::from(id.0) << width | u128::from(index);
        let fits = wide >> 64 == 0 && u64::from(index) < 1 << width;
        let sequence = self.bits.sequence(id, index);
        assert_eq!(sequence.ok(), fits.then_some(wide as u64), "{id} {index}");
        let is_id = id.0 >> self.layout.id_bits == 0;
        let parts = self.layout.split(id);
        assert_eq!(parts.is_some(), is_id, "{id}");
        if let Some(parts) = parts {
            let again = self.layout.id(parts.counter, parts.initiator, parts.stripe);
            assert_eq!(again, Ok(id));
        }
    }
}

/// Counters near the window cost little; this bounds the sets.
const STEPS_MAX: usize = 200;
