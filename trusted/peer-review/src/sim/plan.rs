// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The grammar of plans of nodes that lie together.

use smt_replica::sim::{Step as Common, Writer};

use crate::sim::attack::Attack;
use crate::sim::step::{Audience, Step};
use crate::tree::Tree;

/// A plan of nodes that lie together.
pub type Plan = smt_replica::sim::Plan<Step>;

/// Lies that are in the log, or in what the device has signed.
const OF_CONTENT: [Attack; 6] = [
    Attack::WrongOutput,
    Attack::SkipForward,
    Attack::Rewrite,
    Attack::Invent,
    Attack::WrongCheckpoint,
    Attack::NoCheckpoint,
];
/// Ways to hide a log.
const OF_LOG: [Attack; 3] = [Attack::Mute, Attack::Stale, Attack::Defer];
/// Ways to send a child nothing.
const OF_PARENT: [Attack; 3] = [Attack::Selfish, Attack::TellOwn, Attack::Frame];
/// Ways to accept nothing of a parent.
const OF_CHILD: [Attack; 3] = [Attack::Hide, Attack::HideLater, Attack::FalseReceipt];
/// Lies of which one may be told to some and not to others.
const OF_ONE: [Attack; 8] = [
    Attack::Mute,
    Attack::Stale,
    Attack::Selfish,
    Attack::TellOwn,
    Attack::Hide,
    Attack::HideLater,
    Attack::FalseReceipt,
    Attack::Omit,
];

/// Writes a plan for liars of this tree.
pub(super) fn write(w: &mut Writer<'_, Step>, tree: &Tree) {
    w.maybe(40, Writer::part);
    w.maybe(50, Writer::wait);
    for _ in 0..2 + w.random.below(6) {
        scene(w, tree);
    }
    end(w);
}

fn scene(w: &mut Writer<'_, Step>, tree: &Tree) {
    match w.random.below(20) {
        0 | 1 => content(w, tree),
        2..=5 => starve(w, tree),
        6..=8 => promise(w, tree),
        9..=12 => divide(w, tree),
        13 => suspect_nobody(w),
        14 => late(w),
        15 => w.part(),
        16 => w.step(Common::Join),
        _ => any(w, tree),
    }
}

/// A liar puts wrong content into the world, and another one, its witness, shows no evidence,
/// answers for it, or tells of it late. Then the first one may behave, or hide its log.
fn content(w: &mut Writer<'_, Step>, tree: &Tree) {
    let by = w.liar();
    w.maybe(80, |it| cover(it, by));
    lie(w, tree, by, &OF_CONTENT);
    w.own(Step::UntilLied { by });
    w.maybe(60, |it| it.own(Step::Behave { by }));
    w.maybe(50, |it| {
        lie(it, tree, by, &OF_LOG);
        it.wait();
    });
}

/// A parent sends nothing, and a child accepts nothing: both of them liars, if two are so placed.
fn starve(w: &mut Writer<'_, Step>, tree: &Tree) {
    let child = w.liar();
    let parent = tree.parent(child).filter(|it| w.liars.contains(it)).unwrap_or_else(|| w.liar());
    w.maybe(40, |it| cover(it, child));
    lie(w, tree, parent, &OF_PARENT);
    if child != parent {
        lie(w, tree, child, &OF_CHILD);
    }
    w.wait();
    let mut order = [parent, child];
    if w.random.chance(50) {
        order.reverse();
    }
    for by in order {
        w.maybe(70, |it| it.own(Step::Behave { by }));
        w.maybe(50, |it| it.pause(40));
    }
}

/// A liar behaves until its witnesses have audited a checkpoint, lies, and behaves again.
fn promise(w: &mut Writer<'_, Step>, tree: &Tree) {
    let by = w.liar();
    w.own(Step::Behave { by });
    w.own(Step::UntilAudited { of: by });
    lie(w, tree, by, &Attack::ALL);
    w.own(Step::UntilLied { by });
    w.maybe(50, Writer::wait);
    w.own(Step::Behave { by });
    w.maybe(50, Writer::wait);
}

/// A liar lies to one alone, or to all but one, and then perhaps the other way round.
fn divide(w: &mut Writer<'_, Step>, tree: &Tree) {
    let by = w.liar();
    let one = w.target();
    let mut audiences = [Audience::One(one), Audience::AllBut(one)];
    if w.random.chance(50) {
        audiences.reverse();
    }
    w.maybe(30, |it| cover(it, by));
    let attack = attack_of(w, tree, by, &OF_ONE);
    for to in audiences {
        w.own(Step::Lie { by, attack, to });
        w.wait();
    }
    w.maybe(60, |it| it.own(Step::Behave { by }));
}

/// A witness suspects nobody, and floods those of whom it is the witness.
fn suspect_nobody(w: &mut Writer<'_, Step>) {
    let by = w.liar();
    w.own(Step::Cover { by, of: None });
    let attack = if w.random.chance(60) { Attack::Flood } else { Attack::FalseAccuser };
    w.own(Step::Lie { by, attack, to: Audience::All });
    w.wait();
}

/// All that a liar says is late.
fn late(w: &mut Writer<'_, Step>) {
    let by = w.liar();
    let ticks = 1 + w.random.below(60);
    w.own(Step::Delay { by, ticks });
    w.maybe(60, Writer::wait);
}

fn any(w: &mut Writer<'_, Step>, tree: &Tree) {
    let by = w.liar();
    lie(w, tree, by, &Attack::ALL);
    w.wait();
    w.maybe(60, |it| it.own(Step::Behave { by }));
}

/// Another liar covers this one, and may say all that it says late.
fn cover(w: &mut Writer<'_, Step>, of: u32) {
    let others = w.liars.iter().copied().filter(|it| *it != of);
    if let Some(by) = { others }.next() {
        w.own(Step::Cover { by, of: Some(of) });
        w.maybe(30, |it| {
            let ticks = 1 + it.random.below(30);
            it.own(Step::Delay { by, ticks });
        });
    }
}

fn lie(w: &mut Writer<'_, Step>, tree: &Tree, by: u32, attacks: &[Attack]) {
    let attack = attack_of(w, tree, by, attacks);
    w.own(Step::Lie { by, attack, to: Audience::All });
}

/// One of some attacks, which a node at this place of the tree can make.
fn attack_of(w: &mut Writer<'_, Step>, tree: &Tree, by: u32, attacks: &[Attack]) -> Attack {
    let fit = attacks.iter().copied().filter(|it| it.is_possible(by, tree));
    let fit: Vec<Attack> = fit.collect();
    match fit.is_empty() {
        true => Attack::Omit,
        false => fit[w.random.below(fit.len() as u64) as usize],
    }
}

/// In the end all may hear each other, and some liars follow the protocol.
fn end(w: &mut Writer<'_, Step>) {
    w.maybe(60, |it| it.step(Common::Join));
    for by in w.liars.clone() {
        w.maybe(50, |it| it.own(Step::Behave { by }));
    }
}
