// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The protocol of one node as its attested steps say, and the messages that wait for it.

use std::collections::{BTreeMap, VecDeque};

use smt_replica::{KnownRoots, Request};

use crate::caller::Caller;
use crate::group::Group;
use crate::message::{Attested, Input, Step};
use crate::protocol::{Effect, Protocol};
use crate::steps::{Lack, Steps, Ticks};

/// How many steps may wait for an earlier one.
const AHEAD: u64 = 4096;
/// Bytes of such steps from which on only the next one is kept: those of a liar that wait for ever
/// fill no memory and no disk.
const AHEAD_BYTES: usize = 64 << 20;

/// The fate of a step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// The protocol makes it, with these effects.
    Valid(Vec<Effect>),
    /// Its input is a message whose sender's step is not here yet.
    Wait,
    /// No correct node makes it.
    Faulty,
}

/// The knowledge by which steps are judged.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) group: &'a Group,
    /// Signatures of clients that were verified: requests of steps are the same ones as those that
    /// came from clients, and a signature costs more than all else.
    pub(crate) roots: &'a KnownRoots,
}

/// A message on its way: the counter of its sender's step, and its bytes.
pub(crate) type Waiting = VecDeque<(u64, Vec<u8>)>;

/// A node's protocol, as far as its steps were taken.
pub(crate) struct History<P> {
    machine: P,
    /// The counter that was taken last.
    pub(crate) taken: u64,
    /// It has made a step that the protocol does not make. Nothing more of it is taken.
    pub(crate) is_faulty: bool,
    /// Messages to this node that it has not taken, by sender, in the order of their steps.
    pub(crate) inbox: BTreeMap<u32, Waiting>,
    /// Timers that are armed, and for how long.
    pub(crate) armed: BTreeMap<u32, u32>,
    /// Authentic steps.
    steps: Steps,
}

impl<P: Protocol> History<P> {
    pub(crate) fn new(machine: P, nodes: u32) -> Self {
        Self {
            machine,
            taken: 0,
            is_faulty: false,
            inbox: BTreeMap::new(),
            armed: BTreeMap::new(),
            steps: Steps::new(nodes),
        }
    }

    /// The protocol's run.
    #[cfg(feature = "sim")]
    pub(crate) fn machine(&self) -> &P {
        &self.machine
    }

    /// The effects that the protocol has on an input. The input was judged before.
    pub(crate) fn run(&mut self, input: &Input) -> Vec<Effect> {
        let effects = run(&mut self.machine, input);
        self.note(input, &effects);
        effects
    }

    /// Keeps what follows from a step.
    fn note(&mut self, input: &Input, effects: &[Effect]) {
        match input {
            Input::Message { from, counter, message } => {
                if let Some(waiting) = self.inbox.get_mut(from) {
                    let taken = (*counter, message.clone());
                    if let Some(at) = waiting.iter().position(|it| *it == taken) {
                        waiting.remove(at);
                    }
                }
            }
            Input::Timeout { timer } => {
                self.armed.remove(timer);
            }
            Input::Request(_) => {}
        }
        for effect in effects {
            match effect {
                Effect::Arm { timer, ticks } => {
                    self.armed.insert(*timer, *ticks);
                }
                Effect::Disarm { timer } => {
                    self.armed.remove(timer);
                }
                Effect::Send { .. } | Effect::Reply { .. } => {}
            }
        }
    }

    /// Judges the next step, which is taken if it is valid.
    pub(crate) fn judge(&mut self, step: &Step, known: Known<'_>) -> Verdict {
        match self.judge_input(&step.input, known) {
            Verdict::Valid(_) => {}
            other => return other,
        }
        let effects = self.run(&step.input);
        if effects == step.effects { Verdict::Valid(effects) } else { Verdict::Faulty }
    }

    fn judge_input(&self, input: &Input, known: Known<'_>) -> Verdict {
        let is_fine = match input {
            Input::Message { from, counter, message } => {
                let mut waiting = self.inbox.get(from).into_iter().flatten();
                let is_it = |it: &(u64, Vec<u8>)| it.0 == *counter && it.1 == *message;
                match waiting.next() {
                    // The step that this refers to may come.
                    None => return Verdict::Wait,
                    Some(first) => is_it(first),
                }
            }
            Input::Timeout { timer } => self.armed.contains_key(timer),
            Input::Request(request) => is_genuine(request, known),
        };
        if is_fine { Verdict::Valid(Vec::new()) } else { Verdict::Faulty }
    }

    /// Whether a step at this counter would not be kept, for there is one or none is taken.
    pub(crate) fn knows(&self, counter: u64) -> bool {
        self.is_faulty || counter <= self.taken || self.steps.has(counter)
    }

    /// The counter up to which no step is missing. Nothing is missing of a stream of which nothing
    /// more is taken.
    pub(crate) fn held(&self) -> u64 {
        if self.is_faulty { u64::MAX } else { self.steps.held() }
    }

    /// Its node is a liar: nothing more is taken of it, and no message waits for it.
    pub(crate) fn end(&mut self) {
        self.is_faulty = true;
        self.inbox.clear();
    }

    /// Whether a step at this counter would be kept.
    pub(crate) fn wants(&self, counter: u64) -> bool {
        let ahead = || counter - self.taken;
        !self.knows(counter)
            && (ahead() == 1 || (ahead() <= AHEAD && self.steps.waiting() < AHEAD_BYTES))
    }

    /// Keeps an authentic step.
    pub(crate) fn put(&mut self, counter: u64, step: Attested, now: Ticks) {
        if self.wants(counter) {
            self.steps.put(counter, step, now);
        }
    }

    /// The step after those that were taken.
    pub(crate) fn next(&self) -> Option<(u64, &Attested)> {
        self.steps.at(self.taken.checked_add(1)?)
    }

    /// A step was taken; keeps so many bytes of them.
    pub(crate) fn took(&mut self, counter: u64, bytes_max: usize) {
        self.taken = counter;
        self.steps.took(counter, bytes_max);
    }

    /// The steps that are kept.
    #[cfg(feature = "sim")]
    pub(crate) fn kept(&self) -> impl Iterator<Item = (&u64, &Attested)> {
        self.steps.all()
    }

    /// Steps for a node that asks, of so many bytes.
    pub(crate) fn missing(&mut self, lack: Lack, bytes_max: usize) -> Vec<Attested> {
        self.steps.missing(lack, bytes_max)
    }
}

/// Runs a handler.
pub(crate) fn run(machine: &mut impl Protocol, input: &Input) -> Vec<Effect> {
    match input {
        Input::Message { from, message, .. } => machine.message(*from, message),
        Input::Timeout { timer } => machine.timeout(*timer),
        Input::Request(it) => machine.request(Caller::of(it), it.number, &it.operation),
    }
}

/// Whether a client of the group has signed this request.
pub(crate) fn is_genuine(request: &Request, Known { group, roots }: Known<'_>) -> bool {
    let key = group.clients.get(&request.client);
    request.operation.len() <= group.options.operation
        && key.is_some_and(|key| request.is_signed_by(key, roots))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Options;

    /// A protocol that has one timer armed from its first message on.
    struct Once;

    impl Protocol for Once {
        fn message(&mut self, _: u32, _: &[u8]) -> Vec<Effect> {
            vec![Effect::Arm { timer: 1, ticks: 5 }]
        }

        fn timeout(&mut self, _: u32) -> Vec<Effect> {
            Vec::new()
        }

        fn request(&mut self, _: Caller, _: u64, _: &[u8]) -> Vec<Effect> {
            Vec::new()
        }
    }

    fn judge(history: &mut History<Once>, input: Input, effects: Vec<Effect>) -> Verdict {
        let step = Step { input, effects };
        history.judge(&step, Known { group: &group(), roots: &KnownRoots::default() })
    }

    fn group() -> Group {
        let (nodes, clients) = (vec![[0; 32]; 3], BTreeMap::new());
        Group { stream: 1, nodes, clients, options: Options::default() }
    }

    fn message(counter: u64, text: &str) -> Input {
        Input::Message { from: 2, counter, message: text.as_bytes().to_vec() }
    }

    /// Two messages of node 2 wait.
    fn waiting() -> History<Once> {
        let mut history = History::new(Once, 3);
        let inbox = [(4, b"one".to_vec()), (6, b"two".to_vec())];
        history.inbox.insert(2, inbox.into_iter().collect());
        history
    }

    fn armed() -> Vec<Effect> {
        vec![Effect::Arm { timer: 1, ticks: 5 }]
    }

    #[test]
    fn messages_are_taken_in_order_and_none_is_left_out() {
        let mut history = waiting();
        assert_eq!(judge(&mut history, message(4, "one"), armed()), Verdict::Valid(armed()));
        assert_eq!(judge(&mut history, message(6, "two"), armed()), Verdict::Valid(armed()));
        assert_eq!(judge(&mut history, message(8, "three"), armed()), Verdict::Wait);
        assert_eq!(judge(&mut waiting(), message(6, "two"), armed()), Verdict::Faulty);
        assert_eq!(judge(&mut waiting(), message(4, "two"), armed()), Verdict::Faulty);
    }

    #[test]
    fn only_a_timer_that_is_armed_runs_out() {
        let mut history = waiting();
        let timeout = || Input::Timeout { timer: 1 };
        assert_eq!(judge(&mut waiting(), timeout(), Vec::new()), Verdict::Faulty);
        judge(&mut history, message(4, "one"), armed());
        assert_eq!(judge(&mut history, timeout(), Vec::new()), Verdict::Valid(Vec::new()));
        assert_eq!(judge(&mut history, timeout(), Vec::new()), Verdict::Faulty);
    }

    #[test]
    fn steps_far_ahead_are_not_kept() {
        let mut history = waiting();
        for counter in [AHEAD, AHEAD + 1] {
            let step = Attested { attestation: [[0; 32]; 2], body: Vec::new() };
            history.put(counter, step, 0);
        }
        assert!(history.knows(AHEAD) && !history.knows(AHEAD + 1));
    }

    // Once, a liar whose step waits for a message that was never sent filled the memory of others.
    #[test]
    fn long_steps_that_wait_for_an_earlier_one_are_kept_up_to_a_bound() {
        let mut history = waiting();
        let step = |_| Attested { attestation: [[0; 32]; 2], body: vec![0; AHEAD_BYTES / 4] };
        (2..9).for_each(|counter| history.put(counter, step(counter), 0));
        let kept = |history: &History<Once>| (1..9).filter(|it| history.knows(*it)).count();
        assert_eq!(kept(&history), 4);
        history.put(1, step(1), 0);
        assert_eq!(kept(&history), 5, "the next one is always kept");
        history.took(1, AHEAD_BYTES);
        history.took(2, AHEAD_BYTES);
        history.put(6, step(6), 0);
        history.put(7, step(7), 0);
        assert_eq!(kept(&history), 6);
    }

    /// The search finds no harm in these.
    #[test]
    fn an_input_that_was_not_sent_or_is_not_the_first_or_a_timer_that_was_not_armed_is_a_lie() {
        let lies = [message(8, "three"), message(6, "two"), Input::Timeout { timer: 1 }];
        for input in lies {
            let effects = run(&mut Once, &input);
            assert_eq!(judge(&mut waiting(), input, effects), Verdict::Faulty);
        }
    }

    #[test]
    fn effects_that_the_protocol_does_not_have_are_found() {
        assert_eq!(judge(&mut waiting(), message(4, "one"), Vec::new()), Verdict::Faulty);
    }
}
