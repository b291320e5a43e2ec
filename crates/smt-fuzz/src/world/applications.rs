// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two applications: their actions, and their view of their endpoints.

use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CallOptions, CloseCode, Refused, RpcId};
use smt_wire::SessionIndex;

use super::World;
use super::ledger::Name;
use super::message::{Answer, Kind, Message, Plan};
use super::parts::HasParts;

impl World {
    /// Sends a message; its name, if it was taken.
    pub(crate) fn send_message(
        &mut self,
        node: usize,
        size: usize,
        kind: Kind,
        patience: Option<Duration>,
    ) -> Option<Name> {
        self.begin_message(node, size, (kind, None), patience)
    }

    /// Begins a call in parts; its name, if it was taken.
    pub(crate) fn call_in_parts(
        &mut self,
        node: usize,
        size: usize,
        plan: Plan,
        has_parts: HasParts,
    ) -> Option<Name> {
        self.begin_message(node, size, (Kind::Request(plan), Some(has_parts)), None)
    }

    fn begin_message(
        &mut self,
        node: usize,
        size: usize,
        (kind, has_parts): (Kind, Option<HasParts>),
        patience: Option<Duration>,
    ) -> Option<Name> {
        let session = self.newest(node)?;
        if self.ledger.messages.len() >= MESSAGES_MAX && self.honest_since.is_none() {
            return None;
        }
        let body = self.body(size);
        let (now, endpoint) = (self.now, &mut self.nodes[node].endpoint);
        let begun = match (kind, has_parts) {
            (Kind::OneWay, _) => endpoint.send_one_way(now, session, body.clone(), patience),
            (Kind::Request(_), None) => endpoint.call(now, session, body.clone(), patience),
            (Kind::Request(_), Some(has_parts)) => {
                let options = CallOptions { deadline: patience, parts: has_parts.marks() };
                endpoint.call_in_parts(now, session, body.clone(), options)
            }
        };
        let facts = endpoint.session(session).expect("it lives");
        let name = match begun {
            Ok(rpc) => {
                let deadline = patience.map(|patience| now + patience);
                let mut message = Message::new(node, body, kind, deadline);
                if let Some(has_parts) = has_parts {
                    message = message.in_parts(has_parts);
                }
                self.ledger.sent(rpc, message);
                Some(self.ledger.name(node, rpc))
            }
            Err(Refused::Blocked) => {
                self.ledger.blocked.insert((node, session));
                None
            }
            Err(Refused::TooLarge { length, limit }) => {
                assert_eq!((length, limit), (size, facts.message_max));
                assert!(size > limit as usize);
                None
            }
            Err(Refused::NoParts) => {
                let takes_parts = self.configs.iter().all(|config| config.part_window > 0);
                assert!(has_parts.is_some() && !takes_parts);
                None
            }
            Err(other) => panic!("a live session refuses: {other}"),
        };
        self.settle();
        name
    }

    /// Gives up a message, live or not.
    pub(crate) fn cancel(&mut self, which: usize) {
        let Some(name) = nth(self.ledger.messages.keys(), which) else {
            return;
        };
        let message = self.ledger.messages.get_mut(&name).expect("just found");
        let from = message.from;
        let rpc = self.ledger.rpc(from, name);
        let was_live = self.nodes[from].endpoint.cancel(self.now, rpc);
        let message = self.ledger.messages.get_mut(&name).expect("just found");
        message.cancel(was_live);
        self.settle();
    }

    /// Answers a request that waits for it. Whether there was one.
    pub(crate) fn answer(&mut self, which: usize, plan: Plan) -> bool {
        let held = self.ledger.messages.iter();
        let held = held.filter(|(_, message)| message.is_worked_on());
        let Some(name) = nth(held.map(|(name, _)| name), which) else {
            return false;
        };
        let node = 1 - self.ledger.messages[&name].from;
        self.answer_by_plan(node, self.ledger.rpc(node, name), plan);
        self.settle();
        true
    }

    /// Closes the newest session of a node.
    pub(crate) fn close(&mut self, node: usize) {
        if let Some(session) = self.newest(node) {
            self.ledger.closed.insert((node, session));
            self.nodes[node].endpoint.close(session, CloseCode::Done);
            self.settle();
        }
    }

    /// Does with a request what was planned.
    pub(super) fn answer_by_plan(&mut self, node: usize, rpc: RpcId, plan: Plan) {
        let plan = match plan {
            // No later step answers a held request.
            Plan::Hold if self.honest_since.is_some() => Plan::Reply(100),
            plan => plan,
        };
        let name = self.ledger.name(node, rpc);
        let (now, body) = (self.now, self.body(planned_size(plan)));
        let endpoint = &mut self.nodes[node].endpoint;
        let (answer, taken) = match plan {
            Plan::Hold => return,
            Plan::Reply(_) => {
                let most = endpoint.session(rpc.session).map(|facts| facts.message_max);
                let body = body.slice(..body.len().min(most.unwrap_or(0) as usize));
                let taken = endpoint.reply(now, rpc, body.clone());
                (Answer::Reply(body), taken)
            }
            Plan::Abort(code) => (Answer::Abort(code), endpoint.abort(now, rpc, code)),
        };
        let message = self.ledger.messages.get_mut(&name).expect("it was sent");
        match taken {
            Ok(()) => message.answer = answer,
            // The event that says so waits behind the request's.
            Err(Refused::NoRpc | Refused::NoSession) => {}
            Err(other) => panic!("a request cannot be answered: {other}"),
        }
    }

    /// The newest live session of a node.
    pub(crate) fn newest(&self, node: usize) -> Option<SessionIndex> {
        let newest = self.ledger.begun[node].last().copied()?;
        let has_ended = self.ledger.ended.contains_key(&(node, newest));
        let lives = self.nodes[node].endpoint.session(newest).is_some();
        assert!(lives || has_ended, "a session vanished");
        (!has_ended).then_some(newest)
    }

    /// A deadline is told of to the grain of the timers, a millisecond, or when the peer has
    /// answered CANCEL, for which 10 ms are waited at most (SPEC §9.7-3).
    pub(super) fn check_deadlines(&self) {
        let late = self.ledger.deadline().map(|deadline| self.now.since(deadline));
        let late = late.unwrap_or_default();
        assert!(late <= Duration::from_millis(11), "{late:?} past a deadline");
    }

    /// Memory follows what was really sent, whatever packets claim (design rule 5).
    pub(crate) fn check_memory(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            let held = node.endpoint.memory();
            if held == 0 {
                continue;
            }
            let mut most = EARLY_PER_SESSION * node.endpoint.sessions_len();
            // Parts may outlive their call, incomplete.
            for message in self.ledger.messages.values() {
                let is_reader = [message.from != number, message.from == number];
                for (parts, _) in message.parts.iter().zip(is_reader).filter(|of| of.1) {
                    most += parts.waiting().map(|size| cost(size) + 512).sum::<usize>();
                }
            }
            for message in self.ledger.live() {
                if message.from != number && !message.is_delivered {
                    most += cost(message.body.len());
                }
                if let (true, Answer::Reply(reply)) = (message.from == number, &message.answer) {
                    most += cost(reply.len());
                }
            }
            assert!(held <= most, "node {number} holds {held} bytes, at most {most} were sent");
        }
    }

    /// Bytes that no other message has, if there is room for a number.
    pub(super) fn body(&mut self, size: usize) -> Bytes {
        self.serial += 1;
        let mut state = self.serial.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            bytes.extend_from_slice(&state.to_be_bytes());
            state = state.rotate_left(23).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        }
        bytes.truncate(size);
        bytes.into()
    }
}

fn planned_size(plan: Plan) -> usize {
    match plan {
        Plan::Reply(size) => size,
        Plan::Abort(_) | Plan::Hold => 0,
    }
}

pub(super) fn nth<'a>(names: impl Iterator<Item = &'a Name>, which: usize) -> Option<Name> {
    let names: Vec<Name> = names.copied().collect();
    names.get(which % names.len().max(1)).copied()
}

/// Memory that a message of this size may hold while it is incomplete: a body that grows by
/// doubling, and each record in parts under up to three epochs, padded by an eighth and a block.
fn cost(size: usize) -> usize {
    let padded = size + 40 + size / 8 + 256;
    let records = 1 + padded / 64;
    2 * size + 64 + 3 * (padded + 22 * records)
}

/// More messages than the ids of all stripes' windows; others would only cost time.
const MESSAGES_MAX: usize = 400;
/// The pool for packets whose record 0 has not come (SPEC §10).
const EARLY_PER_SESSION: usize = 256 * 1024;
