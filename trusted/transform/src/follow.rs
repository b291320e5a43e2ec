// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The steps of all nodes as one follows them: taken when they are valid, and their messages and
//! replies delivered.

use smt_replica::{Attested, Digest, Proof, Reply};

use crate::history::{Known, Verdict};
use crate::message::{Input, Message, Step, decode};
use crate::node::{Node, Output};
use crate::protocol::{Effect, Protocol};

impl<P: Protocol> Node<P> {
    pub(crate) fn take_step(&mut self, step: Attested) {
        if let Some(claim) = step.attestation().claim()
            && let Some(history) = self.histories.get_mut(claim.device.0 as usize)
        {
            history.put(claim.counter, step, self.now);
        }
    }

    /// Takes what can be taken from all streams.
    pub(crate) fn take_steps(&mut self) {
        loop {
            let mut took = false;
            for device in 0..self.group.size() {
                while device != self.own && self.take_next(device) {
                    took = true;
                }
            }
            if !took {
                return;
            }
        }
    }

    fn take_next(&mut self, device: u32) -> bool {
        let (group, roots) = (self.group.clone(), &self.roots);
        let history = &mut self.histories[device as usize];
        let next = history.next().filter(|_| !history.is_faulty);
        let Some((counter, step)) = next.map(|it| (it.0, decode::<Step>(&it.1.body))) else {
            return false;
        };
        let verdict = match step {
            None => Verdict::Faulty,
            Some(ref step) => history.judge(step, Known { group: &group, roots }),
        };
        match verdict {
            Verdict::Wait => false,
            Verdict::Faulty => {
                history.end();
                false
            }
            Verdict::Valid(effects) => {
                history.took(counter, group.options.retained);
                if let Some(Input::Request(request)) = step.map(|it| it.input) {
                    self.calls.begin(&request);
                }
                self.follow(device, counter, effects);
                true
            }
        }
    }

    /// Delivers the messages of a valid step, and endorses its replies.
    pub(crate) fn follow(&mut self, device: u32, counter: u64, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } if to < self.group.size() && to != device => {
                    let receiver = &mut self.histories[to as usize];
                    if !receiver.is_faulty {
                        let waiting = receiver.inbox.entry(device).or_default();
                        waiting.push_back((counter, message));
                    }
                }
                Effect::Reply { caller, number, answer } => {
                    self.unanswered.remove(&caller.client);
                    if let Some(request) = self.calls.end(caller, number, &answer)
                        && !self.is_silent
                    {
                        let client = caller.client;
                        let endorsement = self.endorsement(client, (number, request), answer);
                        self.outputs.push(Output::Client(client, endorsement));
                    }
                }
                Effect::Send { .. } | Effect::Arm { .. } | Effect::Disarm { .. } => {}
            }
        }
    }

    /// The word of this node on the answer to a request with this number and digest.
    pub(crate) fn endorsement(
        &self,
        client: u32,
        (number, request): (u64, Digest),
        answer: Vec<u8>,
    ) -> Vec<u8> {
        let (result, proof) = (Ok(answer), Proof::default());
        let it = Reply { replica: self.own, view: 0, client, number, request, result, proof };
        Message::Endorsement(it.sign(&self.key)).encode()
    }
}
