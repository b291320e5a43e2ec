// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts before all that is explored: so few actions are left to what a model is about.

use super::{Bft, Event, Lie};
use crate::{Action, Cluster, Key, State};

/// A script before all that is explored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Beginning {
    /// Nothing.
    New,
    /// One correct replica of three has executed a request, and its checkpoint is stable: with a
    /// second correct one, or with the liar. The third one has heard nothing.
    Checkpoint,
    /// All correct replicas have executed a request, and have its checkpoint. The device of the
    /// last one has restarted, and the others have admitted it.
    Admitted,
    /// The same of three, and 2 is back with the state that 1 gave. It has heard no vote yet.
    Recovered,
    /// 0 and 1 of three have executed many requests, and 2 has heard nothing.
    CutOff,
    /// Liars are 1 and 2 of five. 0 has opened view 5 with a request that nobody else has heard of.
    /// 3 has entered view 6, which begins without it, and another one is ordered there.
    TwoOpenings,
    /// All of five have executed a request. Then the device of 4 has restarted; 0, 1 and 2 have
    /// admitted it, and 4 is back. 3 has heard of that, and 4 has not heard of 3.
    Newcomer,
}

/// Requests of a long row.
const ROW: usize = 30;

impl Beginning {
    /// How many requests come in a row, beside those that are explored.
    pub(super) fn row(self) -> usize {
        if self == Self::CutOff { ROW } else { 0 }
    }

    /// The state after it.
    pub(super) fn script(self, cluster: &Cluster<Bft>, first: State) -> State {
        let mut script = Script { cluster, state: first };
        match self {
            Self::New => {}
            Self::Checkpoint => script.checkpoint(),
            Self::Admitted => script.admit(),
            Self::Recovered => script.recover(),
            Self::CutOff => script.cut_off(),
            Self::TwoOpenings => script.two_openings(),
            Self::Newcomer => script.newcomer(),
        }
        script.state
    }
}

struct Script<'a> {
    cluster: &'a Cluster<Bft>,
    state: State,
}

impl Script<'_> {
    fn act(&mut self, action: Action<Event, Lie>) {
        if let Some(next) = self.cluster.step(&self.state, &action) {
            self.state = next;
        }
    }

    /// One hears all that a stream has.
    fn hear(&mut self, to: u32, key: Key) {
        let length = self.cluster.said(&self.state, key).len() as u64;
        self.act(Action::Deliver(to, key, length));
    }

    /// Some hear each other until there is nothing new.
    fn exchange(&mut self, members: &[u32]) {
        loop {
            let before = self.state.clone();
            for key in self.cluster.keys(&self.state) {
                let others = members.iter().filter(|it| **it != key.0);
                let others = others.filter(|_| members.contains(&key.0));
                others.for_each(|it| self.hear(*it, key));
            }
            if self.state == before {
                return;
            }
        }
    }

    fn lie(&mut self, to: u32, liar: u32, lie: Lie) {
        self.act(Action::Lie(to, (liar, 1), lie));
    }

    fn checkpoint(&mut self) {
        let [place, view] = [1, 0];
        let commit = Lie::Commit { view, place };
        let checkpoint = Lie::Checkpoint { place, is_true: true };
        match self.cluster.liars.first() {
            None => {
                self.act(Action::Request(0, 0));
                self.exchange(&[0, 1]);
            }
            Some(0) => {
                self.lie(1, 0, Lie::Prepare { view, place, request: 0 });
                self.lie(1, 0, checkpoint);
            }
            Some(liar) => {
                self.act(Action::Request(0, 0));
                self.lie(0, *liar, commit);
                self.lie(0, *liar, checkpoint);
            }
        }
    }

    fn execute(&mut self) {
        let all: Vec<u32> = self.state.correct.iter().map(|it| it.0).collect();
        self.act(Action::Request(0, 0));
        self.exchange(&all);
    }

    /// The device of one restarts, and some admit it.
    fn restart(&mut self, own: u32, admitting: &[u32]) {
        self.act(Action::Happen(own, Event::Restart));
        admitting.iter().for_each(|it| self.hear(*it, (own, 2)));
        self.exchange(admitting);
    }

    /// One gets the state that another one gives now.
    fn give(&mut self, to: u32, from: u32) {
        self.act(Action::Give(to, from, self.last_given(from)));
    }

    fn last_given(&self, from: u32) -> usize {
        let seen = self.cluster.see(&self.state);
        let given = seen.iter().find(|it| it.0 == from).map(|it| it.1.given.len());
        given.unwrap_or_default().saturating_sub(1)
    }

    fn admit(&mut self) {
        self.execute();
        let mut all: Vec<u32> = self.state.correct.iter().map(|it| it.0).collect();
        let last = all.pop().unwrap_or_default();
        self.restart(last, &all);
    }

    fn recover(&mut self) {
        self.admit();
        self.give(2, 1);
    }

    fn cut_off(&mut self) {
        let first = self.cluster.system.bounds.requests;
        for request in first..first + ROW {
            self.act(Action::Request(0, request));
            self.exchange(&[0, 1]);
        }
    }

    fn two_openings(&mut self) {
        let wants = |view| Lie::ViewChange { view };
        self.act(Action::Request(0, 0));
        [1, 2].into_iter().for_each(|liar| self.lie(0, liar, wants(5)));
        for _ in 0..5 {
            self.act(Action::Happen(0, Event::Timeout));
        }
        self.act(Action::Request(3, 1));
        for liar in [1, 2] {
            self.hear(3, (liar, 1));
            self.lie(3, liar, wants(6));
        }
        for _ in 0..6 {
            self.act(Action::Happen(3, Event::Timeout));
        }
        self.lie(3, 1, Lie::NewView { view: 6, votes: vec![(1, 1), (2, 1), (3, 1)] });
        [1, 2].into_iter().for_each(|liar| self.lie(3, liar, Lie::Enter { view: 6, like: 3 }));
        self.lie(3, 1, Lie::Prepare { view: 6, place: 1, request: 1 });
    }

    fn newcomer(&mut self) {
        self.execute();
        self.restart(4, &[0, 1, 2]);
        self.give(4, 0);
        for _ in 0..3 {
            self.exchange(&[0, 1, 2, 4]);
            self.exchange(&[0, 1, 2, 3]);
        }
    }
}
