// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages and of time on a node: its log needs only those that change it.

use smt_attestor::Attested;
use smt_replica::{Asker, Effect, Request, Service, Standing};

use crate::message::{Message, Status};
use crate::node::{Node, Output};

/// Bytes of a statement beside those of an operation, at most: an ORDER has 150 of them, and an
/// OPEN of nine nodes 250.
const BODY_REST: usize = 1024;
/// How many statements of a stream answer one question: more than a group makes in a tick, so that
/// one that was away catches up under load.
const RESENT: usize = 1024;
/// Bytes from which on no further statement of a stream answers it. Each stream has its own, since
/// the next statement of one may wait for a statement of another.
const RESENT_BYTES: usize = 1 << 20;

impl<S: Service + Clone> Node<S> {
    /// The effect of a message. Whatever is taken before it does not turn the two lesser ones into
    /// a change that the group would miss: it is as if the network had lost the message.
    ///
    /// Signatures and MACs come last: a message that is of no use costs no verification.
    pub(crate) fn effect_of(&self, message: &Message) -> Effect {
        match message {
            Message::Status(it) if self.may_ask(it) => Effect::Answer(Asker::Node(it.from)),
            Message::Made(it) if self.is_news(it) => Effect::Change,
            Message::Request(it) => self.effect_of_request(it),
            Message::Statement(it) if self.may_take(it) && self.is_attested(it) => Effect::Change,
            Message::Status(_) | Message::Made(_) | Message::Statement(_) | Message::Reply(_) => {
                Effect::Nothing
            }
        }
    }

    /// A request that was answered has its answer again, and one that never will be executed is
    /// refused. An asker has one answer in each tick: a client has as many as the table keeps,
    /// and refusals of as many requests of each session as may be in progress.
    fn effect_of_request(&self, request: &Request) -> Effect {
        let (client, number) = (request.client, request.number);
        match self.standing(request) {
            Some(Standing::Answered(_)) => Effect::Answer(Asker::Executed(client, number)),
            Some(Standing::Refused(refusal)) if self.is_genuine(request) => {
                Effect::Answer(Asker::Refused(self.answered.refusal_place(request, &refusal)))
            }
            None if self.is_wanted(request) && self.is_genuine(request) => Effect::Change,
            Some(_) | None => Effect::Nothing,
        }
    }

    /// Whether another node of the group asks.
    fn may_ask(&self, status: &Status) -> bool {
        let nodes = self.group.replicas;
        let is_other = status.from < nodes && status.from != self.own;
        is_other && status.counters.len() <= nodes as usize
    }

    /// Whether a statement, if it is authentic, is of a member, may still be taken and is not here.
    /// One that is longer than any of a correct node would take the memory and the disks of all.
    pub(crate) fn may_take(&self, statement: &Attested) -> bool {
        let bytes_max = self.group.options.operation.saturating_add(BODY_REST);
        let claim = statement.attestation().claim();
        let Some(header) = claim.filter(|_| statement.body.len() <= bytes_max) else {
            return false;
        };
        let (place, own) = (header.device.0 as usize, self.own as usize);
        let is_member = self.group.epochs.get(place) == Some(&header.epoch.0) && place != own;
        let stream = self.streams.get(place).filter(|_| is_member);
        stream.is_some_and(|it| it.lacks(header.counter, statement.body.len()))
    }

    /// Whether a device of the group has attested a statement.
    fn is_attested(&self, it: &Attested) -> bool {
        self.device.check(&it.attestation(), &it.body).is_some()
    }

    /// Whether a tick changes nothing.
    pub(crate) fn is_idle(&self) -> bool {
        let track = self.own_track();
        self.pending.is_empty() && self.waited == 0 && track.at.0 >= track.promised
    }

    /// The question to all others, for what is missing here.
    pub(crate) fn question(&self) -> Output {
        let counters = self.streams.iter().map(|it| it.track.counter).collect();
        let status = Status { from: self.own, counters, newest: self.newest() };
        Output::Nodes(Message::Status(status).encode())
    }

    /// A refusal needs no more of its request than the digest.
    pub(crate) fn shortened(&self, message: Message) -> Message {
        match message {
            Message::Request(request) => match self.standing(&request) {
                Some(Standing::Refused(it)) => Message::Reply(self.reply_to(&request, Err(it))),
                _ => Message::Request(request),
            },
            other => other,
        }
    }

    /// The answer to what can be answered without a change, or to what is left of it. Replies of
    /// others have no effect, and do not come here.
    pub(crate) fn answer(&self, message: &Message) -> Vec<Output> {
        match message {
            Message::Status(status) if self.may_ask(status) => self.missing(status),
            Message::Request(request) => Vec::from_iter(self.repeated_reply(request)),
            Message::Reply(refusal) => vec![self.signed_reply(refusal.clone())],
            Message::Status(_) | Message::Statement(_) | Message::Made(_) => Vec::new(),
        }
    }

    /// All that another node says that it lacks: the newest configuration, and the next statements
    /// of all streams.
    fn missing(&self, status: &Status) -> Vec<Output> {
        let to = |message: Message| Output::Node(status.from, message.encode());
        let made = self.made().filter(|it| it.number > status.newest).cloned();
        let mut outputs = Vec::from_iter(made.map(|it| to(Message::Made(it))));
        for (node, stream) in (0..).zip(&self.streams).filter(|it| it.0 != status.from) {
            let at = status.counters.get(node as usize).copied().unwrap_or(0);
            let mut bytes = 0;
            for statement in stream.after(at, RESENT) {
                bytes += statement.body.len();
                outputs.push(to(Message::Statement(statement.clone())));
                if bytes >= RESENT_BYTES {
                    break;
                }
            }
        }
        outputs
    }
}
