// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages and of time on a node: its log needs only those that change it.

use smt_bft::Service;

use crate::message::{Message, Status};
use crate::node::{Node, Output};

/// How many statements of a stream answer one question.
const RESENT: usize = 64;

/// The most that comes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    /// Nothing, now or later.
    Nothing,
    /// An answer ([`Node::answer`]), and no change.
    Answer,
    /// A change.
    Change,
}

impl<S: Service + Clone> Node<S> {
    /// The effect of a message. Whatever is taken before it does not turn the two lesser ones into
    /// a change that the group would miss: it is as if the network had lost the message.
    pub(crate) fn effect_of(&self, message: &Message) -> Effect {
        match message {
            Message::Reply(_) => Effect::Nothing,
            Message::Status(_) => Effect::Answer,
            Message::Made(it) if self.is_news(it) => Effect::Change,
            Message::Made(_) => Effect::Nothing,
            Message::Request(it) if !self.is_genuine(it) => Effect::Nothing,
            Message::Request(it) if self.is_done(it) => Effect::Answer,
            Message::Request(it) if self.is_wanted(it) => Effect::Change,
            Message::Request(_) => Effect::Nothing,
            Message::Statement(it) => match self.authenticate(it) {
                Some((node, counter)) if node != self.own => {
                    let lacks = self.streams[node as usize].lacks(counter);
                    if lacks { Effect::Change } else { Effect::Nothing }
                }
                _ => Effect::Nothing,
            },
        }
    }

    /// Whether a tick changes nothing.
    pub(crate) fn is_idle(&self) -> bool {
        let track = self.own_track();
        self.pending.is_empty() && self.waited == 0 && track.at.0 >= track.promised
    }

    /// Answers what can be answered without a change.
    pub(crate) fn answer(&mut self, message: &Message) {
        match message {
            Message::Status(status) => self.send_missing(status),
            Message::Request(request) => self.repeat_reply(request),
            Message::Reply(_) | Message::Statement(_) | Message::Made(_) => {}
        }
    }

    /// Sends to another node what it says that it lacks: the newest configuration, and statements
    /// of all streams.
    fn send_missing(&mut self, status: &Status) {
        if status.from >= self.group.replicas || status.from == self.own {
            return;
        }
        let made = self.made().filter(|it| it.number > status.newest).cloned();
        let mut missing = Vec::from_iter(made.map(Message::Made));
        for (node, stream) in (0..).zip(&self.streams).filter(|it| it.0 != status.from) {
            let at = status.counters.get(node as usize).copied().unwrap_or(0);
            missing.extend(stream.after(at, RESENT).cloned().map(Message::Statement));
        }
        let outputs = missing.iter().map(|it| Output::Node(status.from, it.encode()));
        self.outputs.extend(outputs);
    }
}
