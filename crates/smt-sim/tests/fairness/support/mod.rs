// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The world of all scenarios: a server, a greedy host and honest ones in one rack, and what is at
//! their cables.

pub(crate) mod flood;
pub(crate) mod hoard;
pub(crate) mod hoarder;
pub(crate) mod sender;
pub(crate) mod server;
pub(crate) mod slow;
pub(crate) mod visitor;

use std::sync::Arc;
use std::time::Duration;

use smt_handshake::HmacTokens;
use smt_proto::{Config, Endpoint, Time};
use smt_sim::Random;
use smt_sim::crypto::{Credentials, SeededTls};
use smt_sim::net::{Burst, Host, HostId, Machine, Network, Packet, SmtHost, Topology, World};
use smt_testkit::NullCipher;

use flood::Flood;
use hoard::Hoard;
use sender::Sender;
use server::Server;
use visitor::Visitor;

use crate::SEED;

/// Whatever is at a cable.
pub(crate) enum Place {
    Flood(Flood),
    Hoard(Hoard),
    Sender(SmtHost<Sender>),
    Server(SmtHost<Server>),
    Visitors(Machine<SmtHost<Visitor>>),
}

impl Place {
    fn host(&self) -> &dyn Host {
        match self {
            Self::Flood(host) => host,
            Self::Hoard(host) => host,
            Self::Sender(host) => host,
            Self::Server(host) => host,
            Self::Visitors(host) => host,
        }
    }

    fn host_mut(&mut self) -> &mut dyn Host {
        match self {
            Self::Flood(host) => host,
            Self::Hoard(host) => host,
            Self::Sender(host) => host,
            Self::Server(host) => host,
            Self::Visitors(host) => host,
        }
    }

    /// The server, where it must be.
    pub(crate) fn server(&self) -> &SmtHost<Server> {
        match self {
            Self::Server(host) => host,
            _ => panic!("no server is at this cable"),
        }
    }

    /// The hoard, where it must be.
    pub(crate) fn hoard(&self) -> &Hoard {
        match self {
            Self::Hoard(host) => host,
            _ => panic!("no hoard is at this cable"),
        }
    }

    /// The flood, where it must be.
    pub(crate) fn flood(&self) -> &Flood {
        match self {
            Self::Flood(host) => host,
            _ => panic!("no flood is at this cable"),
        }
    }

    /// The visitors, where they must be.
    pub(crate) fn visitors(&self) -> impl Iterator<Item = &Visitor> {
        match self {
            Self::Visitors(machine) => machine.sockets().map(|host| &host.application),
            _ => panic!("no visitors are at this cable"),
        }
    }

    /// The sender, where it must be.
    pub(crate) fn sender(&mut self) -> &mut SmtHost<Sender> {
        match self {
            Self::Sender(host) => host,
            _ => panic!("no sender is at this cable"),
        }
    }
}

impl Host for Place {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.host_mut().receive(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host_mut().handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.host().next_timeout()
    }

    fn transmit(&mut self, now: Time) -> Option<Burst> {
        self.host_mut().transmit(now)
    }
}

/// Makes endpoints with real handshakes. Ciphers are null ones: what is sealed matters to none of
/// the scenarios.
pub(crate) struct Maker {
    credentials: Credentials,
    random: Random,
}

impl Maker {
    pub(crate) fn new() -> Self {
        println!("seed {SEED}");
        Self { credentials: Credentials::new(HOSTS, 0), random: Random::new(SEED) }
    }

    /// The endpoint of a socket.
    pub(crate) fn endpoint(&mut self, socket: HostId, mut config: Config) -> Endpoint {
        config.boot = self.random.any() as u32;
        let suites = [smt_record::Suite::Aes128Gcm];
        let random = self.random.fork();
        let tls = SeededTls::new(&self.credentials, socket.cable(), &suites, random);
        let mut key = [0; 32];
        self.random.fill(&mut key);
        let mut endpoint = Endpoint::new(config, Arc::new(tls), Arc::new(HmacTokens::new(key)));
        endpoint.set_aead_provider(Arc::new(NullCipher));
        endpoint
    }

    /// The server, for so many sessions.
    pub(crate) fn server(&mut self, sessions_max: usize) -> Place {
        let mut config = Config::default();
        config.accept = true;
        config.sessions_max = sessions_max;
        // All hosts show one certificate, and the shares of addresses are tried here.
        config.sessions_of_identity_max = Some(sessions_max);
        let endpoint = self.endpoint(SERVER, config);
        Place::Server(SmtHost::new(SERVER, endpoint, Server))
    }

    /// A client that sends what the scenario says.
    pub(crate) fn sender(&mut self, host: HostId) -> Place {
        let endpoint = self.endpoint(host, Config::default());
        Place::Sender(SmtHost::new(host, endpoint, Sender::default()))
    }

    /// A host of visitors, one at each socket.
    pub(crate) fn visitors(
        &mut self,
        visitors: impl IntoIterator<Item = (HostId, Visitor)>,
    ) -> Place {
        let sockets = visitors.into_iter().map(|(socket, visitor)| {
            let endpoint = self.endpoint(socket, Config::default());
            (socket, SmtHost::new(socket, endpoint, visitor))
        });
        Place::Visitors(Machine::new(sockets))
    }
}

/// These at the cables of a rack, from the first on, at this rate.
pub(crate) fn world(places: impl IntoIterator<Item = Place>, rate: u64) -> World<Place> {
    // A rack of the Homa papers' datacenter: 250 ns in the switch, 1.5 us in hosts.
    let topology = Topology { racks: 1, hosts_per_rack: HOSTS, ..Topology::datacenter(rate, rate) };
    let network = Network::new(&topology, &mut Random::new(SEED));
    World::new(network, places.into_iter().collect())
}

/// Lets virtual time pass.
pub(crate) fn run_for(world: &mut World<Place>, duration: Duration) {
    let end = world.network.now() + duration;
    world.run_until(end);
}

/// All visits of these began in time; the slowest took so long.
pub(crate) fn slowest_of<'a>(
    visitors: impl Iterator<Item = &'a Visitor>,
    visits_least: usize,
) -> Duration {
    let visits: Vec<_> = visitors.flat_map(|visitor| &visitor.visits).collect();
    assert!(visits.len() >= visits_least, "only {} visits", visits.len());
    let slowest = visits.iter().map(|visit| match visit.took {
        Some(took) => took,
        None => panic!("a visit that began at {:?} came to nothing", visit.began),
    });
    let slowest = slowest.max().unwrap_or_default();
    assert!(slowest <= IN_TIME, "a visit took {slowest:?}");
    slowest
}

/// The time that an honest client has, to be connected and to have the reply to its first call.
pub(crate) const IN_TIME: Duration = Duration::from_millis(100);
/// Bits a second of all cables, unless a scenario is about others.
pub(crate) const RATE: u64 = 10_000_000_000;
/// The server's cable.
pub(crate) const SERVER: HostId = HostId(0);
/// The greedy host's cable, or that of the slow client.
pub(crate) const GREEDY: HostId = HostId(1);
/// Cables of honest hosts.
pub(crate) const HONEST: HostId = HostId(2);
pub(crate) const OTHER: HostId = HostId(3);
/// The first of the cables that are nobody else's.
pub(crate) const FREE: u32 = 4;
const HOSTS: u32 = 40;
