// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The consequences of messages and of time for a node: its log needs only those that change it.

use crate::history::{History, is_genuine};
use crate::message::{Attested, Message, Request, Status};
use crate::node::{Node, Output};
use crate::protocol::Protocol;
use crate::steps::Asker;

/// A node or a client that asks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Party {
    Node(u32),
    Client(u32),
}

/// The most that comes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Consequence {
    /// Nothing, now or later.
    Nothing,
    /// An answer ([`Node::answer`]), and no change.
    Answer(Party),
    /// A change ([`Node::take`]).
    Change,
}

impl<P: Protocol> Node<P> {
    /// The consequence of a message. Whatever is taken before it does not turn the two lesser ones
    /// into a change that the group would miss: it is as if the network had lost the message.
    ///
    /// Signatures and MACs come last: a message that is of no use costs no verification.
    pub(crate) fn consequence_of(&self, message: &Message) -> Consequence {
        match message {
            Message::Status(it) if self.may_ask(it) => Consequence::Answer(Party::Node(it.from)),
            Message::Step(it) if self.lacks(it) && self.authenticate(it).is_some() => {
                Consequence::Change
            }
            // An answer is signed anew, and those who have not signed the request get none.
            Message::Request(it) if self.answer_to(it).is_some() => match self.is_genuine(it) {
                true => Consequence::Answer(Party::Client(it.client)),
                false => Consequence::Nothing,
            },
            Message::Request(it) if self.is_new(it) && self.is_genuine(it) => Consequence::Change,
            Message::Status(_)
            | Message::Step(_)
            | Message::Request(_)
            | Message::Endorsement(_) => Consequence::Nothing,
        }
    }

    /// Whether a tick does nothing but ask the others.
    pub(crate) fn is_idle(&self) -> bool {
        self.histories[self.own as usize].armed.is_empty()
    }

    /// The answer to what can be answered without a change. The node notes alone when it has sent
    /// a step, and nothing depends on that but when the step is sent again.
    pub(crate) fn answer(&mut self, message: &Message) {
        match message {
            Message::Status(status) if self.may_ask(status) => self.send_missing(status),
            Message::Request(request) => {
                if let Some(answer) = self.answer_to(request).cloned() {
                    self.endorse(request.client, request.number, answer);
                }
            }
            Message::Status(_) | Message::Step(_) | Message::Endorsement(_) => {}
        }
    }

    /// Whether a step, if it is authentic, is wanted. One that comes again costs no MAC. A forged
    /// one that is taken for it is not kept either.
    fn lacks(&self, step: &Attested) -> bool {
        step.attestation().claim().is_some_and(|it| {
            let history = self.histories.get(it.device.0 as usize);
            it.device.0 != self.own && history.is_some_and(|history| history.wants(it.counter))
        })
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
    /// again: the node that was to reply may have stopped. [`Node::let_in`] bounds how often.
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

    /// Sends to another node what it lacks, of all streams: a liar that speaks to some only is
    /// heard by all. A step that was sent just before is on its way, and is not sent again.
    fn send_missing(&mut self, status: &Status) {
        let bytes_max = self.group.options.resend;
        for (device, held) in (0..).zip(&status.held).filter(|it| it.0 != status.from) {
            let asker = Asker { node: status.from, held: *held, now: self.now };
            let missing = self.histories[device as usize].missing(asker, bytes_max);
            let steps = missing.into_iter().map(|it| Message::Step(it).encode());
            self.outputs.extend(steps.map(|it| Output::Node(status.from, it)));
        }
    }
}
