// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT's sans-IO core driven by one thread on each side, without the crate `smt` around it; with
//! encryption, and with the simulator's null cipher, which nothing can negotiate. The difference of
//! the two is the cost of encryption in the message transport.
//!
//! Replies of a turn leave together, after all that has come was taken. Waiting is nearly as the
//! crate's: spin for up to 100 us if the last wait was short, then block. The handshake is TLS in
//! both cases.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt::pump::Pump;
use smt_carrier::{Carrier, Path, ReceiveError, Wait};
use smt_handshake::HmacTokens;
use smt_io::{UdpCarrier, UdpOptions};
use smt_proto::{CloseCode, Config, Endpoint, Event, Time};
use smt_testkit::NullCipher;

use super::smt_calls::{SmtCall, SmtCalls};
use super::{Newcomer, Peer, Shape};
use crate::certificates::SERVER_NAME;
use crate::failure::Failure;
use crate::job::Setting;
use crate::load::{Callers, Exchange, Turns};
use crate::smt_tls::provider;
use crate::{frame, server};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmtCore {
    is_null: bool,
}

impl SmtCore {
    /// AES-128-GCM.
    pub(super) const ENCRYPTED: Self = Self { is_null: false };
    /// No encryption.
    pub(super) const NULL: Self = Self { is_null: true };
}

impl Peer for SmtCore {
    fn name(&self) -> &'static str {
        if self.is_null { "smt-core-null" } else { "smt-core" }
    }

    fn settings(&self) -> &'static str {
        if self.is_null {
            "as smt-core, with a null cipher: SMT without encryption (the handshake is still TLS)"
        } else {
            "SMT's core (smt-proto over smt-io) driven by one thread on each side, default configuration; all replies of a turn \
             leave together; to be compared with smt-core-null"
        }
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let carrier = UdpOptions::new().bind(address)?;
        server::listening(carrier.local_address())?;
        let mut driver = Driver::new(carrier, *self, setting, true)?;
        loop {
            driver.turn(LONG);
            while let Some(event) = driver.endpoint.poll_event() {
                if let Event::Request { rpc, body, .. } = event {
                    let now = driver.now();
                    // The caller may have gone.
                    let _ = driver.endpoint.reply(now, rpc, frame::answer(body));
                }
            }
        }
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let mut client = Client::open(*self, setting, server)?;
        for _ in 0..shape.connections_shared() {
            client.add_session(server)?;
        }
        Ok(Box::new(Turns::new(client, shape.callers)))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let mut client = Client::open(*self, setting, server)?;
        let request = frame::request(64, 64);
        Ok(Box::new(move || {
            client.add_session(server)?;
            client.begin(0, 0, &request)?;
            let mut ended = Vec::new();
            while ended.is_empty() {
                client.turn(LONG, &mut ended)?;
            }
            for session in client.open.sessions.drain(..) {
                client.driver.endpoint.close(session, CloseCode::Done);
            }
            Ok(())
        }))
    }
}

/// An endpoint and its socket.
struct Driver {
    endpoint: Endpoint,
    pump: Pump,
    began: Instant,
    is_spinning_worthwhile: bool,
}

impl Driver {
    fn new(
        carrier: UdpCarrier,
        peer: SmtCore,
        setting: &Setting,
        is_server: bool,
    ) -> Result<Self, Failure> {
        let mut config = Config::default();
        config.accept = is_server;
        let third = carrier.receive_buffer_bytes() / 3;
        config.incoming_max = config.incoming_max.min(third as u32).max(config.unscheduled);
        let provider = Arc::new(provider(&setting.directory, is_server)?);
        let tokens = Arc::new(HmacTokens::new([7; 32]));
        let mut endpoint = Endpoint::new(config, provider, tokens);
        if peer.is_null {
            endpoint.set_aead_provider(Arc::new(NullCipher));
        }
        endpoint.set_capabilities(carrier.capabilities().with_priorities(false));
        Ok(Self {
            endpoint,
            pump: Pump::new(Arc::new(carrier)),
            began: Instant::now(),
            is_spinning_worthwhile: true,
        })
    }

    fn now(&self) -> Time {
        time_since(self.began)
    }

    /// Sends all that is ready, waits, takes all that has come.
    fn turn(&mut self, wait: Duration) {
        let now = self.now();
        self.pump.flush(&mut self.endpoint, now);
        let due = self.pump.next_wake(&self.endpoint, now);
        let wait = due.map_or(wait, |due| wait.min(due.since(now)));
        for batch in 0..BATCHES_PER_TURN {
            let outcome = match batch {
                0 => self.wait(wait),
                _ => self.receive(Wait::Never),
            };
            if matches!(outcome, Ok(false)) {
                break;
            }
        }
        self.endpoint.handle_timeout(self.now());
    }

    /// Takes one batch in; whether there was one.
    fn receive(&mut self, wait: Wait) -> Result<bool, ReceiveError> {
        let began = self.began;
        let now = || time_since(began);
        self.pump.receive(&mut self.endpoint, now, wait)
    }

    fn wait(&mut self, wait: Duration) -> Result<bool, ReceiveError> {
        let began = Instant::now();
        loop {
            let outcome = self.receive(Wait::Never);
            if !matches!(outcome, Ok(false)) || began.elapsed() >= wait {
                return outcome;
            }
            if !self.is_spinning_worthwhile || began.elapsed() >= SPIN {
                break;
            }
            std::thread::yield_now();
        }
        let rest = Wait::AtMost(wait.saturating_sub(began.elapsed()));
        let outcome = self.receive(rest);
        self.is_spinning_worthwhile = matches!(outcome, Ok(true)) && began.elapsed() < SPIN * 4;
        outcome
    }
}

/// Cookies are valid for seconds since the beginning: begin later than zero.
fn time_since(began: Instant) -> Time {
    Time::default() + (began.elapsed() + Duration::from_secs(60))
}

struct Client {
    driver: Driver,
    open: SmtCalls,
}

impl Client {
    fn open(peer: SmtCore, setting: &Setting, server: SocketAddr) -> Result<Self, Failure> {
        let carrier = UdpOptions::new().connect(server)?;
        let driver = Driver::new(carrier, peer, setting, false)?;
        Ok(Self { driver, open: SmtCalls::default() })
    }

    fn add_session(&mut self, server: SocketAddr) -> Result<(), Failure> {
        let (now, path) = (self.driver.now(), Path::to(server));
        self.driver.endpoint.connect(now, path, SERVER_NAME, CONNECT)?;
        let held = self.open.sessions.len();
        // The endpoint itself gives up in time.
        while self.open.sessions.len() == held {
            self.turn(LONG, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Begins a call, or lets it wait for an id.
    fn start(&mut self, call: SmtCall) -> Result<(), Failure> {
        let (now, endpoint) = (self.driver.now(), &mut self.driver.endpoint);
        let begin = |session, request| endpoint.call(now, session, request, None);
        self.open.begin(call, begin)
    }
}

impl Exchange for Client {
    fn connections(&self) -> usize {
        self.open.sessions.len()
    }

    fn begin(&mut self, connection: usize, number: u32, request: &Bytes) -> Result<(), Failure> {
        let request = request.clone();
        self.start(SmtCall { connection, number, request })
    }

    fn turn(&mut self, wait: Duration, ended: &mut Vec<(u32, usize)>) -> Result<(), Failure> {
        self.driver.turn(wait);
        while let Some(event) = self.driver.endpoint.poll_event() {
            self.open.take(event, ended)?;
        }
        for call in self.open.unblocked() {
            self.start(call)?;
        }
        Ok(())
    }
}

/// As the crate `smt`.
const SPIN: Duration = Duration::from_micros(100);
/// Batches taken before replies leave.
const BATCHES_PER_TURN: usize = 16;
const LONG: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
