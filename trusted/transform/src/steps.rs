// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The authentic steps of one stream that a node keeps, and when each was sent to each other node.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::message::Attested;

/// After so many ticks a step goes again to a node that still lacks it.
const AGAIN: u64 = 4;
/// Bytes that a step costs beside its body.
const BESIDE: usize = 256;

/// A moment, in ticks since the node's start.
pub(crate) type Ticks = u64;

struct Kept {
    step: Attested,
    /// The tick at which each node was last sent the step, or could have it from its maker.
    sent: Vec<Ticks>,
}

impl Kept {
    /// Bytes that the step costs here.
    fn cost(&self) -> usize {
        self.step.body.len() + BESIDE
    }
}

/// Steps that were taken, for others, and steps that wait.
pub(crate) struct Steps {
    kept: BTreeMap<u64, Kept>,
    /// The counter up to which no step is missing.
    held: u64,
    /// Bytes of the steps that were not taken.
    waiting: usize,
    /// Bytes of those that were.
    taken: usize,
    nodes: u32,
}

impl Steps {
    /// No step of a group of so many nodes.
    pub(crate) fn new(nodes: u32) -> Self {
        Self { kept: BTreeMap::new(), held: 0, waiting: 0, taken: 0, nodes }
    }

    /// The counter up to which no step is missing.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    pub(crate) fn has(&self, counter: u64) -> bool {
        self.kept.contains_key(&counter)
    }

    /// Keeps an authentic step. The maker sends it to all at about the same time, so other nodes
    /// are sent it only later.
    pub(crate) fn put(&mut self, counter: u64, step: Attested, now: Ticks) {
        if let Entry::Vacant(place) = self.kept.entry(counter) {
            let kept = Kept { step, sent: vec![now; self.nodes as usize] };
            self.waiting += kept.cost();
            place.insert(kept);
        }
        while self.kept.contains_key(&(self.held + 1)) {
            self.held += 1;
        }
    }

    /// Bytes of the steps that were not taken.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The step at a counter.
    pub(crate) fn at(&self, counter: u64) -> Option<(u64, &Attested)> {
        self.kept.get(&counter).map(|it| (counter, &it.step))
    }

    /// All steps, by counter.
    #[cfg(feature = "sim")]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&u64, &Attested)> {
        self.kept.iter().map(|it| (it.0, &it.1.step))
    }

    /// All up to a counter were taken. The last one stays, and those before it up to so many bytes
    /// in all: a liar whose steps are long does not fill the memory of others.
    pub(crate) fn took(&mut self, counter: u64, bytes_max: usize) {
        self.held = self.held.max(counter);
        let cost = self.kept.get(&counter).map_or(0, Kept::cost);
        self.waiting = self.waiting.saturating_sub(cost);
        self.taken += cost;
        while self.taken > bytes_max
            && let Some(first) = self.kept.first_entry().filter(|it| *it.key() < counter)
        {
            self.taken = self.taken.saturating_sub(first.remove().cost());
        }
    }

    /// Those of the steps after `held`, of so many bytes in all and at least one, that were not
    /// sent to this node just before; none if the first of them is gone. The time is kept for each
    /// step that was sent, not for each question: a question in another node's name keeps no step
    /// from that node.
    pub(crate) fn missing(&mut self, lack: Lack, bytes_max: usize) -> Vec<Attested> {
        let first = lack.held.saturating_add(1);
        if !self.has(first) {
            return Vec::new();
        }
        let (mut missing, mut bytes) = (Vec::new(), 0);
        for kept in self.kept.range_mut(first..).map(|it| it.1) {
            bytes += kept.cost();
            if bytes > bytes_max && bytes > kept.cost() {
                break;
            }
            if let Some(sent) = kept.sent.get_mut(lack.node as usize)
                && lack.now >= *sent + AGAIN
            {
                *sent = lack.now;
                missing.push(kept.step.clone());
            }
        }
        missing
    }
}

/// A node that asks for what it lacks of a stream.
#[derive(Clone, Copy)]
pub(crate) struct Lack {
    pub(crate) node: u32,
    /// The counter up to which it has the stream.
    pub(crate) held: u64,
    /// The moment of the question.
    pub(crate) now: Ticks,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u8) -> Attested {
        Attested { attestation: [[number; 32]; 2], body: vec![number] }
    }

    /// Steps 1, 2 and 4, all from tick 0.
    fn steps() -> Steps {
        let mut steps = Steps::new(3);
        for number in [1, 2, 4] {
            steps.put(u64::from(number), step(number), 0);
        }
        steps
    }

    fn sent(steps: &mut Steps, node: u32, held: u64, now: Ticks) -> Vec<u8> {
        let missing = steps.missing(Lack { node, held, now }, 1 << 20);
        missing.iter().map(|it| it.body[0]).collect()
    }

    #[test]
    fn a_stream_is_held_up_to_the_first_step_that_is_missing() {
        let mut steps = steps();
        assert_eq!(steps.held(), 2);
        steps.put(3, step(3), 0);
        assert_eq!(steps.held(), 4);
    }

    #[test]
    fn a_step_goes_again_to_a_node_only_after_some_ticks() {
        let mut steps = steps();
        assert_eq!(sent(&mut steps, 1, 0, AGAIN - 1), []);
        assert_eq!(sent(&mut steps, 1, 0, AGAIN), [1, 2, 4]);
        assert_eq!(sent(&mut steps, 1, 0, AGAIN + 1), []);
        assert_eq!(sent(&mut steps, 2, 1, AGAIN + 1), [2, 4]);
        assert_eq!(sent(&mut steps, 1, 0, 2 * AGAIN), [1, 2, 4]);
    }

    #[test]
    fn a_question_that_claims_to_have_all_keeps_no_step_from_its_node() {
        let mut steps = steps();
        assert_eq!(sent(&mut steps, 1, u64::MAX, AGAIN), []);
        assert_eq!(sent(&mut steps, 1, 0, AGAIN), [1, 2, 4]);
    }

    #[test]
    fn an_answer_has_so_many_bytes_and_at_least_one_step() {
        let mut steps = steps();
        let mut sent = |node, bytes| {
            let lack = Lack { node, held: 0, now: AGAIN };
            steps.missing(lack, bytes).len()
        };
        assert_eq!([sent(1, 1), sent(2, 2 * (BESIDE + 1))], [1, 2]);
    }

    // Once, a client's long operations filled the memory of all nodes.
    #[test]
    fn steps_that_were_taken_are_kept_up_to_so_many_bytes_and_the_last_one_always() {
        let mut steps = Steps::new(3);
        let long = |number: u64| Attested {
            attestation: [[0; 32]; 2],
            body: vec![0; 1000 * number as usize],
        };
        let kept = |steps: &Steps| (1..9).filter(|it| steps.has(*it)).collect::<Vec<_>>();
        for number in 1..5 {
            steps.put(number, long(number), 0);
            steps.took(number, 8000);
        }
        assert_eq!((kept(&steps), steps.waiting()), (vec![3, 4], 0));
        steps.put(5, long(9), 0);
        steps.put(6, long(1), 0);
        steps.took(5, 8000);
        assert_eq!(kept(&steps), [5, 6], "one that was not taken is kept too");
        steps.took(6, 8000);
        assert_eq!(kept(&steps), [6]);
    }
}
