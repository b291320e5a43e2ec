// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of nodes that lie together, and the steps of theirs alone.

use smt_replica::sim::{By, Step as Common, Writer};

use crate::message::{self, Input, encode};
use crate::sim::system::Transformed;

/// A plan of nodes that lie together.
pub type Plan = smt_replica::sim::Plan<Step>;

pub(super) type Coalition = smt_replica::sim::Coalition<Transformed>;
pub(super) type Correct<'a> = smt_replica::sim::Correct<'a, Transformed>;

/// A step of a plan that only nodes of this system take.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// A timer that is armed runs out.
    Timeout {
        /// The liars.
        by: By,
    },
    /// A step that the protocol does not make.
    False {
        /// The liars.
        by: By,
    },
}

/// The name of such a step.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName {
    /// A timer runs out long before its time.
    EarlyTimeout,
    /// A step that the protocol does not make.
    FalseStep,
}

impl StepName {
    /// All names.
    pub const ALL: [Self; 2] = [Self::EarlyTimeout, Self::FalseStep];
}

/// Writes a plan.
pub(super) fn write(w: &mut Writer<'_, Step>) {
    w.maybe(50, Writer::part);
    w.maybe(70, Writer::follow);
    for _ in 0..2 + w.random.below(8) {
        scene(w);
    }
    w.end();
}

fn scene(w: &mut Writer<'_, Step>) {
    match w.random.below(20) {
        0..=3 => w.follow(),
        4 | 5 => w.part(),
        6 => w.step(Common::Join),
        7 => w.hide(),
        8..=11 => w.show(),
        12 | 13 => {
            let of = w.target();
            w.ask(of);
        }
        14 | 15 => {
            let is_wrong = w.random.chance(50);
            w.answer(is_wrong);
        }
        16..=18 => timeout(w),
        _ => {
            let by = w.by();
            w.own(Step::False { by });
            w.maybe(70, Writer::show);
        }
    }
}

/// A liar calls for a later view, and shows it to some.
fn timeout(w: &mut Writer<'_, Step>) {
    let by = w.by();
    w.own(Step::Timeout { by });
    w.maybe(80, Writer::show);
}

pub(super) fn take(liars: &mut Coalition, step: &Step) {
    match step {
        Step::Timeout { by } => run_out(liars, *by),
        Step::False { by } => {
            let input = Input::Timeout { timer: 7 };
            let step = message::Step { input, effects: Vec::new() };
            liars.say(*by, &encode(&step), StepName::FalseStep);
        }
    }
}

fn run_out(liars: &mut Coalition, by: By) {
    for number in liars.those(by) {
        liars.acts(number, StepName::EarlyTimeout, |core| {
            let armed = core.histories[core.own as usize].armed.keys().next().copied();
            armed.into_iter().for_each(|timer| core.step(Input::Timeout { timer }));
        });
    }
}
