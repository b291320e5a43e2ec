// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The questions of others to a state machine.

use std::collections::{BTreeMap, BTreeSet};

/// Questions to a state machine: they change nothing, and are in no log. Each asker has one answer
/// in each tick, since an answer is longer than its question.
pub(super) struct Questions<A, Q> {
    /// The last question of each that asks.
    waiting: BTreeMap<A, Q>,
    /// Those that had an answer since the last tick.
    answered: BTreeSet<A>,
}

impl<A: Ord + Copy, Q> Questions<A, Q> {
    /// No question.
    pub(super) fn new() -> Self {
        Self { waiting: BTreeMap::new(), answered: BTreeSet::new() }
    }

    /// Whether no question waits.
    #[cfg(feature = "sim")]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Has a question wait, in the place of the asker's last one.
    pub(super) fn put(&mut self, asker: A, question: Q) {
        self.waiting.insert(asker, question);
    }

    /// The question of an asker that waits.
    pub(super) fn waiting(&self, asker: &A) -> Option<&Q> {
        self.waiting.get(asker)
    }

    /// Time passes.
    pub(super) fn tick(&mut self) {
        self.answered.clear();
    }

    /// Those that are to be answered now. Others wait for the next tick.
    pub(super) fn due(&mut self) -> Vec<(A, Q)> {
        let mut due = Vec::new();
        for (asker, question) in std::mem::take(&mut self.waiting) {
            match self.answered.insert(asker) {
                true => due.push((asker, question)),
                false => drop(self.waiting.insert(asker, question)),
            }
        }
        due
    }
}

impl<A: Ord + Copy, Q> Default for Questions<A, Q> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_has_the_answer_to_its_last_question_once_in_each_tick() {
        let mut questions = Questions::new();
        questions.put('a', 1);
        questions.put('b', 2);
        questions.put('a', 3);
        assert_eq!(questions.due(), [('a', 3), ('b', 2)]);
        questions.put('a', 4);
        assert_eq!(questions.due(), []);
        questions.tick();
        assert_eq!(questions.due(), [('a', 4)]);
    }
}
