// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client and a server, their applications, a clock, and a network that does what a script says.
//!
//! 1. [`World::settle`] takes all that both endpoints have to say; datagrams wait in `in_flight`.
//! 2. A script decides which of them arrive, when, and as what ([`Forgery`]).
//! 3. [`World::run`] is an honest network for a while.
//!
//! [`Ledger`] and [`WireWatch`] look at everything on the way. Not here: the steps of scripts
//! (`script`), the promises that hold in the end (`epilogue`).

mod applications;
mod epilogue;
mod forgery;
mod ledger;
mod message;
mod network;
mod node;
mod parts;
mod settings;
mod wire_watch;

pub(crate) use forgery::Forgery;
pub(crate) use message::{Kind, Plan};
pub(crate) use node::{Datagram, Node, STRANGER, address_of};
pub(crate) use parts::HasParts;
pub(crate) use settings::{SILENCE_MAX, Settings};
pub(crate) use wire_watch::WireWatch;

use std::sync::Arc;
use std::time::Duration;

use smt_carrier::Path;
use smt_proto::{Config, ConnectError, ConnectId, Event, SessionEnd, Time};
use smt_testkit::FakeKeyExchange;
use smt_wire::{SessionIndex, VERSION};

use ledger::Ledger;

/// Node 0 is the client, node 1 the server.
pub(crate) struct World {
    pub(crate) nodes: [Node; 2],
    configs: [Config; 2],
    pub(crate) now: Time,
    /// Sent and not arrived.
    pub(crate) in_flight: Vec<Datagram>,
    /// Some datagrams that were sent, for replays.
    pub(crate) history: Vec<Datagram>,
    /// Indices that were ever named on the wire.
    pub(crate) issued: Vec<SessionIndex>,
    ledger: Ledger,
    watch: WireWatch,
    /// When each node sent something.
    sent_at: [Vec<Time>; 2],
    /// Since when every datagram arrives.
    honest_since: Option<Time>,
    connecting: Option<ConnectId>,
    connect_error: Option<ConnectError>,
    /// Numbers bodies, so that each has its own bytes.
    serial: u64,
}

impl World {
    pub(crate) fn new(settings: [Settings; 2]) -> Self {
        let ledger = Ledger::default();
        let mut configs = settings.map(|settings| settings.config());
        configs[1].accept = true;
        let node = |number: usize| {
            let config = configs[number].clone();
            let node = Node::new(number, config, Arc::new(FakeKeyExchange::new(1)));
            node.with_pull(settings[number].pull())
        };
        let mut nodes = [node(0), node(1)];
        nodes[0].endpoint.set_key_log(ledger.pairs.clone());
        Self {
            nodes,
            configs,
            now: Time::from_nanos(1_000_000_000),
            in_flight: Vec::new(),
            history: Vec::new(),
            issued: Vec::new(),
            ledger,
            watch: WireWatch::new(VERSION),
            sent_at: [Vec::new(), Vec::new()],
            honest_since: None,
            connecting: None,
            connect_error: None,
            serial: 0,
        }
    }

    /// Establishes a session through an honest network.
    pub(crate) fn establish(&mut self) {
        self.connect();
        let is_live = self.run(CONNECT_DEADLINE, |world| world.newest(0).is_some());
        assert!(is_live, "no session comes about: {:?}", self.connect_error);
    }

    /// Begins to establish a session, unless that is going on.
    pub(crate) fn connect(&mut self) {
        if self.connecting.is_some() {
            return;
        }
        let path = Path::to(address_of(1));
        let endpoint = &mut self.nodes[0].endpoint;
        let connect = endpoint.connect(self.now, path, "server", CONNECT_DEADLINE);
        self.connecting = Some(connect.expect("a client with room for sessions"));
        self.settle();
    }

    /// Inner bytes of record 0 and of the others, as the two sides agree.
    pub(crate) fn geometry(&self) -> (u32, u32) {
        let least = |size: fn(&Config) -> u16| self.configs.iter().map(size).min();
        let rest = least(|config| config.record_size).unwrap_or_default();
        let first = least(|config| config.first_record_size).unwrap_or_default();
        (first.min(rest).into(), rest.into())
    }

    /// Bytes that need no grant, about.
    pub(crate) fn unscheduled(&self) -> u32 {
        self.configs[1].unscheduled
    }

    /// The largest message that the server accepts, about.
    pub(crate) fn message_limit(&self) -> u32 {
        self.configs[1].message_limit
    }

    /// Takes everything that both endpoints have to say.
    pub(crate) fn settle(&mut self) {
        for node in 0..2 {
            for round in 0.. {
                assert!(round < ROUNDS_MAX, "node {node} never falls silent");
                let has_events = self.take_events(node);
                let sent = self.nodes[node].transmits(self.now);
                if !has_events && sent.is_empty() {
                    break;
                }
                sent.into_iter().for_each(|datagram| self.send(datagram));
            }
        }
    }

    fn take_events(&mut self, node: usize) -> bool {
        let mut any = false;
        while let Some(event) = self.nodes[node].endpoint.poll_event() {
            any = true;
            match event {
                Event::Connected { connect, session, .. } => {
                    assert_eq!((node, Some(connect)), (0, self.connecting.take()));
                    self.ledger.begun[0].push(session);
                }
                Event::ConnectFailed { connect, error } => {
                    assert_eq!((node, Some(connect)), (0, self.connecting.take()));
                    self.connect_error = Some(error);
                }
                Event::Accepted { session, path, .. } => {
                    assert_eq!((node, path.remote), (1, address_of(0)), "only it has the secret");
                    self.ledger.begun[1].push(session);
                }
                // Its log's business.
                Event::ClientRefused { .. } => {}
                Event::SessionEnded { session, ref end } => {
                    self.check_end(node, session, end);
                    self.ledger.take(self.now, node, event);
                }
                Event::PartReady(rpc) => self.part_is_ready(node, rpc),
                // The sender of a part tries again whenever the script says it.
                Event::PartWindowRaised(_) => {}
                event => {
                    if let Some((rpc, plan)) = self.ledger.take(self.now, node, event) {
                        self.answer_by_plan(node, rpc, plan);
                    }
                }
            }
        }
        any
    }

    /// Sessions end for a reason only (SPEC §9.9, §11, §12).
    fn check_end(&self, node: usize, session: SessionIndex, end: &SessionEnd) {
        let peer = self.ledger.peer(node, session).expect("it began");
        let peer_lives = self.nodes[1 - node].endpoint.session(peer).is_some();
        let peer_end = self.ledger.ended.get(&(1 - node, peer));
        match end {
            SessionEnd::ClosedHere => {
                assert!(self.ledger.closed.contains(&(node, session)), "nobody closed it");
            }
            SessionEnd::ClosedByPeer(_) => {
                assert_eq!(peer_end, Some(&SessionEnd::ClosedHere), "{end}");
            }
            SessionEnd::Reset => assert!(!peer_lives, "a session that lives was reset"),
            SessionEnd::Silent(silence) => {
                assert!(*silence >= SILENCE_MAX, "{end}");
                // Questions are at most 500 ms apart, so an honest network has brought an answer by
                // then.
                let is_honest = self
                    .honest_since
                    .is_some_and(|since| self.now.since(since) > Duration::from_millis(700));
                assert!(!is_honest || !peer_lives, "a peer that answers was silent: {end}");
                let asked = self.sent_at[node].iter().rev();
                let asked = asked.take_while(|at| self.now.since(**at) <= *silence);
                assert!(asked.count() >= 4, "it was asked too rarely: {end}");
            }
            other => panic!("a session ended without a reason: {other}"),
        }
    }
}

/// Longer than any script, so that the honest network comes in time.
const CONNECT_DEADLINE: Duration = Duration::from_secs(200);

/// Rounds of events and transmits in which nothing arrives.
const ROUNDS_MAX: usize = 1_000;
