// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The grammar of plans of replicas that lie together.

use smt_replica::sim::{By, Step as Common, Until, Writer};

use crate::sim::step::{Led, Recipe, Step, StepName};

/// A plan of replicas that lie together.
pub type Plan = smt_replica::sim::Plan<Step>;

/// Writes a plan.
pub(super) fn write(w: &mut Writer<'_, Step>) {
    w.plan(40, apart, scene);
}

/// Two correct replicas that hear nothing of each other come to different views, and another
/// one is told of the first view.
fn apart(w: &mut Writer<'_, Step>) {
    let mut order = Vec::new();
    let mut rest = w.correct.clone();
    // The leader of view 0 has ordered more than the others have heard of.
    if rest[0] == 0 && w.random.chance(60) {
        order.push(rest.remove(0));
    }
    while !rest.is_empty() {
        order.push(rest.remove(w.random.below(rest.len() as u64) as usize));
    }
    let (one, other) = (order[0], order[1 % order.len()]);
    w.step(Common::Part((0..w.nodes).collect()));
    w.ask(one);
    w.pause(30);
    view_with(w, one, 25);
    view_with(w, other, 60);
    let to = order[2 % order.len()];
    match w.random.below(4) {
        0 => w.step(Common::Show { by: By::All, to: Some(to), held: 0 }),
        1 => late(w),
        _ => {
            let has_streams = w.random.chance(50);
            let recipe = Recipe { name: StepName::StateOfView, has_streams };
            w.own(Step::State { to, of: one, recipe });
        }
    }
}

fn scene(w: &mut Writer<'_, Step>) {
    match w.random.below(20) {
        0..=6 => view(w),
        7 | 8 => late(w),
        9..=11 => state(w),
        12 => place(w),
        13 => w.part(),
        14 => w.step(Common::Join),
        15 => w.follow(),
        16 => w.hide(),
        17 => w.show(),
        18 => promise(w),
        _ => rare(w),
    }
}

fn rare(w: &mut Writer<'_, Step>) {
    let by = w.by();
    match w.random.below(4) {
        0 => w.own(Step::FalseCheckpoint { by }),
        1 => {
            let by = w.liar();
            w.own(Step::Restart { by });
        }
        it => w.answer(it == 2),
    }
    w.maybe(50, Writer::show);
}

/// A view that is opened with one correct replica, which need not hear of all of it.
fn view(w: &mut Writer<'_, Step>) {
    let of = w.target();
    view_with(w, of, 55);
}

/// The same with this one. Liars enter the view in some percent of the cases.
fn view_with(w: &mut Writer<'_, Step>, of: u32, enters: u64) {
    if w.random.chance(30) {
        w.step(Common::Follow(vec![of]));
    } else if w.random.chance(30) {
        w.step(Common::Follow(Vec::new()));
    }
    let led = match w.random.below(5) {
        0 => Led::By(of),
        1 => Led::ByAny,
        _ => Led::ByLiar,
    };
    let ahead = if w.random.chance(80) { 0 } else { w.random.below(4) };
    let by = if w.random.chance(80) { By::All } else { w.by() };
    w.maybe(80, |it| it.ask(of));
    w.own(Step::Want { by, of, led, ahead });
    w.show_to(of);
    w.until(of, Until::Wants);
    w.own(Step::Open { of });
    w.show_to(of);
    w.until(of, Until::Opens);
    if w.random.chance(enters) {
        enter(w, of);
    }
}

fn enter(w: &mut Writer<'_, Step>, of: u32) {
    let by = w.by();
    w.own(Step::Enter { by, of, is_newest: true });
    if w.random.chance(60) {
        w.maybe(50, |it| it.ask(of));
        w.own(Step::Order { of });
    }
    if w.random.chance(60) {
        let by = w.by();
        w.own(Step::Commit { by, of, is_newest: true });
    }
    w.maybe(70, |it| it.show_to(of));
    w.maybe(50, |it| it.until(of, Until::Executes));
}

/// Statements of views that are over, or were promised not to be spoken in.
fn late(w: &mut Writer<'_, Step>) {
    let of = w.target();
    let (by, is_newest) = (w.by(), w.random.chance(40));
    if w.random.chance(70) {
        w.own(Step::Enter { by, of, is_newest });
    }
    if w.random.chance(50) {
        w.own(Step::Commit { by, of, is_newest });
    }
    w.maybe(60, Writer::show);
}

fn state(w: &mut Writer<'_, Step>) {
    use StepName::{
        OldState, StateOfFalseBytes, StateOfFalsePlace, StateOfNoView, StateOfOldPlaces,
        StateOfView, StateWithoutCheckpoint, TrueState,
    };
    const NAMES: [StepName; 14] = [
        StateOfView,
        StateOfView,
        StateOfView,
        StateOfView,
        StateOfView,
        StateOfOldPlaces,
        StateOfOldPlaces,
        StateOfOldPlaces,
        StateWithoutCheckpoint,
        TrueState,
        OldState,
        StateOfNoView,
        StateOfFalsePlace,
        StateOfFalseBytes,
    ];
    let name = NAMES[w.random.below(NAMES.len() as u64) as usize];
    let recipe = Recipe { name, has_streams: w.random.chance(50) };
    let (to, of) = (w.target(), w.correct());
    w.own(Step::State { to, of, recipe });
}

/// A place of a stream. Often the liars' own is made to have one.
fn place(w: &mut Writer<'_, Step>) {
    let of = w.target();
    if w.random.chance(60) {
        let by = w.by();
        w.own(Step::Pad { by });
        w.show_to(of);
        w.pause(3);
    }
    let (by, is_true) = (w.by(), w.random.chance(60));
    w.own(Step::Place { by, of, is_true });
    w.maybe(70, Writer::show);
}

/// VIEW-CHANGEs ahead of time.
fn promise(w: &mut Writer<'_, Step>) {
    let (by, of, ahead) = (w.by(), w.target(), w.random.below(6));
    w.own(Step::Want { by, of, led: Led::ByAny, ahead });
    w.maybe(60, Writer::show);
}
