// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects of messages on a replica: its log needs only those that may change it.

use std::collections::BTreeMap;

use smt_replica::{Asker, Attested, Effect, Request, Service, Standing};

use crate::message::{Message, Status, statement_bytes_max};
use crate::replica::{Output, Replica};

/// How many statements of a stream answer one question: more than a group makes in a tick, so that
/// one that was away catches up under load.
const RESENT: usize = 1024;
/// Bytes from which on no further statement of a stream answers it.
const RESENT_BYTES: usize = 1 << 20;

/// Streams of a question, at most: it is kept until the next tick. A replica has one of some epochs
/// of each device.
const POSITIONS_MAX: usize = 1 << 16;

impl<S: Service> Replica<S> {
    /// The effect of a message. Whatever is taken before it does not turn the two lesser ones into
    /// a change that the group would miss: it is as if the network had lost the message.
    ///
    /// Signatures and MACs come last: a message that is of no use costs no verification.
    pub(crate) fn effect_of(&self, message: &Message) -> Effect {
        match message {
            Message::Status(it) if self.may_ask(it) => Effect::Answer(Asker::Node(it.from)),
            Message::Request(it) => self.effect_of_request(it),
            Message::Statement(it) if self.may_take(it) && self.authenticate(it).is_some() => {
                Effect::Change
            }
            Message::State(it) if self.proved(it).is_some() => Effect::Change,
            Message::Status(_) | Message::Statement(_) | Message::State(_) | Message::Reply(_) => {
                Effect::Nothing
            }
        }
    }

    /// A request that was executed has its answer again, and one that never will be is refused. An
    /// asker has one answer in each tick: a client has as many as the table keeps, and refusals of
    /// as many requests of each session as may be in progress.
    fn effect_of_request(&self, request: &Request) -> Effect {
        let (client, number) = (request.client, request.number);
        match self.ledger.standing(request) {
            Standing::Answered(_) => Effect::Answer(Asker::Executed(client, number)),
            Standing::Refused(refusal) if self.is_genuine(request) => {
                Effect::Answer(Asker::Refused(self.ledger.refusal_place(request, &refusal)))
            }
            Standing::New if self.is_wanted(request) && self.is_genuine(request) => Effect::Change,
            Standing::New | Standing::Refused(_) => Effect::Nothing,
        }
    }

    /// Whether another replica of the group asks.
    fn may_ask(&self, status: &Status) -> bool {
        let is_other = status.from < self.group.replicas && status.from != self.own;
        is_other && status.positions.len() <= POSITIONS_MAX
    }

    /// Whether a statement is no longer than those of correct replicas. A longer one would take the
    /// memory and the disks of all.
    pub(crate) fn fits(&self, statement: &Attested) -> bool {
        statement.body.len() <= statement_bytes_max(&self.group.options)
    }

    /// Whether a statement, if it is authentic, changes anything now or later. One of a stream that
    /// is not followed changes nothing, but for a vote, which is heard before its turn.
    pub(crate) fn may_take(&self, statement: &Attested) -> bool {
        let Some(header) = statement.attestation().claim().filter(|_| self.fits(statement)) else {
            return false;
        };
        let (device, epoch) = (header.device.0, header.epoch.0);
        if (device, epoch) == self.own_key() || device >= self.group.replicas {
            return false;
        }
        let is_for_stream = match self.streams.get(&(device, epoch)) {
            Some(stream) => stream.lacks(header.counter, statement.body.len()),
            None => self.may_follow((device, epoch), header.counter, statement),
        };
        is_for_stream || self.new_ballot(&header, statement).is_some()
    }

    /// A refusal needs no more of its request than the digest.
    pub(crate) fn shortened(&self, message: Message) -> Message {
        match message {
            Message::Request(request) => match self.ledger.standing(&request) {
                Standing::Refused(it) => Message::Reply(self.reply_to(&request, Err(it))),
                Standing::Answered(_) | Standing::New => Message::Request(request),
            },
            other => other,
        }
    }

    /// The answer to what can be answered without a change, or to what is left of it. Replies of
    /// others have no effect, and do not come here.
    pub(crate) fn answer(&self, message: &Message, may_be_long: bool) -> Vec<Output> {
        match message {
            Message::Status(status) if self.may_ask(status) => self.missing(status, may_be_long),
            Message::Request(request) => match self.ledger.standing(request) {
                Standing::Answered(it) => {
                    vec![self.signed_reply(self.reply_to(request, Ok(it.clone())))]
                }
                Standing::Refused(it) => {
                    vec![self.signed_reply(self.reply_to(request, Err(it)))]
                }
                Standing::New => Vec::new(),
            },
            Message::Reply(refusal) => vec![self.signed_reply(refusal.clone())],
            Message::Status(_) | Message::Statement(_) | Message::State(_) => Vec::new(),
        }
    }

    /// All that another replica says that it lacks, of all streams: a liar that speaks to some only
    /// is heard by all.
    fn missing(&self, status: &Status, with_state: bool) -> Vec<Output> {
        let known: BTreeMap<_, _> =
            status.positions.iter().map(|(device, epoch, at)| ((*device, *epoch), *at)).collect();
        let to = |message: Message| Output::Node(status.from, message.encode());
        let mut outputs = Vec::new();
        for (key, stream) in &self.streams {
            let at = known.get(key).copied().unwrap_or(0);
            let mut bytes = 0;
            for statement in stream.after(at, RESENT) {
                bytes += statement.body.len();
                outputs.push(to(Message::Statement(statement.clone())));
                if bytes >= RESENT_BYTES {
                    break;
                }
            }
        }
        let has_state = with_state && self.lacks_state(status);
        let state = has_state.then(|| self.state_for_others()).flatten();
        outputs.extend(state.map(to));
        outputs
    }

    /// Whether another replica needs the state: it says so, or the next statement of a stream that
    /// it follows is not kept here any more.
    pub(crate) fn lacks_state(&self, status: &Status) -> bool {
        let can_go_on = |it: &(u32, u64, u64)| {
            let stream = self.streams.get(&(it.0, it.1));
            stream.is_none_or(|stream| stream.can_go_on_from(it.2))
        };
        status.wants_state || !status.positions.iter().all(can_go_on)
    }
}
