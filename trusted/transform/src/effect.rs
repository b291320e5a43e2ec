// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages and of time on a node: its log needs only those that change it.

use smt_attestation::Kind;
use smt_replica::{Asker, Attested, Effect, IN_PROGRESS_MAX, Request};

use crate::caller::Caller;
use crate::calls::Standing;
use crate::group::EPOCH;
use crate::history::{History, Known, is_genuine};
use crate::message::{Message, Status};
use crate::node::{Node, Output};
use crate::protocol::Protocol;
use crate::steps::Lack;

/// How many requests of a client are let in in a tick, until one of it has a reply.
const UNANSWERED: u32 = IN_PROGRESS_MAX as u32;
/// How many requests of a client are let in in a tick whose answers are no longer kept.
const REPEATED: u32 = 4;

impl<P: Protocol> Node<P> {
    /// The effect of a message. Whatever is taken before it does not turn the two lesser ones into
    /// a change that the group would miss: it is as if the network had lost the message.
    ///
    /// Signatures and MACs come last: a message that is of no use costs no verification.
    pub(crate) fn effect_of(&mut self, message: &Message) -> Effect {
        match message {
            Message::Status(it) if self.may_ask(it) => Effect::Answer(Asker::Node(it.from)),
            Message::Step(it) if self.may_take(it) && self.is_attested(it) => Effect::Change,
            Message::Request(it) => self.effect_of_request(it),
            Message::Status(_) | Message::Step(_) | Message::Endorsement(_) => Effect::Nothing,
        }
    }

    /// A request that was answered has its answer again. A client's requests without a reply are
    /// steps each, and beyond some in a tick they have no effect: no step says how often a client
    /// asked, so that only the node itself can refuse them. Anybody who has seen an old request may
    /// send it again: one whose answer is no longer kept takes no place of the others.
    fn effect_of_request(&mut self, request: &Request) -> Effect {
        let (client, caller) = (request.client, Caller::of(request));
        let standing = self.calls.standing(caller, request.number);
        let is_of_use = match standing {
            Standing::Over => false,
            Standing::Answered => true,
            Standing::Open | Standing::Dropped => self.is_new(request),
        };
        // An answer is signed anew, and those who have not signed the request get none.
        if !is_of_use || !self.is_genuine(request) {
            return Effect::Nothing;
        }
        let (counts, max) = match standing {
            Standing::Open => (&mut self.unanswered, UNANSWERED),
            Standing::Dropped => (&mut self.repeated, REPEATED),
            Standing::Answered | Standing::Over => {
                return Effect::Answer(Asker::Executed(client, number_of(caller, request.number)));
            }
        };
        let count = counts.entry(client).or_default();
        if *count == max {
            return Effect::Nothing;
        }
        *count += 1;
        Effect::Change
    }

    /// Whether a tick does nothing but ask the others.
    pub(crate) fn is_idle(&self) -> bool {
        self.histories[self.own as usize].armed.is_empty()
    }

    /// The answer to what can be answered without a change. The node notes alone when it has sent
    /// a step, and nothing depends on that but when the step is sent again.
    pub(crate) fn answer(&mut self, message: &Message) -> Vec<Output> {
        match message {
            Message::Status(status) if self.may_ask(status) => self.missing(status),
            Message::Request(request) => {
                let (client, number) = (request.client, request.number);
                let answered = self.calls.answered(Caller::of(request), number);
                let endorsement = answered.map(|(digest, answer)| {
                    self.endorsement(client, (number, digest), answer.clone())
                });
                Vec::from_iter(endorsement.map(|it| Output::Client(client, it)))
            }
            Message::Status(_) | Message::Step(_) | Message::Endorsement(_) => Vec::new(),
        }
    }

    /// Whether a step, if it is authentic, is wanted. One that comes again costs no MAC. A forged
    /// one that is taken for it is not kept either. A device that has restarted has forgotten what
    /// it said: it has stopped.
    pub(crate) fn may_take(&self, step: &Attested) -> bool {
        step.attestation().claim().is_some_and(|it| {
            let history = self.histories.get(it.device.0 as usize);
            let is_step = it.kind == Kind::Message && it.epoch == EPOCH;
            let is_of_other = it.device.0 != self.own && is_step;
            is_of_other && history.is_some_and(|history| history.wants(it.counter))
        })
    }

    /// Whether a device of the group has attested a step.
    fn is_attested(&self, step: &Attested) -> bool {
        // `check`, not `accept`: steps come out of order, and `History` keeps their order.
        self.device.check(&step.attestation(), &step.body).is_some()
    }

    /// Whether another node of the group asks.
    fn may_ask(&self, status: &Status) -> bool {
        let is_other = status.from < self.group.size() && status.from != self.own;
        is_other && status.held.len() == self.histories.len()
    }

    /// Whether a client of the group has signed this. One that comes again costs no signature.
    fn is_genuine(&self, request: &Request) -> bool {
        is_genuine(request, Known { group: &self.group, roots: &self.roots })
    }

    /// Whether a request may be a step, which is not over. One that was a step already, and has no
    /// reply, is a step again: the node that was to reply may have stopped. [`Node::effect_of`]
    /// bounds how often.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        let waiting = self.requests.get(&Caller::of(request)).map(|it| it.number);
        waiting.is_none_or(|it| it < request.number)
    }

    /// The counters up to which the node has all streams, which asks for what is missing.
    pub(crate) fn question(&self) -> Output {
        let held = self.histories.iter().map(History::held).collect();
        Output::Nodes(Message::Status(Status { from: self.own, held }).encode())
    }

    /// All that another node lacks, of all streams: a liar that speaks to some only is heard by
    /// all. A step that was sent just before is on its way, and is not sent again.
    fn missing(&mut self, status: &Status) -> Vec<Output> {
        let bytes_max = self.group.options.resend;
        let mut outputs = Vec::new();
        for (device, held) in (0..).zip(&status.held).filter(|it| it.0 != status.from) {
            let lack = Lack { node: status.from, held: *held, now: self.now };
            let missing = self.histories[device as usize].missing(lack, bytes_max);
            let steps = missing.into_iter().map(|it| Message::Step(it).encode());
            outputs.extend(steps.map(|it| Output::Node(status.from, it)));
        }
        outputs
    }
}

/// A number for a request among those of a client whose answers are kept.
fn number_of(caller: Caller, number: u64) -> u64 {
    let process = caller.process.first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
    process.wrapping_add(number)
}
