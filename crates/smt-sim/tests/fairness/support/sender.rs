// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client whose messages the scenario sends, in each of its sessions in turn.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::{Endpoint, Event, OneWayOutcome, RpcId, Time};
use smt_sim::net::{Application, SmtHost};
use smt_wire::SessionIndex;

use super::SERVER;

#[derive(Default)]
pub(crate) struct Sender {
    sessions: VecDeque<SessionIndex>,
    /// When messages have been delivered, by its clock.
    pub(crate) delivered: BTreeMap<RpcId, Time>,
}

impl Sender {
    /// Connects.
    pub(crate) fn connect(host: &mut SmtHost<Self>, now: Time) {
        let now = host.clock.at(now);
        let path = Path::to(SERVER.address());
        let deadline = Duration::from_secs(5);
        let connect = host.endpoint.connect(now, path, "host-0.sim", deadline);
        connect.expect("a client may connect");
    }

    /// Sends a one-way message in the next session; its name, and when it left by the host's clock.
    pub(crate) fn send(host: &mut SmtHost<Self>, now: Time, length: usize) -> (RpcId, Time) {
        let now = host.clock.at(now);
        let sessions = &mut host.application.sessions;
        sessions.rotate_left(1);
        let session = *sessions.front().expect("it is connected");
        let body = Bytes::from(vec![7; length]);
        let rpc = host.endpoint.send_one_way(now, session, body, None);
        (rpc.expect("few messages wait"), now)
    }
}

impl Application for Sender {
    fn handle(&mut self, now: Time, event: Event, _endpoint: &mut Endpoint) {
        match event {
            Event::Connected { session, .. } => self.sessions.push_back(session),
            Event::OneWayDone { rpc, outcome } => {
                assert_eq!(outcome, OneWayOutcome::Delivered);
                self.delivered.insert(rpc, now);
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Time, _endpoint: &mut Endpoint) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}
