// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A shard: a client and a server over memory, driven in turn by one thread.

use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt::pump::Pump;
use smt_carrier::{Carrier, Path, Wait};
use smt_handshake::{HmacTokens, TlsProvider};
use smt_io::MemoryCarrier;
use smt_proto::{Config, Endpoint, Event, Time};
use smt_wire::{SessionIndex, Shard};

use crate::certificates::SERVER_NAME;
use crate::failure::Failure;
use crate::smt_tls::provider;

/// The state that all shards of a process share, as those of a real endpoint do.
pub(super) struct Common {
    client: Arc<TlsProvider>,
    server: Arc<TlsProvider>,
    tokens: Arc<HmacTokens>,
    began: Instant,
}

impl Common {
    pub(super) fn new(directory: &FilePath) -> Result<Self, Failure> {
        Ok(Self {
            client: Arc::new(provider(directory, false)?),
            server: Arc::new(provider(directory, true)?),
            tokens: Arc::new(HmacTokens::new([7; 32])),
            began: Instant::now(),
        })
    }
}

/// Both ends.
pub(super) struct Pair {
    client: End,
    server: End,
    session: SessionIndex,
    began: Instant,
}

impl Pair {
    /// Connects the client of shard `number` of `count` with its server.
    pub(super) fn connect(common: &Common, number: u16, count: u16) -> Result<Self, Failure> {
        let (at_client, at_server) = MemoryCarrier::pair();
        let remote = at_server.local_address();
        let mut config = Config::default();
        config.shard = Shard::new(number, count);
        let tokens = || Arc::clone(&common.tokens);
        let client = Endpoint::new(config.clone(), Arc::clone(&common.client) as _, tokens());
        config.accept = true;
        let server = Endpoint::new(config, Arc::clone(&common.server) as _, tokens());
        let mut pair = Self {
            client: End::new(client, at_client),
            server: End::new(server, at_server),
            session: SessionIndex(0),
            began: common.began,
        };
        pair.session = pair.establish(remote)?;
        Ok(pair)
    }

    /// Begins `calls` calls; each is followed by the next.
    pub(super) fn begin(&mut self, calls: usize, size: usize) -> Result<(), Failure> {
        let (now, body) = (self.now(), Bytes::from(vec![7; size]));
        for _ in 0..calls {
            let endpoint = &mut self.client.endpoint;
            endpoint.call(now, self.session, body.clone(), None)?;
        }
        Ok(())
    }

    /// Runs for `duration`; returns calls a second.
    pub(super) fn run(&mut self, duration: Duration) -> f64 {
        let began = Instant::now();
        let mut calls = 0;
        while began.elapsed() < duration {
            calls += self.turn();
        }
        f64::from(calls) / began.elapsed().as_secs_f64()
    }

    fn establish(&mut self, remote: SocketAddr) -> Result<SessionIndex, Failure> {
        let (now, path) = (self.now(), Path::to(remote));
        self.client.endpoint.connect(now, path, SERVER_NAME, CONNECT)?;
        loop {
            let now = self.now();
            self.client.send(now);
            self.server.receive(now);
            self.server.send(now);
            self.client.receive(now);
            match self.client.endpoint.poll_event() {
                Some(Event::Connected { session, .. }) => return Ok(session),
                Some(Event::ConnectFailed { error, .. }) => return Err(error.into()),
                _ => {}
            }
        }
    }

    /// Each end takes what has come, and sends; calls that have ended are made again. How many
    /// those were.
    fn turn(&mut self) -> u32 {
        let now = self.now();
        let (client, server) = (&mut self.client, &mut self.server);
        client.send(now);
        server.receive(now);
        while let Some(event) = server.endpoint.poll_event() {
            if let Event::Request { rpc, body, .. } = event {
                // Its caller is there.
                let _ = server.endpoint.reply(now, rpc, body);
            }
        }
        server.send(now);
        client.receive(now);
        let mut ended = 0;
        while let Some(event) = client.endpoint.poll_event() {
            if let Event::Reply { body, .. } = event {
                ended += 1;
                // There are fewer calls than the window has ids.
                let _ = client.endpoint.call(now, self.session, body, None);
            }
        }
        ended
    }

    /// Cookies are valid for seconds since the beginning: begin later than zero.
    fn now(&self) -> Time {
        Time::default() + (self.began.elapsed() + Duration::from_secs(60))
    }
}

/// An endpoint and its carrier.
struct End {
    endpoint: Endpoint,
    pump: Pump,
}

impl End {
    fn new(mut endpoint: Endpoint, carrier: MemoryCarrier) -> Self {
        endpoint.set_capabilities(carrier.capabilities());
        Self { endpoint, pump: Pump::new(Arc::new(carrier)) }
    }

    fn receive(&mut self, now: Time) {
        let endpoint = &mut self.endpoint;
        while let Ok(true) = self.pump.receive(endpoint, || now, Wait::Never) {}
        self.endpoint.handle_timeout(now);
    }

    fn send(&mut self, now: Time) {
        self.pump.flush(&mut self.endpoint, now);
    }
}

const CONNECT: Duration = Duration::from_secs(5);
