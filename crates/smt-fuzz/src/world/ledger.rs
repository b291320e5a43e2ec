// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ledger of both applications: which message is which at the other end, and its fate.
//!
//! A message has the same id at both ends of a session. Which session of one node is which of the
//! other's is known from the client's key log: it names both indices of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use smt_proto::{Event, RpcId, SessionEnd, Time};
use smt_record::{KeyLog, KeyLogEntry, Purpose, Side};
use smt_wire::{MessageId, SessionIndex};

use super::message::{Kind, Message, Plan};

/// The pair of a session, and the message's id.
pub(crate) type Name = (usize, MessageId);

/// Sessions and messages since the beginning.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) pairs: Arc<Pairs>,
    pub(crate) messages: BTreeMap<Name, Message>,
    /// Those that have not ended for their sender, and when they must have.
    live: BTreeSet<Name>,
    deadlines: BTreeSet<(Time, Name)>,
    /// Sessions in the order in which they came to life at each node.
    pub(crate) begun: [Vec<SessionIndex>; 2],
    pub(crate) ended: BTreeMap<(usize, SessionIndex), SessionEnd>,
    /// Where a call was refused for lack of ids, and may not be tried again yet.
    pub(crate) blocked: BTreeSet<(usize, SessionIndex)>,
    /// Sessions that the application closed.
    pub(crate) closed: BTreeSet<(usize, SessionIndex)>,
}

impl Ledger {
    /// Notes a message that was sent.
    pub(crate) fn sent(&mut self, rpc: RpcId, message: Message) {
        let name = self.name(message.from, rpc);
        self.live.insert(name);
        self.deadlines.extend(message.deadline.map(|deadline| (deadline, name)));
        let before = self.messages.insert(name, message);
        assert!(before.is_none(), "an id was issued twice");
    }

    /// Takes what an endpoint says about messages; a request that is to be answered at once is
    /// returned.
    pub(crate) fn take(&mut self, now: Time, node: usize, event: Event) -> Option<(RpcId, Plan)> {
        match event {
            Event::Request { rpc, body, deadline, .. } => {
                let message = self.message(1 - node, node, rpc);
                message.deliver(&body, false);
                assert_eq!(deadline.is_some(), message.deadline.is_some());
                match message.kind {
                    Kind::Request(plan) => return Some((rpc, plan)),
                    Kind::OneWay => unreachable!("`deliver` has compared the kinds"),
                }
            }
            Event::OneWay { rpc, body, .. } => {
                self.message(1 - node, node, rpc).deliver(&body, true)
            }
            Event::Cancelled(rpc) => self.message(1 - node, node, rpc).withdraw(),
            Event::Reply { rpc, body, .. } => {
                self.message(node, node, rpc).replied(&body);
                self.forget(node, rpc);
            }
            Event::CallFailed { rpc, error } => {
                self.message(node, node, rpc).failed(&error, now);
                self.forget(node, rpc);
            }
            Event::OneWayDone { rpc, outcome } => {
                self.message(node, node, rpc).one_way_done(&outcome, now);
                self.forget(node, rpc);
            }
            Event::Unblocked(session) => {
                assert!(self.blocked.remove(&(node, session)), "it was not blocked");
            }
            Event::SessionEnded { session, end } => self.end_session(node, session, end),
            other => unreachable!("the world takes {other:?}"),
        }
        None
    }

    /// The name of the message that `node` calls `rpc`.
    pub(crate) fn name(&self, node: usize, rpc: RpcId) -> Name {
        let pair = self.pairs.of(node, rpc.session);
        (pair.expect("the client's key log names both indices"), rpc.id)
    }

    /// The node's id of a message.
    pub(crate) fn rpc(&self, node: usize, name: Name) -> RpcId {
        RpcId { session: self.pairs.index(node, name.0), id: name.1 }
    }

    /// The other end of a session.
    pub(crate) fn peer(&self, node: usize, session: SessionIndex) -> Option<SessionIndex> {
        let pair = self.pairs.of(node, session)?;
        Some(self.pairs.index(1 - node, pair))
    }

    /// Messages that have not ended for their sender.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Message> {
        self.live.iter().map(|name| &self.messages[name])
    }

    /// The earliest deadline that has not been met.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn forget(&mut self, node: usize, rpc: RpcId) {
        let name = self.name(node, rpc);
        self.live.remove(&name);
        let deadline = self.messages[&name].deadline;
        if let Some(deadline) = deadline {
            self.deadlines.remove(&(deadline, name));
        }
    }

    fn message(&mut self, from: usize, node: usize, rpc: RpcId) -> &mut Message {
        assert!(
            !self.ended.contains_key(&(node, rpc.session)),
            "an event of a session that has ended"
        );
        let name = self.name(node, rpc);
        let message = self.messages.get_mut(&name).expect("somebody sent it");
        assert_eq!(message.from, from, "the wrong side's message");
        message
    }

    fn end_session(&mut self, node: usize, session: SessionIndex, end: SessionEnd) {
        assert!(self.begun[node].contains(&session), "it never began");
        let pair = self.pairs.of(node, session).expect("it began");
        for (name, message) in self.messages.range((pair, MessageId(0))..) {
            if name.0 != pair {
                break;
            }
            let waits = message.from == node && message.is_live();
            assert!(!waits, "its session ended before a message did: {message:?}");
            let works = message.from != node && message.is_worked_on();
            assert!(!works, "nobody told the application that its caller is gone");
        }
        self.blocked.remove(&(node, session));
        let before = self.ended.insert((node, session), end);
        assert_eq!(before, None, "a session ended twice");
    }
}

/// The two indices of each session, as the client's key log has them.
#[derive(Default)]
pub(crate) struct Pairs(Mutex<Vec<[SessionIndex; 2]>>);

impl Pairs {
    /// The place of a node's session.
    pub(crate) fn of(&self, node: usize, session: SessionIndex) -> Option<usize> {
        let pairs = self.0.lock().expect("no other thread panicked");
        pairs.iter().position(|pair| pair[node] == session)
    }

    fn index(&self, node: usize, pair: usize) -> SessionIndex {
        self.0.lock().expect("no other thread panicked")[pair][node]
    }
}

impl KeyLog for Pairs {
    fn log(&self, line: &KeyLogEntry<'_>) {
        if line.epoch != 0 || line.purpose != Purpose::Data {
            return;
        }
        let mut pairs = self.0.lock().expect("no other thread panicked");
        match line.side {
            // The client logs the keys that it seals with first; they name the server's index.
            Side::Client => pairs.push([SessionIndex(0), line.index]),
            Side::Server => {
                let last = pairs.last_mut().expect("sealing keys come first");
                last[0] = line.index;
            }
        }
    }
}
