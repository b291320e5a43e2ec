// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of liars that work together, drawn by a grammar.
//!
//! A plan is a row of scenes, and a scene a row of steps, most of which may be left out. A scene is
//! about one correct node, seldom about two; the next one is often about another.

use smt_simulation::Random;

use crate::sim::step::{By, Step, Until};

/// The plan of a run. `X` is a step of one system alone.
#[derive(Clone, Debug)]
pub struct Plan<X> {
    /// The nodes that lie together.
    pub liars: Vec<u32>,
    /// The steps, in order.
    pub steps: Vec<Step<X>>,
}

impl<X: Clone> Plan<X> {
    /// Draws a plan for these liars, whose steps `write` writes down.
    pub fn draw(
        random: &mut Random,
        nodes: u32,
        liars: Vec<u32>,
        is_long: bool,
        write: impl FnOnce(&mut Writer<'_, X>),
    ) -> Self {
        if liars.is_empty() {
            return Self { liars, steps: Vec::new() };
        }
        let correct = (0..nodes).filter(|it| !liars.contains(it)).collect();
        let (last, steps) = (None, Vec::new());
        let mut writer = Writer { random, nodes, liars, correct, is_long, last, steps };
        write(&mut writer);
        let Writer { liars, steps, .. } = writer;
        Self { liars, steps }
    }
}

/// Writes a plan down.
pub struct Writer<'a, X> {
    /// All that is random in the plan.
    pub random: &'a mut Random,
    /// How many nodes there are.
    pub nodes: u32,
    /// The liars.
    pub liars: Vec<u32>,
    /// The correct nodes.
    pub correct: Vec<u32>,
    /// Whether liars wait for long.
    pub is_long: bool,
    /// The correct node of the last scene.
    last: Option<u32>,
    steps: Vec<Step<X>>,
}

impl<X> Writer<'_, X> {
    /// Writes a step of one system alone.
    pub fn own(&mut self, step: X) {
        self.steps.push(Step::Own(step));
    }

    /// Writes a step.
    pub fn step(&mut self, step: Step<X>) {
        self.steps.push(step);
    }

    /// Writes something in some percent of the cases.
    pub fn maybe(&mut self, percent: u64, then: impl FnOnce(&mut Self)) {
        if self.random.chance(percent) {
            then(self);
        }
    }

    /// All liars, or one.
    pub fn by(&mut self) -> By {
        match self.random.chance(60) {
            true => By::All,
            false => By::One(self.liar()),
        }
    }

    /// A liar.
    pub fn liar(&mut self) -> u32 {
        self.liars[self.random.below(self.liars.len() as u64) as usize]
    }

    /// A correct node.
    pub fn correct(&mut self) -> u32 {
        self.correct[self.random.below(self.correct.len() as u64) as usize]
    }

    /// The correct node of the next scene: another one, more often than not.
    pub fn target(&mut self) -> u32 {
        let mut target = self.correct();
        if self.last == Some(target) {
            target = self.correct();
        }
        self.last = Some(target);
        target
    }

    /// A node gets a request.
    pub fn ask(&mut self, of: u32) {
        self.steps.push(Step::Ask(of));
    }

    /// Liars wait until a node does something.
    pub fn until(&mut self, of: u32, until: Until) {
        self.steps.push(Step::Until(of, until));
    }

    /// Some statements are shown, to one more often than to all.
    pub fn show(&mut self) {
        let to = if self.random.chance(75) { Some(self.target()) } else { None };
        let held = if self.random.chance(25) { 1 + self.random.below(4) as usize } else { 0 };
        let by = self.by();
        self.steps.push(Step::Show { by, to, held });
        self.maybe(50, |it| it.pause(20));
    }

    /// All statements are shown to a node.
    pub fn show_to(&mut self, of: u32) {
        self.steps.push(Step::Show { by: By::All, to: Some(of), held: 0 });
    }

    /// Liars hide.
    pub fn hide(&mut self) {
        self.steps.push(Step::Follow(Vec::new()));
        self.wait();
    }

    /// Liars follow the protocol with some.
    pub fn follow(&mut self) {
        let mut with = self.correct.clone();
        let most = self.random.below(with.len() as u64 + 1);
        while (with.len() as u64) > most.max(1) {
            with.remove(self.random.below(with.len() as u64) as usize);
        }
        self.steps.push(Step::Follow(with));
        self.maybe(60, Self::wait);
    }

    /// Time passes.
    pub fn wait(&mut self) {
        let most = if self.is_long { 400 } else { 60 };
        self.pause(most);
    }

    /// Ticks pass, `most` at most.
    pub fn pause(&mut self, most: u64) {
        let ticks = 1 + self.random.below(most) as u32;
        self.steps.push(Step::Wait(ticks));
    }

    /// Nodes are cut off: each alone, one alone, or any two parts.
    pub fn part(&mut self) {
        let mut parts = vec![0; self.nodes as usize];
        match self.random.below(3) {
            0 => parts = (0..self.nodes).collect(),
            1 => parts[self.target() as usize] = 1,
            _ => parts.iter_mut().for_each(|it| *it = self.random.below(2) as u32),
        }
        self.steps.push(Step::Part(parts));
        self.maybe(30, Self::wait);
    }

    /// Clients get answers: wrong ones, or those of a correct node.
    pub fn answer(&mut self, is_wrong: bool) {
        let of = if is_wrong { None } else { Some(self.target()) };
        self.steps.push(Step::Answer { of });
    }

    /// A whole plan: a beginning, scenes, and an end. In the beginning some may be cut off, or
    /// `apart` brings nodes to different views; then liars follow the protocol with some, in
    /// `follows` percent of the plans.
    pub fn plan(&mut self, follows: u64, apart: impl FnOnce(&mut Self), scene: impl Fn(&mut Self)) {
        match self.random.below(4) {
            0 => apart(self),
            1 => {}
            _ => self.part(),
        }
        self.maybe(follows, Self::follow);
        for _ in 0..2 + self.random.below(6) {
            scene(self);
        }
        self.end();
    }

    /// In the end all may hear each other, and liars follow the protocol.
    pub fn end(&mut self) {
        if self.random.chance(60) {
            self.steps.push(Step::Join);
        }
        if self.random.chance(50) {
            let with = self.correct.clone();
            self.steps.push(Step::Follow(with));
        }
    }
}
