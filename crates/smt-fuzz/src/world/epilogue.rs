// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The promises that hold once the network is honest (design rules 2 to 5): everything ends,
//! nothing is left behind, and a call succeeds.

use std::time::Duration;

use smt_wire::SessionIndex;

use super::message::{Answer, Kind, Plan};
use super::{STRANGER, World};

impl World {
    /// Makes the network honest, and checks all of it.
    pub(crate) fn finish(mut self, is_lost: bool) {
        self.honest_since = Some(self.now);
        if is_lost {
            self.in_flight.clear();
        }
        self.in_flight.retain(|datagram| datagram.to != STRANGER);
        while self.answer(0, Plan::Reply(100)) {}
        self.take_all_parts();
        let has_ended = self.run(LONG, |world| world.ledger.live().next().is_none());
        let waits: Vec<_> = self.ledger.live().collect();
        assert!(has_ended, "these never end: {waits:?}");
        // A session whose peer was silent for too long dies now; a peer that is told so learns it.
        self.run(SHORT, |_| false);
        let session = self.fresh_call();
        self.call_back(session);
        self.run(LONG, |_| false);
        self.check_nothing_is_left();
    }

    /// A call of the client on its session, if that may still live; else on a new one.
    fn fresh_call(&mut self) -> SessionIndex {
        for _ in 0..2 {
            let session = match self.newest(0) {
                Some(session) => session,
                None => self.fresh_session(),
            };
            let peer = self.ledger.peer(0, session).expect("it began");
            let peer_lives = self.nodes[1].endpoint.session(peer).is_some();
            if self.succeeds(0, session) {
                return session;
            }
            assert!(!peer_lives, "a call fails on a live session");
        }
        panic!("a call fails on a new session");
    }

    /// A call of the server on the same session.
    fn call_back(&mut self, session: SessionIndex) {
        let peer = self.ledger.peer(0, session).expect("it lives");
        assert_eq!(self.newest(1), Some(peer), "the server has a newer session");
        assert!(self.succeeds(1, peer), "a call back fails");
    }

    /// Whether a call ends with its reply.
    fn succeeds(&mut self, node: usize, session: SessionIndex) -> bool {
        let kind = Kind::Request(Plan::Reply(3_000));
        let most = self.nodes[node].endpoint.session(session);
        let size = most.map_or(0, |facts| facts.message_max.min(2_000)) as usize;
        let mut name = self.send_message(node, size, kind, None);
        if name.is_none() {
            let is_free = |world: &Self| !world.ledger.blocked.contains(&(node, session));
            assert!(self.run(LONG, is_free), "the id window never moves");
            name = self.send_message(node, size, kind, None);
        }
        let Some(name) = name else {
            return false;
        };
        let has_ended = self.run(LONG, |world| !world.ledger.messages[&name].is_live());
        assert!(has_ended, "a call never ends");
        let message = &self.ledger.messages[&name];
        let is_replied = message.is_delivered && matches!(message.answer, Answer::Reply(_));
        is_replied && !self.ledger.ended.contains_key(&(node, session))
    }

    fn fresh_session(&mut self) -> SessionIndex {
        self.connect();
        let is_over = |world: &Self| world.connecting.is_none();
        assert!(self.run(LONG, is_over), "no session comes about");
        if self.newest(0).is_none() {
            // A forged packet may have made the first attempt fail; without forgeries a second one
            // cannot fail.
            self.connect();
            assert!(self.run(LONG, is_over), "no session comes about");
        }
        let error = self.connect_error.as_ref();
        self.newest(0).unwrap_or_else(|| panic!("no session: {error:?}"))
    }

    fn check_nothing_is_left(&self) {
        for (number, node) in self.nodes.iter().enumerate() {
            for session in &self.ledger.begun[number] {
                let Some(facts) = node.endpoint.session(*session) else {
                    continue;
                };
                assert_eq!((facts.calls, facts.served), (0, 0), "node {number}: live messages");
            }
            // Packets whose record 0 never comes may wait; nothing else does.
            let most = 256 * 1024 * node.endpoint.sessions_len();
            assert!(node.endpoint.memory() <= most, "node {number}: bytes held");
            let violations = node.endpoint.statistics().violations;
            assert_eq!(violations, 0, "node {number}: its peer broke a rule");
        }
        assert_eq!(self.nodes[0].endpoint.poll_timeout(), None, "an idle client has a timer");
        let worked_on = self.ledger.messages.values().find(|message| message.is_worked_on());
        assert!(worked_on.is_none(), "{worked_on:?}");
    }
}

/// Questions back off to half a second, probing to 60 s, forgetting takes 20 questions.
const LONG: Duration = Duration::from_secs(150);
/// More than the silence after which a session is dead.
const SHORT: Duration = Duration::from_secs(4);
