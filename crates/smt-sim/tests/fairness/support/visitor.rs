// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An honest client that comes again and again: it connects, calls, stays for a while in which it
//! calls now and then, and closes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::{CloseCode, ConnectId, Endpoint, Event, RpcId, SessionEnd, Time};
use smt_sim::net::Application;
use smt_wire::SessionIndex;

use super::SERVER;

/// One of its visits.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) began: Time,
    /// From the beginning to the reply to its first call.
    pub(crate) took: Option<Duration>,
}

pub(crate) struct Visitor {
    plan: Plan,
    pub(crate) visits: Vec<Visit>,
    /// Sessions that have ended before it closed them.
    pub(crate) lost: Vec<SessionEnd>,
    connecting: BTreeMap<ConnectId, usize>,
    /// First calls, by visit.
    first_calls: BTreeMap<RpcId, usize>,
    agenda: BTreeMap<(Time, u64), Task>,
    serial: u64,
}

/// When it comes and goes.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Before the first visit, by its own clock, which begins at a second.
    pub(crate) from: Duration,
    /// From one visit to the next.
    pub(crate) every: Duration,
    /// How often it comes.
    pub(crate) visits: usize,
    /// From a reply to the next call in the same session.
    pub(crate) calls_every: Duration,
    /// From connecting to closing.
    pub(crate) stays: Duration,
}

#[derive(Clone, Copy)]
enum Task {
    Visit,
    Call(SessionIndex),
    Close(SessionIndex),
}

impl Visitor {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut visitor = Self {
            plan,
            visits: Vec::new(),
            lost: Vec::new(),
            connecting: BTreeMap::new(),
            first_calls: BTreeMap::new(),
            agenda: BTreeMap::new(),
            serial: 0,
        };
        let first = Time::from_nanos(1_000_000_000) + plan.from;
        visitor.push(first, Task::Visit);
        visitor
    }

    fn push(&mut self, at: Time, task: Task) {
        self.serial += 1;
        self.agenda.insert((at, self.serial), task);
    }

    fn visit(&mut self, now: Time, endpoint: &mut Endpoint) {
        let path = Path::to(SERVER.address());
        let connect = endpoint.connect(now, path, "host-0.sim", CONNECT_DEADLINE);
        let connect = connect.expect("a client may connect");
        self.connecting.insert(connect, self.visits.len());
        self.visits.push(Visit { began: now, took: None });
        if self.visits.len() < self.plan.visits {
            self.push(now + self.plan.every, Task::Visit);
        }
    }

    fn call(&mut self, now: Time, session: SessionIndex, endpoint: &mut Endpoint) -> Option<RpcId> {
        let body = Bytes::from_static(b"request");
        let rpc = endpoint.call(now, session, body, None).ok()?;
        self.push(now + self.plan.calls_every, Task::Call(session));
        Some(rpc)
    }
}

impl Application for Visitor {
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint) {
        match event {
            Event::Connected { connect, session, .. } => {
                self.push(now + self.plan.stays, Task::Close(session));
                let visit = self.connecting.remove(&connect);
                let call = self.call(now, session, endpoint);
                self.first_calls.extend(call.zip(visit));
            }
            Event::Reply { rpc, .. } => {
                if let Some(visit) = self.first_calls.remove(&rpc) {
                    let visit = &mut self.visits[visit];
                    visit.took = Some(now.since(visit.began));
                }
            }
            Event::SessionEnded { end, .. } if end != SessionEnd::ClosedHere => self.lost.push(end),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove() {
                Task::Visit => self.visit(now, endpoint),
                Task::Call(session) => {
                    self.call(now, session, endpoint);
                }
                Task::Close(session) => endpoint.close(session, CloseCode::Done),
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }
}

/// The default of an application.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
