// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of nodes of a chain that lie together.

use smt_replica::sim::{By, Step as Common, Until, Writer};

/// A plan of nodes that lie together.
pub type Plan = smt_replica::sim::Plan<Step>;

/// A step of a plan that only nodes of a chain take. `of` is a correct node, as whose knowledge the
/// liars choose what they say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Liars accuse the newest configuration.
    Accuse {
        /// The node.
        of: u32,
    },
    /// FREEZE.
    Freeze {
        /// The liars.
        by: By,
        /// The node.
        of: u32,
        /// How many configurations are skipped.
        ahead: u64,
    },
    /// OPEN.
    Open {
        /// The node.
        of: u32,
    },
    /// ENTER.
    Enter {
        /// The liars.
        by: By,
        /// The node.
        of: u32,
        /// Whether the configuration is the newest, or any.
        is_newest: bool,
    },
    /// ORDER.
    Order {
        /// The node.
        of: u32,
    },
    /// PROOFs up to the end of the log.
    Prove {
        /// The liars.
        by: By,
        /// The node.
        of: u32,
        /// Whether the configuration is the newest, or any.
        is_newest: bool,
    },
    /// A false PROOF.
    ProveFalsely {
        /// The liars.
        by: By,
        /// The node.
        of: u32,
        /// Whether the answer is false, or the proof of the node before.
        is_output: bool,
    },
}

/// The name of such a step.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName {
    /// All liars accuse.
    Accuse,
    /// FREEZE.
    Freeze,
    /// OPEN on FREEZEs that one correct node knows.
    Open,
    /// ENTER of a configuration that a correct node knows.
    Enter,
    /// The same after a promise for a later one.
    LateEnter,
    /// ORDER in a configuration that a liar heads.
    Order,
    /// PROOF of what a correct node has.
    Prove,
    /// The same after a promise for a later configuration.
    LateProve,
    /// PROOF of a false answer.
    FalseOutput,
    /// PROOF with a false proof of the node before.
    FalseLink,
}

impl StepName {
    /// All names.
    pub const ALL: [Self; 10] = [
        Self::Accuse,
        Self::Freeze,
        Self::Open,
        Self::Enter,
        Self::LateEnter,
        Self::Order,
        Self::Prove,
        Self::LateProve,
        Self::FalseOutput,
        Self::FalseLink,
    ];
}

/// Writes a plan.
pub(super) fn write(w: &mut Writer<'_, Step>) {
    w.plan(50, apart, scene);
}

/// Correct nodes that hear nothing of each other come to different configurations.
fn apart(w: &mut Writer<'_, Step>) {
    w.step(Common::Part((0..w.nodes).collect()));
    let (one, other) = (w.target(), w.target());
    w.ask(one);
    w.pause(30);
    configuration_with(w, one, 40);
    configuration_with(w, other, 60);
    w.maybe(50, late);
}

fn scene(w: &mut Writer<'_, Step>) {
    match w.random.below(22) {
        0..=6 => {
            let of = w.target();
            configuration_with(w, of, 60);
        }
        7..=9 => late(w),
        10 | 11 => prove(w),
        12 | 13 => w.part(),
        14 => w.step(Common::Join),
        15 => w.follow(),
        16 => w.hide(),
        17 => w.show(),
        18 => promise(w),
        _ => rare(w),
    }
}

/// A configuration that is made and opened with one correct node, which need not hear of all of it.
fn configuration_with(w: &mut Writer<'_, Step>, of: u32, enters: u64) {
    if w.random.chance(30) {
        w.step(Common::Follow(vec![of]));
    } else if w.random.chance(20) {
        w.step(Common::Follow(Vec::new()));
    }
    let ahead = if w.random.chance(80) { 0 } else { w.random.below(4) };
    let by = if w.random.chance(80) { By::All } else { w.by() };
    w.maybe(80, |it| it.ask(of));
    w.own(Step::Accuse { of });
    w.own(Step::Freeze { by, of, ahead });
    w.show_to(of);
    w.until(of, Until::Wants);
    w.own(Step::Accuse { of });
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
        w.maybe(30, |it| it.own(Step::Order { of }));
    }
    if w.random.chance(60) {
        let by = w.by();
        w.own(Step::Prove { by, of, is_newest: true });
    }
    w.maybe(70, |it| it.show_to(of));
    w.maybe(50, |it| it.until(of, Until::Executes));
}

/// PROOFs and ORDERs in the configuration in which a correct node is.
fn prove(w: &mut Writer<'_, Step>) {
    let of = w.target();
    w.maybe(50, |it| it.own(Step::Order { of }));
    let by = w.by();
    w.own(Step::Prove { by, of, is_newest: true });
    w.maybe(80, Writer::show);
}

/// Statements of configurations that are over, or were promised not to be spoken in.
fn late(w: &mut Writer<'_, Step>) {
    let of = w.target();
    let (by, is_newest) = (w.by(), w.random.chance(40));
    w.maybe(60, |it| it.own(Step::Enter { by, of, is_newest }));
    w.maybe(60, |it| it.own(Step::Prove { by, of, is_newest }));
    w.maybe(60, Writer::show);
}

/// FREEZEs ahead of time.
fn promise(w: &mut Writer<'_, Step>) {
    let (by, of, ahead) = (w.by(), w.target(), w.random.below(6));
    w.own(Step::Freeze { by, of, ahead });
    w.maybe(60, Writer::show);
}

fn rare(w: &mut Writer<'_, Step>) {
    let by = By::One(w.liar());
    let of = w.target();
    match w.random.below(4) {
        0 => w.own(Step::ProveFalsely { by, of, is_output: true }),
        1 => w.own(Step::ProveFalsely { by, of, is_output: false }),
        it => w.answer(it == 2),
    }
    w.maybe(70, Writer::show);
}
