// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT as a transport of a datacenter: the production core with the null cipher.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_handshake::HmacTokens;
use smt_proto::{
    Config, ConnectId, Endpoint, Event, Pull, PullOrder, ShortestRemainingFirst, Statistics, Time,
};
use smt_wire::{DataHeader, SessionIndex};

use super::messenger::{Arrival, Messenger};
use crate::net::link::Link;
use crate::net::packet::{HostId, Packet, wire_len};
use crate::net::smt_host::{Application, SmtHost};
use crate::net::topology::Topology;
use crate::net::world::{Burst, Host};
use smt_testkit::{FakeKeyExchange, NullCipher};

/// A host that sends one-way messages by SMT.
pub struct SmtMessenger {
    host: SmtHost<Sessions>,
    /// The bytes of all messages.
    zeros: Bytes,
    /// Bytes that keep the longest path busy.
    round_trip: u32,
}

/// The application: it knows whom each session leads to, and what has arrived.
#[derive(Default)]
struct Sessions {
    connecting: BTreeMap<ConnectId, HostId>,
    to: BTreeMap<HostId, SessionIndex>,
    from: BTreeMap<SessionIndex, HostId>,
    wanted: usize,
    arrivals: Vec<Arrival>,
}

impl Sessions {
    fn insert(&mut self, session: SessionIndex, peer: HostId) {
        self.to.insert(peer, session);
        self.from.insert(session, peer);
    }
}

impl SmtMessenger {
    /// A host; `zeros` is at least as long as the longest message.
    pub fn new(id: HostId, config: Config, zeros: Bytes) -> Self {
        let round_trip = config.unscheduled;
        let tokens = Arc::new(HmacTokens::new([7; 32]));
        let mut endpoint = Endpoint::new(config, Arc::new(FakeKeyExchange::unproven()), tokens);
        endpoint.set_aead_provider(Arc::new(NullCipher));
        let window = granted_window(round_trip);
        let grants = ShortestRemainingFirst::new(OVERCOMMIT, window..=window);
        endpoint.set_grant_policy(Box::new(grants));
        Self { host: SmtHost::new(id, endpoint, Sessions::default()), zeros, round_trip }
    }

    /// The same, pulling at the rate of its link (NDP).
    #[must_use]
    pub fn pulling(mut self, link: Link, order: PullOrder) -> Self {
        let datagram = link.payload_max.min(usize::from(DATAGRAM_MAX));
        let payload = (datagram - DataHeader::LEN) as u64;
        let rate = link.rate * payload / wire_len(datagram);
        let pull = Pull::new(rate, self.round_trip).in_order(order);
        self.host.endpoint.set_pull_policy(Box::new(pull));
        self
    }

    /// The configuration for hosts that are wired so: a record for each packet, and without a grant
    /// what keeps the longest path busy, as the Homa papers' hosts have it.
    pub fn config(topology: &Topology) -> Config {
        let datagram = topology.edge.payload_max.min(usize::from(DATAGRAM_MAX)) as u16;
        let round_trip = topology.round_trip_bytes();
        let mut config = Config::default();
        config.accept = true;
        config.accepts_without_cookie = 100_000;
        config.index_bits = 16;
        config.record_size = datagram - RECORD_SURROUNDINGS;
        config.message_limit = 32 << 20;
        config.unscheduled = round_trip;
        config.incoming_max = granted_window(round_trip) * OVERCOMMIT as u32;
        config.datagram_limit = datagram;
        config.batch_max = 3_000;
        config.window = 1_024;
        config.idle_life = Duration::from_secs(3_600);
        config
    }
}

impl Application for Sessions {
    fn handle(&mut self, _now: Time, event: Event, _endpoint: &mut Endpoint) {
        match event {
            Event::Connected { connect, session, .. } => {
                if let Some(peer) = self.connecting.remove(&connect) {
                    self.insert(session, peer);
                }
            }
            Event::Accepted { session, path, .. } => {
                if let Some(peer) = HostId::of(path.remote) {
                    self.insert(session, peer);
                }
            }
            Event::OneWay { rpc, body, .. } => {
                if let Some(from) = self.from.get(&rpc.session) {
                    self.arrivals.push(Arrival {
                        from: *from,
                        name: rpc.id.0,
                        length: body.len() as u32,
                    });
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Time, _endpoint: &mut Endpoint) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

impl Host for SmtMessenger {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.host.receive(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.host.next_timeout()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        self.host.transmit(now)
    }
}

impl Messenger for SmtMessenger {
    fn prepare(&mut self, now: Time, peers: &[HostId]) {
        let now = self.host.clock.at(now);
        let own = self.host.id();
        let sessions = &mut self.host.application;
        sessions.wanted = peers.len();
        // One session for both directions: who has the smaller number begins it.
        for peer in peers.iter().filter(|peer| own < **peer) {
            let endpoint = &mut self.host.endpoint;
            let path = Path::to(peer.address());
            if let Ok(connect) = endpoint.connect(now, path, "host", CONNECT_DEADLINE) {
                sessions.connecting.insert(connect, *peer);
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.host.application.to.len() == self.host.application.wanted
    }

    fn send(&mut self, now: Time, to: HostId, length: u32) -> Option<u64> {
        let session = *self.host.application.to.get(&to)?;
        let (now, body) = (self.host.clock.at(now), self.zeros.slice(..length as usize));
        let sent = self.host.endpoint.send_one_way(now, session, body, None);
        sent.ok().map(|rpc| rpc.id.0)
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.host.endpoint.statistics())
    }

    fn take_arrivals(&mut self, taken: &mut Vec<Arrival>) {
        let arrivals = &mut self.host.application.arrivals;
        // Nearly always there is none.
        if !arrivals.is_empty() {
            taken.append(arrivals);
        }
    }
}

/// The bytes that a message may have granted and not arrived, if `round_trip` bytes keep a path
/// busy.
///
/// A grant waits until it is worth a quarter of the window, so that three quarters are surely on
/// their way. The Homa papers' 10,000 B at 10 Gb/s so lack 2,500 B, two packets: no more is lacking
/// at other rates, where a quarter is more.
pub(super) fn granted_window(round_trip: u32) -> u32 {
    let busy = round_trip.saturating_sub(2_500);
    round_trip.max(busy + busy / 3)
}

/// Messages granted at once.
const OVERCOMMIT: usize = 7;
/// UDP payload of a frame of 9,000 bytes; a record fits into it.
const DATAGRAM_MAX: u16 = 8_972;
/// A record and its overhead (22) fill a datagram behind the DATA header (36): 1,414 of 1,472
/// bytes.
pub(super) const RECORD_SURROUNDINGS: u16 = 58;
/// Nothing is lost while sessions begin, but thousands begin at once.
const CONNECT_DEADLINE: Duration = Duration::from_secs(60);
