// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application of a host in a case: it does what is planned, answers requests, and reports all
//! of it.
//!
//! A host that wants to send and has no session connects, again and again; two hosts may have two
//! sessions.

mod answers;
mod checks;
mod ends;
mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::key_exchange::PeerIdentity;
use smt_proto::{
    CallOptions, CloseCode, ConnectId, Endpoint, Event, Metadata, Refused, RpcId, SessionEnd,
    SessionFacts, Time,
};
use smt_wire::SessionIndex;

use self::answers::Answer;
use self::parts::{PartCalls, PartTask};
use super::case::Action;
use crate::crypto::Credentials;
use crate::net::packet::HostId;
use crate::net::smt_host::Application;
use crate::random::Random;
use crate::swarm::check::{Checker, Content, InParts, Outcome, Received, Report, Sent};

/// The application of a host.
pub(super) struct Player {
    id: HostId,
    credentials: Rc<Credentials>,
    random: Random,
    hosts: Hosts,
    agenda: BTreeMap<(Time, u64), Task>,
    serial: u64,
    /// The session to use with each host.
    peers: BTreeMap<HostId, SessionIndex>,
    /// All live sessions, and who the peer has proved to be.
    sessions: BTreeMap<SessionIndex, HostId>,
    /// Sessions that have ended, and the peers, while messages of them may wait to be accepted.
    past_sessions: BTreeMap<SessionIndex, HostId>,
    /// It accepts messages some time after they have come.
    pub(super) accepts_late: bool,
    connecting: BTreeMap<ConnectId, HostId>,
    calls: BTreeMap<RpcId, Underway>,
    parts: PartCalls,
    /// Reports that were not taken yet.
    pub(super) reports: Vec<Report>,
    /// Sessions in which something of the peer has arrived. Others may be left over from a client's
    /// attempt that it gave up: the client says RESET to those, rightly.
    used: BTreeSet<SessionIndex>,
    /// How sessions ended that were used, and with whom they were.
    pub(super) ends: Vec<(HostId, SessionEnd)>,
    /// Hosts with which a session was over.
    left: BTreeSet<HostId>,
    /// Sessions that came to life with one of them.
    pub(super) sessions_renewed: u64,
    /// How often the peer's window was full.
    pub(super) blocked: u64,
    /// How many messages were longer than the peer takes, and how many replies.
    pub(super) too_large: u64,
    pub(super) replies_too_large: u64,
    /// Its endpoint refuses what comes.
    pub(super) is_draining: bool,
    /// In the last round every request is answered at once.
    pub(super) is_last_round: bool,
    /// Messages planned and not sent yet.
    pub(super) unsent: u64,
}

/// The facts that are known of all hosts.
pub(super) struct Hosts {
    /// Hosts whose clock is wrong: when a deadline passes there no other host can tell.
    pub(super) odd_clocks: Vec<HostId>,
    /// Bytes of the longest message that each takes.
    pub(super) limits: Vec<u32>,
    /// Bytes of parts that may wait at each; 0 at those that take none.
    pub(super) part_windows: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Task {
    Do(Action),
    Answer(RpcId, Answer),
    Part(RpcId, PartTask),
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

/// A message that was sent and has not ended.
#[derive(Clone, Copy, Debug)]
struct Underway {
    content: Content,
    /// Until then nothing gives it up, if clocks are right.
    until: Option<Time>,
}

impl Player {
    pub(super) fn new(
        id: HostId,
        credentials: Rc<Credentials>,
        hosts: Hosts,
        random: Random,
    ) -> Self {
        Self {
            id,
            credentials,
            random,
            hosts,
            agenda: BTreeMap::new(),
            serial: 0,
            peers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            past_sessions: BTreeMap::new(),
            accepts_late: false,
            connecting: BTreeMap::new(),
            calls: BTreeMap::new(),
            parts: PartCalls::default(),
            reports: Vec::new(),
            used: BTreeSet::new(),
            ends: Vec::new(),
            left: BTreeSet::new(),
            sessions_renewed: 0,
            blocked: 0,
            too_large: 0,
            replies_too_large: 0,
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
        self.left.extend(self.sessions.values());
        self.sessions.clear();
        self.past_sessions.clear();
        self.connecting.clear();
        self.calls.clear();
        self.parts.clear();
        self.is_draining = false;
        self.reports.push(Report::Crashed(self.id));
    }

    /// Calls in progress of all sessions, as the endpoint says: their replies may come.
    pub(super) fn calls(&self, endpoint: &Endpoint) -> usize {
        self.facts(endpoint).map(|facts| facts.calls).sum()
    }

    /// Calls whose parts the application takes.
    pub(super) fn part_readers(&self) -> usize {
        self.parts.readers()
    }

    /// Calls in parts of which the application was not told that they are over.
    pub(super) fn part_calls(&self) -> usize {
        self.parts.len()
    }

    /// How often a window had no room for a part.
    pub(super) fn part_windows_full(&self) -> u64 {
        self.parts.full
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
            Action::Send { sent, deadline, cancel_after } => {
                let later = |duration: Option<Duration>| duration.map(|after| now + after);
                let cancel_at = later(cancel_after);
                match self.issue(now, &sent, deadline, endpoint) {
                    Ok(rpc) => {
                        self.unsent -= 1;
                        self.taken(sent.to, sent.content.length);
                        if let Some(at) = cancel_at {
                            self.push(at, Task::Cancel(rpc));
                        }
                        let until = cancel_at.into_iter().chain(later(deadline)).min();
                        if let Some(at) = until {
                            self.push(at + GRACE, Task::Expect(rpc, Look::First));
                        }
                        let is_odd = self.hosts.odd_clocks.contains(&sent.to);
                        let until = until.filter(|_| !is_odd);
                        let content = sent.content;
                        self.calls.insert(rpc, Underway { content, until });
                        self.reports.push(Report::Sent(sent));
                        self.start_part_call(now, rpc, &sent, endpoint);
                    }
                    Err(Refused::TooLarge { length, .. }) => {
                        self.unsent -= 1;
                        self.too_large += 1;
                        self.refused(sent.to, length);
                    }
                    Err(refused) => {
                        let sent = self.put_off(now, sent, &refused, endpoint);
                        let action = Action::Send { sent, deadline, cancel_after };
                        self.push(now + RETRY, Task::Do(action));
                    }
                }
            }
        }
    }

    /// Hands a message to the endpoint.
    fn issue(
        &self,
        now: Time,
        sent: &Sent,
        deadline: Option<Duration>,
        endpoint: &mut Endpoint,
    ) -> Result<RpcId, Refused> {
        let session = *self.peers.get(&sent.to).ok_or(Refused::NoSession)?;
        let message = sent.content.message(self.limit_of(sent.to));
        if sent.is_one_way {
            endpoint.send_one_way(now, session, message, deadline)
        } else if sent.parts.has_parts() {
            let parts = sent.parts.marks();
            endpoint.call_in_parts(now, session, message, CallOptions { deadline, parts })
        } else {
            endpoint.call(now, session, message, deadline)
        }
    }

    /// A message cannot be sent now. Returns it as it is to be tried later.
    fn put_off(
        &mut self,
        now: Time,
        sent: Sent,
        refused: &Refused,
        endpoint: &mut Endpoint,
    ) -> Sent {
        self.blocked += u64::from(*refused == Refused::Blocked);
        if *refused == Refused::NoParts {
            self.refused_in_parts(sent.to);
            let parts = InParts::default();
            return Sent { parts, ..sent };
        }
        self.reach(now, sent.to, endpoint);
        sent
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
    fn start_session(&mut self, session: SessionIndex, peer: &PeerIdentity, expected: HostId) {
        let certificate = peer.certificates.first();
        let proved = certificate.and_then(|leaf| self.credentials.owner(leaf));
        if proved != Some(expected) {
            self.reports.push(Report::Impostor { at: self.id, expected, proved });
        }
        self.sessions_renewed += u64::from(self.left.contains(&expected));
        self.sessions.insert(session, expected);
        self.peers.insert(expected, session);
    }

    /// A message has come: from whom, if its session is live.
    fn delivered(&mut self, rpc: RpcId, body: Bytes, metadata: &Metadata) -> Option<Received> {
        self.used.insert(rpc.session);
        let past = self.past_sessions.get(&rpc.session);
        let Some(from) = self.sessions.get(&rpc.session).or(past) else {
            let text = format!("a message came in session {}, which is not live", rpc.session);
            self.found(Checker::Provenance, text);
            return None;
        };
        let received = Received { at: self.id, from: *from, body };
        self.within_own_limit(&received.body);
        let limit = self.limit_of(self.id);
        let claimed = Content::claimed(&received.body);
        let expected = claimed.map(|content| content.metadata(limit));
        self.compare_metadata(&expected.unwrap_or_default(), metadata);
        self.reports.push(Report::Delivered(received.clone()));
        Some(received)
    }

    /// Bytes of the longest message that a host takes.
    fn limit_of(&self, host: HostId) -> u32 {
        self.hosts.limits[host.0 as usize]
    }

    /// Looks whether what was given up has ended.
    fn expect_end(&mut self, now: Time, rpc: RpcId, look: Look) {
        let Some(Underway { content, .. }) = self.calls.get(&rpc) else {
            return;
        };
        let number = content.number;
        if look == Look::First {
            self.push(now + GRACE, Task::Expect(rpc, Look::Second));
            return;
        }
        let text = format!("message {number} goes on after it was given up");
        self.found(Checker::Liveness, text);
    }

    fn ended(&mut self, now: Time, rpc: RpcId, outcome: Outcome) {
        let Some(Underway { content, until, .. }) = self.calls.remove(&rpc) else {
            let text = format!("{rpc:?} ended again, or was never begun: {outcome:?}");
            self.found(Checker::AtMostOnce, text);
            return;
        };
        self.reports.push(Report::Ended {
            number: content.number,
            outcome,
            is_early: until.is_some_and(|until| now < until),
        });
    }
}

impl Application for Player {
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint) {
        match event {
            Event::Connected { connect, session, peer } => {
                if let Some(expected) = self.connecting.remove(&connect) {
                    self.start_session(session, &peer, expected);
                }
            }
            Event::Accepted { session, path, peer } => {
                if let Some(expected) = HostId::of(path.remote) {
                    self.start_session(session, &peer, expected);
                }
            }
            Event::ConnectFailed { connect, .. } => {
                self.connecting.remove(&connect);
            }
            Event::Request { rpc, body, metadata, deadline, parts, .. } => {
                if self.is_draining {
                    let text = "a request came after a shutdown".to_owned();
                    self.found(Checker::Liveness, text);
                }
                if let Some(received) = self.delivered(rpc, body, &metadata) {
                    let due = self.requested(now, received, deadline.is_some());
                    self.serve(now, (rpc, parts), due, endpoint);
                }
            }
            Event::OneWay { rpc, body, metadata, deadline } => {
                if deadline.is_some_and(|deadline| deadline < now) {
                    let text = format!("{rpc:?} was delivered after its deadline");
                    self.found(Checker::Lateness, text);
                }
                self.delivered(rpc, body, &metadata);
            }
            Event::Reply { rpc, body, metadata } => {
                self.parts_replied(rpc, endpoint);
                self.replied(now, rpc, body, &metadata);
            }
            Event::CallFailed { rpc, error } => self.call_failed(now, rpc, &error, endpoint),
            Event::OneWayDone { rpc, outcome } => self.ended(now, rpc, Outcome::OneWay(outcome)),
            Event::SessionEnded { session, end } => self.session_ended(session, end),
            event => self.handle_of_parts(now, &event, endpoint),
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
                Task::Answer(rpc, answer) => {
                    self.answer(now, rpc, answer, endpoint);
                    self.end_parts(rpc, endpoint);
                }
                Task::Part(rpc, task) => self.do_part(now, rpc, task, endpoint),
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

/// A message that was given up ends within this time: the endpoint's timers have a grain.
const GRACE: Duration = Duration::from_millis(20);
/// Wait before a message that could not be sent is tried again.
const RETRY: Duration = Duration::from_millis(5);
/// A connect that takes longer is begun anew.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
