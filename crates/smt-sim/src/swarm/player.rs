// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application of a host in a case: it does what is planned, answers requests, and reports all of it.
//!
//! Whoever wants to send and has no session connects, again and again; two hosts may have two sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::handshake::PeerIdentity;
use smt_proto::{
    CloseCode, ConnectId, Endpoint, Event, Refused, RpcId, SessionEnd, SessionFacts, Time,
};
use smt_wire::{AbortCode, SessionIndex};

use super::case::Action;
use crate::check::{Checker, Content, Failure, Outcome, Report};
use crate::crypto::Credentials;
use crate::packet::HostId;
use crate::random::Random;
use crate::smt_host::Application;

/// The application of a host.
pub(super) struct Player {
    id: HostId,
    credentials: Rc<Credentials>,
    random: Random,
    agenda: BTreeMap<(Time, u64), Task>,
    serial: u64,
    /// The session to use with each host.
    peers: BTreeMap<HostId, SessionIndex>,
    /// All live sessions, and who the peer has proved to be.
    sessions: BTreeMap<SessionIndex, HostId>,
    connecting: BTreeMap<ConnectId, HostId>,
    calls: BTreeMap<RpcId, u64>,
    /// What has happened and was not taken yet.
    pub(super) reports: Vec<Report>,
    /// Sessions in which something of the peer has arrived. Others may be left over from a client's attempt that it
    /// gave up: the client says RESET to those, rightly.
    used: BTreeSet<SessionIndex>,
    /// How sessions ended that were used.
    pub(super) ends: Vec<SessionEnd>,
    /// Sessions that came to life.
    pub(super) sessions_begun: u64,
    /// How often the peer's window was full.
    pub(super) blocked: u64,
    /// Its endpoint refuses what comes.
    pub(super) is_draining: bool,
    /// In the last round every request is answered at once.
    pub(super) is_last_round: bool,
    /// Messages planned and not sent yet.
    pub(super) unsent: u64,
}

#[derive(Clone, Debug)]
enum Task {
    Do(Action),
    Answer(RpcId, Answer),
    Cancel(RpcId),
    /// Its deadline has passed, or it was given up: it must have ended.
    Expect(RpcId, Look),
}

/// A clock that jumps ahead lets a task and the look at what has come of it be due at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Look {
    First,
    Second,
}

#[derive(Clone, Debug)]
enum Answer {
    /// The reply, and the request.
    Reply(Bytes, Bytes),
    Abort(AbortCode, Bytes),
}

impl Player {
    pub(super) fn new(id: HostId, credentials: Rc<Credentials>, random: Random) -> Self {
        Self {
            id,
            credentials,
            random,
            agenda: BTreeMap::new(),
            serial: 0,
            peers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            connecting: BTreeMap::new(),
            calls: BTreeMap::new(),
            reports: Vec::new(),
            used: BTreeSet::new(),
            ends: Vec::new(),
            sessions_begun: 0,
            blocked: 0,
            is_draining: false,
            is_last_round: false,
            unsent: 0,
        }
    }

    /// Plans something, by the host's clock.
    pub(super) fn plan(&mut self, at: Time, action: Action) {
        self.unsent += u64::from(matches!(action, Action::Send { .. }));
        self.push(at, Task::Do(action));
    }

    /// The host has crashed: what was under way is forgotten, what was planned is not.
    pub(super) fn crash(&mut self) {
        self.agenda.retain(|_, task| matches!(task, Task::Do(_)));
        self.peers.clear();
        self.sessions.clear();
        self.connecting.clear();
        self.calls.clear();
        self.is_draining = false;
        self.reports.push(Report::Crashed(self.id));
    }

    /// Calls in progress of all sessions, as the endpoint says: their replies may come.
    pub(super) fn calls(&self, endpoint: &Endpoint) -> usize {
        self.facts(endpoint).map(|facts| facts.calls).sum()
    }

    /// Live messages of all sessions.
    pub(super) fn live(&self, endpoint: &Endpoint) -> usize {
        let facts = self.facts(endpoint);
        facts.map(|facts| facts.calls + facts.served).sum()
    }

    fn facts(&self, endpoint: &Endpoint) -> impl Iterator<Item = SessionFacts> {
        let sessions = self.sessions.keys();
        sessions.filter_map(|index| endpoint.session(*index))
    }

    fn push(&mut self, at: Time, task: Task) {
        self.serial += 1;
        self.agenda.insert((at, self.serial), task);
    }

    fn act(&mut self, now: Time, action: Action, endpoint: &mut Endpoint) {
        match action {
            Action::Close(peer) => {
                if let Some(session) = self.peers.get(&peer) {
                    endpoint.close(*session, CloseCode::Done);
                }
            }
            Action::Send {
                sent,
                deadline,
                cancel_after,
            } => {
                let later = |duration: Option<Duration>| duration.map(|after| now + after);
                let cancel_at = later(cancel_after);
                let body = sent.content.body();
                let issued = match self.peers.get(&sent.to) {
                    None => Err(Refused::NoSession),
                    Some(session) if sent.is_one_way => {
                        endpoint.send_one_way(now, *session, body, deadline)
                    }
                    Some(session) => endpoint.call(now, *session, body, deadline),
                };
                match issued {
                    Ok(rpc) => {
                        self.unsent -= 1;
                        self.calls.insert(rpc, sent.content.number);
                        self.reports.push(Report::Sent(sent));
                        if let Some(at) = cancel_at {
                            self.push(at, Task::Cancel(rpc));
                        }
                        let given_up = cancel_at.into_iter().chain(later(deadline));
                        if let Some(at) = given_up.min() {
                            self.push(at + GRACE, Task::Expect(rpc, Look::First));
                        }
                    }
                    Err(Refused::TooLarge { .. }) => self.unsent -= 1,
                    Err(refused) => {
                        self.blocked += u64::from(refused == Refused::Blocked);
                        self.reach(now, sent.to, endpoint);
                        let action = Action::Send {
                            sent,
                            deadline,
                            cancel_after,
                        };
                        self.push(now + RETRY, Task::Do(action));
                    }
                }
            }
        }
    }

    /// Sees to it that there will be a session with a host.
    fn reach(&mut self, now: Time, peer: HostId, endpoint: &mut Endpoint) {
        let is_under_way = self.connecting.values().any(|to| *to == peer);
        if is_under_way || self.peers.contains_key(&peer) {
            return;
        }
        let path = Path::to(peer.address());
        let name = format!("host-{}.sim", peer.0);
        if let Ok(connect) = endpoint.connect(now, path, &name, CONNECT_DEADLINE) {
            self.connecting.insert(connect, peer);
        }
    }

    /// A session is live: who is there?
    fn begin_session(&mut self, session: SessionIndex, peer: &PeerIdentity, expected: HostId) {
        let certificate = peer.certificates.first();
        let proved = certificate.and_then(|leaf| self.credentials.owner(leaf));
        if proved != Some(expected) {
            self.reports.push(Report::Impostor {
                at: self.id,
                expected,
                proved,
            });
        }
        self.sessions_begun += 1;
        self.sessions.insert(session, expected);
        self.peers.insert(expected, session);
    }

    fn delivered(&mut self, rpc: RpcId, body: Bytes) {
        self.used.insert(rpc.session);
        match self.sessions.get(&rpc.session) {
            Some(from) => self.reports.push(Report::Delivered {
                at: self.id,
                from: *from,
                body,
            }),
            None => self.found(
                Checker::Provenance,
                format!(
                    "a message came in session {}, which is not live",
                    rpc.session
                ),
            ),
        }
    }

    fn found(&mut self, checker: Checker, text: String) {
        let text = format!("{:?}: {text}", self.id);
        let failure = Failure::new(checker, text);
        self.reports.push(Report::Found(failure));
    }

    /// Looks whether what was given up has ended.
    fn expect_end(&mut self, now: Time, rpc: RpcId, look: Look) {
        let Some(number) = self.calls.get(&rpc) else {
            return;
        };
        if look == Look::First {
            self.push(now + GRACE, Task::Expect(rpc, Look::Second));
            return;
        }
        let text = format!("message {number} goes on after it was given up");
        self.found(Checker::Liveness, text);
    }

    fn ended(&mut self, rpc: RpcId, outcome: Outcome) {
        if let Some(number) = self.calls.remove(&rpc) {
            self.reports.push(Report::Ended { number, outcome });
        }
    }

    /// A request waits for an answer: now, later, or very late if its caller has a deadline.
    fn requested(&mut self, now: Time, rpc: RpcId, body: Bytes, has_deadline: bool) {
        let claimed = Content::claimed(&body);
        let reply = claimed.map_or_else(|| body.clone(), |content| content.reply());
        let mut answer = Answer::Reply(reply, body.clone());
        let mut at = now;
        if !self.is_last_round {
            match self.random.below(100) {
                0 => answer = Answer::Abort(AbortCode::Refused, body.clone()),
                1 => answer = Answer::Abort(AbortCode::Dropped, body.clone()),
                2 if has_deadline => at = now + VERY_LATE,
                3..50 => at = now + Duration::from_micros(self.random.below(5_000)),
                _ => {}
            }
        }
        self.push(at, Task::Answer(rpc, answer));
    }

    fn answer(&mut self, now: Time, rpc: RpcId, answer: Answer, endpoint: &mut Endpoint) {
        // The caller may have given up meanwhile: then there is nothing to answer.
        match answer {
            Answer::Reply(body, request) => {
                let too_large = matches!(
                    endpoint.reply(now, rpc, body),
                    Err(Refused::TooLarge { .. })
                );
                if too_large {
                    let _ = endpoint.abort(now, rpc, AbortCode::ReplyTooLarge);
                    self.reports.push(Report::DroppedByApplication(request));
                }
            }
            Answer::Abort(code, request) => {
                if endpoint.abort(now, rpc, code).is_ok() {
                    self.reports.push(match code {
                        AbortCode::Refused => Report::RefusedByApplication(request),
                        _ => Report::DroppedByApplication(request),
                    });
                }
            }
        }
    }
}

impl Application for Player {
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint) {
        match event {
            Event::Connected {
                connect,
                session,
                peer,
            } => {
                if let Some(expected) = self.connecting.remove(&connect) {
                    self.begin_session(session, &peer, expected);
                }
            }
            Event::Accepted {
                session,
                path,
                peer,
            } => {
                if let Some(expected) = HostId::of(path.remote) {
                    self.begin_session(session, &peer, expected);
                }
            }
            Event::ConnectFailed { connect, .. } => {
                self.connecting.remove(&connect);
            }
            Event::Request {
                rpc,
                body,
                deadline,
            } => {
                if self.is_draining {
                    self.found(
                        Checker::Liveness,
                        "a request came after a shutdown".to_owned(),
                    );
                }
                self.delivered(rpc, body.clone());
                self.requested(now, rpc, body, deadline.is_some());
            }
            Event::OneWay { rpc, body } => self.delivered(rpc, body),
            Event::Reply { rpc, body } => {
                self.used.insert(rpc.session);
                self.ended(rpc, Outcome::Replied(body));
            }
            Event::CallFailed { rpc, error } => self.ended(rpc, Outcome::Failed(error.execution)),
            Event::OneWayDone { rpc, outcome } => self.ended(rpc, Outcome::OneWay(outcome)),
            Event::SessionEnded { session, end } => {
                self.sessions.remove(&session);
                self.peers.retain(|_, used| *used != session);
                if self.used.remove(&session) {
                    self.ends.push(end);
                }
            }
            _ => {}
        }
        // Answers that are due at once do not wait for the next timeout.
        self.handle_timeout(now, endpoint);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Task::Do(action) => self.act(now, action, endpoint),
                Task::Answer(rpc, answer) => self.answer(now, rpc, answer, endpoint),
                Task::Cancel(rpc) => {
                    endpoint.cancel(now, rpc);
                }
                Task::Expect(rpc, look) => self.expect_end(now, rpc, look),
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }
}

/// Callers have given up by then, or crashed. Never to answer would be the application's own leak.
const VERY_LATE: Duration = Duration::from_secs(5);
/// What was given up ends within this time: the endpoint's timers have a grain.
const GRACE: Duration = Duration::from_millis(20);
/// Wait before a message that could not be sent is tried again.
const RETRY: Duration = Duration::from_millis(5);
/// A connect that takes longer is begun anew.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
