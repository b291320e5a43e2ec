// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages and of time on a node: its log needs only those that change it.

use smt_attestation::Kind;
use smt_replica::{Asker, Attested, Effect};

use crate::group::EPOCH;
use crate::history::{History, is_genuine};
use crate::message::{Message, Request, Status};
use crate::node::{Node, Output};
use crate::protocol::Protocol;
use crate::steps::Lack;

/// How many requests of a client are taken in a tick, until one of it has a reply.
const UNANSWERED: u32 = 4;

impl<P: Protocol> Node<P> {
    /// The effect of a message. Whatever is taken before it does not turn the two lesser ones into
    /// a change that the group would miss: it is as if the network had lost the message. A client's
    /// requests without a reply are steps each, and beyond some in a tick they have no effect: no
    /// step says how often a client asked, so that only the node itself can refuse them.
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

    fn effect_of_request(&mut self, request: &Request) -> Effect {
        let is_answered = self.answer_to(request).is_some();
        // An answer is signed anew, and those who have not signed the request get none.
        let is_of_use = is_answered || self.is_new(request);
        if !is_of_use || !self.is_genuine(request) {
            return Effect::Nothing;
        }
        if is_answered {
            return Effect::Answer(Asker::Executed(request.client, request.number));
        }
        let count = self.unanswered.entry(request.client).or_default();
        if *count == UNANSWERED {
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
                let reply = self.answer_to(request).map(|it| (request.number, it.clone()));
                let endorsement = reply.map(|it| self.endorsement(request.client, it));
                Vec::from_iter(endorsement)
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
        self.genuine.get(&request.client) == Some(request) || is_genuine(request, &self.group)
    }

    /// The answer that was found valid before.
    fn answer_to(&self, request: &Request) -> Option<&Vec<u8>> {
        self.replies.get(&request.client)?.get(&request.number)
    }

    /// Whether a request may be a step. One that was a step already, and has no reply, is a step
    /// again: the node that was to reply may have stopped. [`Node::effect_of`] bounds how often.
    pub(crate) fn is_new(&self, request: &Request) -> bool {
        let client = request.client;
        let done = self.histories[self.own as usize].requested.get(&client).copied();
        let waiting = self.requests.get(&client).map(|it| it.number);
        done.is_none_or(|it| it <= request.number) && waiting.is_none_or(|it| it < request.number)
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
