// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT with offload: the production core and driver. A context goes on by itself within a message,
//! and is set anew for another one; what is repeated in parts the CPU seals.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Capabilities, HeaderCopy, Path, Sealing};
use smt_handshake::HmacTokens;
use smt_nic::NicConfig;
use smt_nic_driver::{DriverConfig, NicKeys};
use smt_proto::{Config, Endpoint, Event, Time};
use smt_sim::Random;
use smt_sim::net::{Application, HostId, NicChoices, NicPort, SmtHost, WatchedEngine, World};
use smt_testkit::{CipherWatch, FakeKeyExchange, KeyWatch};
use smt_wire::SessionIndex;

use super::{AT_ONCE, MESSAGE, MESSAGES, Work, loss, network};

/// The application: it knows its session, and counts what has arrived.
#[derive(Default)]
struct App {
    session: Option<SessionIndex>,
    arrived: u32,
}

impl Application for App {
    fn handle(&mut self, _now: Time, event: Event, _endpoint: &mut Endpoint) {
        match event {
            Event::Connected { session, .. } => self.session = Some(session),
            Event::OneWay { body, .. } => {
                assert_eq!(body.len(), MESSAGE as usize, "a message has another length");
                self.arrived += 1;
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Time, _endpoint: &mut Endpoint) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

/// Nothing is watched: random cases do that (docs/NIC.md).
struct Unwatched;

impl CipherWatch for Unwatched {
    fn key(&self, _key: &[u8], _iv: &[u8; 12]) -> Box<dyn KeyWatch> {
        Box::new(Self)
    }
}

impl KeyWatch for Unwatched {}

fn host(id: u32, contexts_per_flow: usize) -> SmtHost<App> {
    let mut config = Config::default();
    config.accept = true;
    config.accepts_without_cookie = 10;
    let tokens = Arc::new(HmacTokens::new([id as u8; 32]));
    let exchange = Arc::new(FakeKeyExchange::unproven());
    let mut endpoint = Endpoint::new(config, exchange, tokens);
    let keys = NicKeys::new(16);
    let capabilities = Capabilities::new(1_472)
        .with_segments_max(64)
        .with_priorities(true)
        .with_headers(HeaderCopy::Replicated)
        .with_seals(Sealing::WholeRecords);
    endpoint.set_capabilities(capabilities);
    endpoint.set_key_store(Arc::<NicKeys>::clone(&keys));
    let mut host = SmtHost::new(HostId(id), endpoint, App::default());
    host.capabilities = Some(capabilities);
    let choices = NicChoices {
        driver: DriverConfig {
            queues: 1,
            receive_queues: 0,
            contexts_per_flow,
            ..DriverConfig::default()
        },
        device: NicConfig::default(),
        reset_chance: 0,
        batches_max: 1,
        interrupt_delay: Duration::ZERO,
    };
    let engine = WatchedEngine::new(Box::new(Unwatched));
    let random = Random::new(1);
    host.nic = Some(NicPort::new(choices, HostId(id).address(), keys, engine, random));
    host
}

/// Sends all messages with so many of a million packets lost.
pub(super) fn run(millionths: u32, contexts: usize) -> Work {
    let hosts = vec![host(0, contexts), host(1, contexts)];
    let mut world = World::new(network(), hosts);
    world.change(HostId(0), |host, now| {
        let path = Path::to(HostId(1).address());
        let connect = host.endpoint.connect(now, path, "host", CONNECT_DEADLINE);
        connect.expect("an attempt");
    });
    while world.hosts()[0].application.session.is_none() {
        world.step(FOREVER).expect("a session begins");
    }
    world.network.set_rule(loss(millionths));
    let body = Bytes::from(vec![7; MESSAGE as usize]);
    let begin = |world: &mut World<SmtHost<App>>, begun: &mut u32| {
        if *begun < MESSAGES {
            *begun += 1;
            world.change(HostId(0), |host, now| {
                let session = host.application.session.expect("a session");
                let sent = host.endpoint.send_one_way(now, session, body.clone(), None);
                sent.expect("room for a message");
            });
        }
    };
    let mut begun = 0;
    (0..AT_ONCE).for_each(|_| begin(&mut world, &mut begun));
    let mut arrived = 0;
    while arrived < MESSAGES {
        world.step(FOREVER).expect("messages are under way");
        while arrived < world.hosts()[1].application.arrived {
            arrived += 1;
            begin(&mut world, &mut begun);
        }
    }
    let nic = world.hosts()[0].nic.as_ref().expect("a NIC");
    let statistics = nic.statistics();
    Work {
        segments: statistics.segments_offloaded,
        resyncs: statistics.resyncs,
        sealed: nic.counters().records_sealed,
        reread_bytes: 0,
    }
}

const FOREVER: Time = Time::from_nanos(u64::MAX / 2);
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
