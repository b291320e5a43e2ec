// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes, the datagrams between them, and a clock that jumps from event to event.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Marks, Path};
use smt_proto::{CallError, Config, ConnectError, Event, OneWayOutcome, RpcId, Time};
use smt_wire::SessionIndex;

use super::configs::ethernet;
use super::node::address_of;
use super::{Answer, Datagram, Node, Verdict};

/// A rule for datagrams; what it adds to the second argument is injected beside them.
pub type Rule = Box<dyn FnMut(&Datagram, &mut Vec<Datagram>) -> Verdict>;

/// Everything there is in a test.
pub struct World {
    pub nodes: Vec<Node>,
    pub now: Time,
    pub rule: Rule,
    /// One way, for every datagram.
    pub latency: Duration,
    /// Bytes per microsecond of each node's incoming link; 0: unlimited.
    pub rate: u64,
    /// Bytes that may wait for a node's incoming link; DATA beyond is cut to its header, which
    /// waits for nothing. 0: any number.
    pub trims_above: u64,
    /// The most bytes that have waited there.
    pub queue_max: u64,
    /// Every datagram that a node has sent, if `is_recording`.
    pub sent: Vec<Datagram>,
    pub is_recording: bool,
    /// Datagrams that nodes have sent.
    pub count: usize,
    /// The most datagrams of a batch, its most bytes, and its highest priority.
    pub segments_most: usize,
    pub batch_most: usize,
    pub priority_most: u8,
    on_way: BTreeMap<(Time, u64), Datagram>,
    link_free: Vec<Time>,
    serial: u64,
}

impl World {
    pub fn new(configs: Vec<Config>) -> Self {
        let nodes = configs.into_iter().enumerate();
        Self::of(nodes.map(|(at, config)| Node::new(at, config)).collect())
    }

    /// A world of nodes that were made otherwise.
    pub fn of(nodes: Vec<Node>) -> Self {
        Self {
            link_free: vec![Time::default(); nodes.len()],
            nodes,
            now: Time::from_nanos(1_000_000_000),
            rule: Box::new(|_, _| Verdict::Deliver),
            latency: Duration::from_micros(10),
            rate: 0,
            trims_above: 0,
            queue_max: 0,
            sent: Vec::new(),
            is_recording: false,
            count: 0,
            segments_most: 0,
            batch_most: 0,
            priority_most: 0,
            on_way: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Node 0 is a client, node 1 a server.
    pub fn pair(client: Config, mut server: Config) -> Self {
        server.accept = true;
        Self::new(vec![client, server])
    }

    /// A pair with defaults and a live session: its index at the client and at the server.
    pub fn connected() -> (Self, SessionIndex, SessionIndex) {
        Self::connected_with(Config::default(), Config::default())
    }

    pub fn connected_with(client: Config, server: Config) -> (Self, SessionIndex, SessionIndex) {
        let mut world = Self::pair(client, server);
        let (at_client, at_server) = world.connect(0, 1).unwrap();
        (world, at_client, at_server)
    }

    /// Node 0 is a server that answers with nothing, the others are its clients, on links of 10
    /// Gb/s; and the clients' sessions.
    pub fn star(clients: usize) -> (Self, Vec<SessionIndex>) {
        let mut server = ethernet();
        server.accept = true;
        let configs = std::iter::once(server).chain((0..clients).map(|_| ethernet()));
        let mut world = Self::new(configs.collect());
        world.nodes[0].application = Box::new(|_| Answer::Reply(Bytes::new()));
        let sessions = (1..=clients).map(|client| world.connect(client, 0).unwrap().0).collect();
        world.rate = 1_250;
        (world, sessions)
    }

    /// Connects, and waits until both ends are live and the datagram size is found.
    pub fn connect(
        &mut self,
        client: usize,
        server: usize,
    ) -> Result<(SessionIndex, SessionIndex), ConnectError> {
        self.start_connect(client, server);
        let outcome = self.wait(client, |event| match event {
            Event::Connected { session, .. } => Some(Ok(*session)),
            Event::ConnectFailed { error, .. } => Some(Err(error.clone())),
            _ => None,
        });
        let at_client = outcome?;
        self.run_for(Duration::from_millis(400));
        // Through loss there may have been an attempt before, that the client gave up.
        let mut at_server = None;
        while let Some(session) = self.nodes[server].event(|event| match event {
            Event::Accepted { session, .. } => Some(*session),
            _ => None,
        }) {
            at_server = Some(session);
        }
        Ok((at_client, at_server.expect("both ends are live")))
    }

    pub fn start_connect(&mut self, client: usize, server: usize) -> smt_proto::ConnectId {
        let path = Path::to(self.nodes[server].address);
        let deadline = Duration::from_secs(5);
        let endpoint = &mut self.nodes[client].endpoint;
        let id = endpoint.connect(self.now, path, "server", deadline);
        let id = id.unwrap();
        self.flush();
        id
    }

    /// Makes a call without waiting for it.
    pub fn call(&mut self, node: usize, session: SessionIndex, body: Bytes) -> RpcId {
        let endpoint = &mut self.nodes[node].endpoint;
        let rpc = endpoint.call(self.now, session, body, None).unwrap();
        self.flush();
        rpc
    }

    /// Begins calls that may leave together: nothing leaves before time passes.
    pub fn start_calls(
        &mut self,
        node: usize,
        session: SessionIndex,
        bodies: impl IntoIterator<Item = Bytes>,
    ) -> Vec<RpcId> {
        let (now, endpoint) = (self.now, &mut self.nodes[node].endpoint);
        bodies.into_iter().map(|body| endpoint.call(now, session, body, None).unwrap()).collect()
    }

    pub fn send_one_way(&mut self, node: usize, session: SessionIndex, body: Bytes) -> RpcId {
        let endpoint = &mut self.nodes[node].endpoint;
        let rpc = endpoint.send_one_way(self.now, session, body, None);
        let rpc = rpc.unwrap();
        self.flush();
        rpc
    }

    /// How a call ends.
    pub fn outcome(&mut self, node: usize, rpc: RpcId) -> Result<Bytes, CallError> {
        self.wait(node, |event| match event {
            Event::Reply { rpc: of, body, .. } if *of == rpc => Some(Ok(body.clone())),
            Event::CallFailed { rpc: of, error } if *of == rpc => Some(Err(error.clone())),
            _ => None,
        })
    }

    /// How a one-way message ends.
    pub fn one_way_outcome(&mut self, node: usize, rpc: RpcId) -> OneWayOutcome {
        self.wait(node, |event| match event {
            Event::OneWayDone { rpc: of, outcome } if *of == rpc => Some(outcome.clone()),
            _ => None,
        })
    }

    /// Runs until a node has an event that fits, at most ten virtual minutes.
    #[track_caller]
    pub fn wait<T>(&mut self, node: usize, fits: impl Fn(&Event) -> Option<T>) -> T {
        let end = self.now + Duration::from_secs(600);
        loop {
            if let Some(found) = self.nodes[node].event(&fits) {
                return found;
            }
            assert!(
                self.step(end) || self.nodes[node].events.iter().any(|event| fits(event).is_some()),
                "node {node} waits in vain; it has {:?}",
                self.nodes[node].events
            );
        }
    }

    /// Lets time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
    }

    /// Does what happens next, if it does before `end`.
    pub fn step(&mut self, end: Time) -> bool {
        self.flush();
        let timers = self.nodes.iter().filter_map(|node| {
            let (due, _) = node.endpoint.poll_timeout()?;
            Some(due)
        });
        let arrival = self.on_way.keys().next().map(|(time, _)| *time);
        let Some(next) = timers.chain(arrival).min().filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.on_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let datagram = entry.remove();
            self.hand_in(&datagram);
        }
        for node in &mut self.nodes {
            node.endpoint.handle_timeout(self.now);
            let due = node.endpoint.poll_timeout();
            assert!(
                due.is_none_or(|(due, _)| due > self.now),
                "a timer that is due was not served: {due:?} at {:?}",
                self.now
            );
        }
        self.flush();
        true
    }

    /// Takes the next datagram off the network, wherever it is.
    pub fn take_arrival(&mut self) -> Option<Datagram> {
        Some(self.on_way.pop_first()?.1)
    }

    /// Gives a datagram to its node now.
    pub fn hand_in(&mut self, datagram: &Datagram) {
        // A forged datagram may come from an address without a node.
        let from = self.nodes.get(datagram.from);
        let from = from.map_or_else(|| address_of(datagram.from), |node| node.address);
        let path = Path::between(from, self.nodes[datagram.to].address.ip());
        let node = &mut self.nodes[datagram.to];
        let marks = Marks { trimmed: datagram.is_trimmed, ..Marks::NONE };
        let mut bytes = datagram.bytes.clone();
        let unsealed = node.sealer.as_ref().and_then(|sealer| sealer.open(&bytes));
        let mut spi = None;
        if let Some((of, datagram)) = unsealed {
            (spi, bytes) = (Some(of), datagram);
        }
        let opener = node.opener.as_mut();
        let opened = opener.map_or_else(Vec::new, |open| open(&mut bytes));
        let arrival = Arrival::datagram(path, &bytes).with_marks(marks);
        let arrival = arrival.with_opened(&opened).with_spi(spi);
        node.endpoint.handle_arrival(self.now, arrival);
        self.flush();
    }

    /// Takes everything that the nodes have to say.
    pub fn flush(&mut self) {
        for at in 0..self.nodes.len() {
            let mut rounds = 0;
            loop {
                let any = self.nodes[at].take_events(self.now);
                if !self.take_transmits(at) && !any {
                    break;
                }
                rounds += 1;
                assert!(rounds < 1_000_000, "node {at} never falls silent");
            }
        }
    }

    fn take_transmits(&mut self, from: usize) -> bool {
        let mut transmits = 0;
        loop {
            let node = &mut self.nodes[from];
            let Some(transmit) = node.endpoint.poll_transmit(self.now, &mut node.buffer) else {
                return transmits > 0;
            };
            transmit.assert_valid();
            transmits += 1;
            assert!(transmits < 100_000, "poll_transmit spins");
            let to =
                (0..self.nodes.len()).find(|to| self.nodes[*to].address == transmit.path.remote);
            let to = to.expect("a known address");
            let node = &self.nodes[from];
            assert!(node.buffer.len() <= 65_507, "a transmit that no socket takes");
            let segments: Vec<Vec<u8>> =
                transmit.segments(&node.buffer).map(<[u8]>::to_vec).collect();
            assert!(segments.len() <= 64, "more segments than a kernel takes");
            self.segments_most = self.segments_most.max(segments.len());
            self.batch_most = self.batch_most.max(self.nodes[from].buffer.len());
            self.priority_most = self.priority_most.max(transmit.priority);
            for mut bytes in segments {
                if let Some(association) = transmit.association {
                    let sealer = self.nodes[from].sealer.as_ref();
                    let sealed = sealer.expect("a carrier that seals").seal(association, &bytes);
                    // A batch under an association that was removed is lost.
                    let Some(sealed) = sealed else { continue };
                    bytes = sealed;
                }
                let at = self.now;
                self.send(Datagram { at, from, to, bytes, is_trimmed: false });
            }
        }
    }

    /// Puts a datagram on the network, under the rule.
    fn send(&mut self, datagram: Datagram) {
        self.count += 1;
        if self.is_recording {
            self.sent.push(datagram.clone());
        }
        let mut injected = Vec::new();
        let verdict = (self.rule)(&datagram, &mut injected);
        for other in injected {
            self.carry(other, Duration::ZERO);
        }
        match verdict {
            Verdict::Deliver => self.carry(datagram, Duration::ZERO),
            Verdict::Drop => {}
            Verdict::Trim => self.carry(datagram.trimmed(), Duration::ZERO),
            Verdict::Duplicate => {
                self.carry(datagram.clone(), Duration::ZERO);
                self.carry(datagram, Duration::from_micros(7));
            }
            Verdict::Delay(by) => self.carry(datagram, by),
            Verdict::Replace(others) => {
                for bytes in others {
                    let other = Datagram { bytes, ..datagram.clone() };
                    self.carry(other, Duration::ZERO);
                }
            }
        }
    }

    /// Puts a datagram on the network, past the rule.
    pub fn carry(&mut self, datagram: Datagram, later: Duration) {
        let mut arrival = self.now + self.latency + later;
        let nanos = datagram.bytes.len() as u64 * 1_000;
        if let Some(nanos) = nanos.checked_div(self.rate) {
            let link = &mut self.link_free[datagram.to];
            let waiting = link.since(arrival).as_nanos() as u64 * self.rate / 1_000;
            let is_cut = self.trims_above > 0 && waiting > self.trims_above;
            if is_cut && datagram.data().is_some() {
                self.serial += 1;
                self.on_way.insert((arrival, self.serial), datagram.trimmed());
                return;
            }
            self.queue_max = self.queue_max.max(waiting);
            *link = arrival.max(*link) + Duration::from_nanos(nanos);
            arrival = *link;
        }
        self.serial += 1;
        self.on_way.insert((arrival, self.serial), datagram);
    }

    /// The recorded datagrams, one line each.
    pub fn trace(&self) -> String {
        let lines: Vec<String> = self.sent.iter().map(Datagram::line).collect();
        lines.join("\n")
    }
}
