// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of liars that work together, drawn by a grammar.
//!
//! A plan is a row of scenes, and a scene a row of steps, most of which may be left out. A scene is
//! about one correct replica, seldom about two; the next one is often about another.

use smt_simulation::Random;

use crate::sim::step::{By, Led, Recipe, Step, StepName, Until};

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The replicas that lie together.
    pub(crate) liars: Vec<u32>,
    pub(crate) steps: Vec<Step>,
}

impl Plan {
    /// Draws a plan for these liars. In long runs they wait longer.
    pub(crate) fn draw(random: &mut Random, replicas: u32, liars: Vec<u32>, is_long: bool) -> Self {
        if liars.is_empty() {
            return Self { liars, steps: Vec::new() };
        }
        let correct = (0..replicas).filter(|it| !liars.contains(it)).collect();
        let (last, steps) = (None, Vec::new());
        let mut writer = Writer { random, replicas, liars, correct, is_long, last, steps };
        writer.plan();
        let Writer { liars, steps, .. } = writer;
        Self { liars, steps }
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether liars have no plan.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The same without some steps, for the search of a smaller plan with the same outcome.
    #[must_use]
    pub fn without(&self, steps: std::ops::Range<usize>) -> Self {
        let kept = self.steps.iter().enumerate().filter(|it| !steps.contains(&it.0));
        Self { liars: self.liars.clone(), steps: kept.map(|it| it.1.clone()).collect() }
    }
}

/// Writes a plan down.
struct Writer<'a> {
    random: &'a mut Random,
    replicas: u32,
    liars: Vec<u32>,
    correct: Vec<u32>,
    is_long: bool,
    /// The correct replica of the last scene.
    last: Option<u32>,
    steps: Vec<Step>,
}

impl Writer<'_> {
    fn plan(&mut self) {
        match self.random.below(4) {
            0 => self.apart(),
            1 => {}
            _ => self.part(),
        }
        if self.random.chance(40) {
            self.follow();
        }
        for _ in 0..2 + self.random.below(6) {
            self.scene();
        }
        if self.random.chance(60) {
            self.steps.push(Step::Join);
        }
        if self.random.chance(50) {
            let with = self.correct.clone();
            self.steps.push(Step::Follow(with));
        }
    }

    /// Two correct replicas that hear nothing of each other come to different views, and another
    /// one is told of the first view.
    fn apart(&mut self) {
        let mut order = Vec::new();
        let mut rest = self.correct.clone();
        // The leader of view 0 has ordered more than the others have heard of.
        if rest[0] == 0 && self.random.chance(60) {
            order.push(rest.remove(0));
        }
        while !rest.is_empty() {
            order.push(rest.remove(self.random.below(rest.len() as u64) as usize));
        }
        let (one, other) = (order[0], order[1 % order.len()]);
        self.steps.push(Step::Part((0..self.replicas).collect()));
        self.steps.push(Step::Ask(one));
        self.steps.push(Step::Wait(1 + self.random.below(30) as u32));
        self.view_with(one, 25);
        self.view_with(other, 60);
        let to = order[2 % order.len()];
        match self.random.below(4) {
            0 => self.steps.push(Step::Show { by: By::All, to: Some(to), held: 0 }),
            1 => self.late(),
            _ => {
                let has_streams = self.random.chance(50);
                let recipe = Recipe { name: StepName::StateOfView, has_streams };
                self.steps.push(Step::State { to, of: one, recipe });
            }
        }
    }

    fn scene(&mut self) {
        match self.random.below(20) {
            0..=6 => self.view(),
            7 | 8 => self.late(),
            9..=11 => self.state(),
            12 => self.place(),
            13 => self.part(),
            14 => self.steps.push(Step::Join),
            15 => self.follow(),
            16 => self.hide(),
            17 => self.show(),
            18 => self.promise(),
            _ => self.rare(),
        }
    }

    fn rare(&mut self) {
        let by = self.by();
        let step = match self.random.below(4) {
            0 => Step::FalseCheckpoint { by },
            1 => Step::Restart { by: self.liar() },
            2 => Step::Answer { of: None },
            _ => Step::Answer { of: Some(self.target()) },
        };
        self.steps.push(step);
        self.maybe(50, Self::show);
    }

    /// A view that is opened with one correct replica, which need not hear of all of it.
    fn view(&mut self) {
        let of = self.target();
        self.view_with(of, 55);
    }

    /// The same with this one. Liars enter the view in some percent of the cases.
    fn view_with(&mut self, of: u32, enters: u64) {
        if self.random.chance(30) {
            self.steps.push(Step::Follow(vec![of]));
        } else if self.random.chance(30) {
            self.steps.push(Step::Follow(Vec::new()));
        }
        let led = match self.random.below(5) {
            0 => Led::By(of),
            1 => Led::ByAny,
            _ => Led::ByLiar,
        };
        let ahead = if self.random.chance(80) { 0 } else { self.random.below(4) };
        let by = if self.random.chance(80) { By::All } else { self.by() };
        self.maybe(80, |it| it.steps.push(Step::Ask(of)));
        self.steps.push(Step::Want { by, of, led, ahead });
        self.show_to(of);
        self.steps.push(Step::Until(of, Until::Wants));
        self.steps.push(Step::Open { of });
        self.show_to(of);
        self.steps.push(Step::Until(of, Until::Opens));
        if self.random.chance(enters) {
            self.enter(of);
        }
    }

    fn enter(&mut self, of: u32) {
        let by = self.by();
        self.steps.push(Step::Enter { by, of, is_newest: true });
        if self.random.chance(60) {
            self.maybe(50, |it| it.steps.push(Step::Ask(of)));
            self.steps.push(Step::Order { of });
        }
        if self.random.chance(60) {
            let by = self.by();
            self.steps.push(Step::Commit { by, of, is_newest: true });
        }
        self.maybe(70, |it| it.show_to(of));
        self.maybe(50, |it| it.steps.push(Step::Until(of, Until::Executes)));
    }

    /// Statements of views that are over, or were promised not to be spoken in.
    fn late(&mut self) {
        let of = self.target();
        let (by, is_newest) = (self.by(), self.random.chance(40));
        if self.random.chance(70) {
            self.steps.push(Step::Enter { by, of, is_newest });
        }
        if self.random.chance(50) {
            self.steps.push(Step::Commit { by, of, is_newest });
        }
        self.maybe(60, Self::show);
    }

    fn state(&mut self) {
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
        let name = NAMES[self.random.below(NAMES.len() as u64) as usize];
        let recipe = Recipe { name, has_streams: self.random.chance(50) };
        let (to, of) = (self.target(), self.correct());
        self.steps.push(Step::State { to, of, recipe });
    }

    /// A place of a stream. Often the liars' own is made to have one.
    fn place(&mut self) {
        let of = self.target();
        if self.random.chance(60) {
            let by = self.by();
            self.steps.push(Step::Pad { by });
            self.show_to(of);
            self.steps.push(Step::Wait(1 + self.random.below(3) as u32));
        }
        let (by, is_true) = (self.by(), self.random.chance(60));
        self.steps.push(Step::Place { by, of, is_true });
        self.maybe(70, Self::show);
    }

    /// VIEW-CHANGEs ahead of time.
    fn promise(&mut self) {
        let (by, of, ahead) = (self.by(), self.target(), self.random.below(6));
        self.steps.push(Step::Want { by, of, led: Led::ByAny, ahead });
        self.maybe(60, Self::show);
    }

    fn show(&mut self) {
        let to = if self.random.chance(75) { Some(self.target()) } else { None };
        let held = if self.random.chance(25) { 1 + self.random.below(4) as usize } else { 0 };
        let by = self.by();
        self.steps.push(Step::Show { by, to, held });
        self.maybe(50, |it| it.steps.push(Step::Wait(1 + it.random.below(20) as u32)));
    }

    fn show_to(&mut self, of: u32) {
        self.steps.push(Step::Show { by: By::All, to: Some(of), held: 0 });
    }

    fn hide(&mut self) {
        self.steps.push(Step::Follow(Vec::new()));
        self.wait();
    }

    fn follow(&mut self) {
        let mut with = self.correct.clone();
        let most = self.random.below(with.len() as u64 + 1);
        while (with.len() as u64) > most.max(1) {
            with.remove(self.random.below(with.len() as u64) as usize);
        }
        self.steps.push(Step::Follow(with));
        self.maybe(60, Self::wait);
    }

    fn wait(&mut self) {
        let most = if self.is_long { 400 } else { 60 };
        self.steps.push(Step::Wait(1 + self.random.below(most) as u32));
    }

    /// Each alone, one alone, or any two parts.
    fn part(&mut self) {
        let mut parts = vec![0; self.replicas as usize];
        match self.random.below(3) {
            0 => parts = (0..self.replicas).collect(),
            1 => parts[self.target() as usize] = 1,
            _ => parts.iter_mut().for_each(|it| *it = self.random.below(2) as u32),
        }
        self.steps.push(Step::Part(parts));
        self.maybe(30, Self::wait);
    }

    fn maybe(&mut self, percent: u64, then: impl FnOnce(&mut Self)) {
        if self.random.chance(percent) {
            then(self);
        }
    }

    fn by(&mut self) -> By {
        match self.random.chance(60) {
            true => By::All,
            false => By::One(self.liar()),
        }
    }

    fn liar(&mut self) -> u32 {
        self.liars[self.random.below(self.liars.len() as u64) as usize]
    }

    fn correct(&mut self) -> u32 {
        self.correct[self.random.below(self.correct.len() as u64) as usize]
    }

    /// The correct replica of the next scene: another one, more often than not.
    fn target(&mut self) -> u32 {
        let mut target = self.correct();
        if self.last == Some(target) {
            target = self.correct();
        }
        self.last = Some(target);
        target
    }
}
