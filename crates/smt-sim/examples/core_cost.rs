// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures the cost of an RPC in the protocol core: two endpoints in memory, one thread, no
//! sockets, no clock, no loss.
//!
//!     cargo run --release -p smt-sim --example core_cost -- \
//!         BYTES [AT_ONCE [RPCS [DATAGRAM [aes|null [SESSIONS]]]]]
//!
//! Requests and replies have BYTES bytes each, and calls take the sessions in turn. A run under
//! `valgrind --tool=callgrind` counts instructions repeatably.

use std::env::args;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smt_carrier::{Arrival, Path};
use smt_handshake::HmacTokens;
use smt_proto::{Config, Endpoint, Event, Time, TransmitBuffer};
use smt_testkit::{FakeKeyExchange, NullCipher};
use smt_wire::SessionIndex;

fn main() {
    let number = |place, default| args().nth(place).map_or(default, |text| parsed(&text));
    let (bytes, at_once, rpcs) = (number(1, 64), number(2, 100), number(3, 200_000));
    let is_null = args().nth(5).is_some_and(|cipher| cipher == "null");
    let mut pair = Pair::new(number(4, 65_507) as u16, is_null);
    pair.connect(number(6, 1));
    let request = Bytes::from(vec![7; bytes]);
    pair.run(rpcs / 10, at_once, &request);
    let began = Instant::now();
    let datagrams = pair.datagrams;
    pair.run(rpcs, at_once, &request);
    let each = |count: f64| count / rpcs as f64;
    println!(
        "{bytes} B, {at_once} at once, {rpcs} RPCs: {:.3} us an RPC (both sides), {:.3} datagrams",
        each(began.elapsed().as_secs_f64() * 1e6),
        each((pair.datagrams - datagrams) as f64),
    );
}

fn parsed(text: &str) -> usize {
    text.parse().expect("a number")
}

/// A client, a server, and what is between them.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    sessions: Vec<SessionIndex>,
    now: Time,
    buffer: TransmitBuffer,
    datagrams: usize,
}

impl Pair {
    fn new(datagram_limit: u16, is_null: bool) -> Self {
        let endpoint = |accept, key| {
            let mut config = Config::default();
            config.accept = accept;
            config.datagram_limit = datagram_limit;
            let tokens = Arc::new(HmacTokens::new([key; 32]));
            let mut endpoint = Endpoint::new(config, Arc::new(FakeKeyExchange::unproven()), tokens);
            if is_null {
                endpoint.set_aead_provider(Arc::new(NullCipher));
            }
            endpoint
        };
        Self {
            client: endpoint(false, 1),
            server: endpoint(true, 2),
            sessions: Vec::new(),
            // Cookies are valid for seconds since the beginning.
            now: Time::default() + Duration::from_secs(60),
            buffer: TransmitBuffer::default(),
            datagrams: 0,
        }
    }

    /// Begins sessions, and lets the sizes of datagrams be discovered.
    fn connect(&mut self, sessions: usize) {
        let (path, patience) = (to_server(), Duration::from_secs(5));
        while self.sessions.len() < sessions {
            let begun = self.client.connect(self.now, path, "server", patience);
            begun.expect("a session may begin");
            self.turn(&mut 0);
            self.turn(&mut 0);
        }
        for _ in 0..1_000 {
            self.now = self.now + Duration::from_millis(1);
            self.turn(&mut 0);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
        }
    }

    /// Makes `rpcs` calls, `at_once` at a time.
    fn run(&mut self, rpcs: usize, at_once: usize, request: &Bytes) {
        let (mut begun, mut ended) = (0, 0);
        while ended < rpcs {
            while begun < rpcs && begun - ended < at_once {
                let session = self.sessions[begun % self.sessions.len()];
                let call = self.client.call(self.now, session, request.clone(), None);
                call.expect("nothing stands in the way of a call");
                begun += 1;
            }
            self.turn(&mut ended);
        }
    }

    /// All that is ready goes to the server, and what it answers comes back.
    fn turn(&mut self, ended: &mut usize) {
        self.now = self.now + Duration::from_micros(20);
        let now = self.now;
        self.datagrams += deliver(
            now,
            &mut self.client,
            &mut self.server,
            to_client(),
            &mut self.buffer,
        );
        while let Some(event) = self.server.poll_event() {
            if let Event::Request { rpc, body, .. } = event {
                self.server.reply(now, rpc, body).expect("the call is live");
            }
        }
        self.datagrams += deliver(
            now,
            &mut self.server,
            &mut self.client,
            to_server(),
            &mut self.buffer,
        );
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected { session, .. } => self.sessions.push(session),
                Event::Reply { .. } => *ended += 1,
                other => panic!("a call has ended otherwise: {other:?}"),
            }
        }
    }
}

/// Datagrams delivered.
fn deliver(
    now: Time,
    from: &mut Endpoint,
    to: &mut Endpoint,
    path: Path,
    buffer: &mut TransmitBuffer,
) -> usize {
    let mut datagrams = 0;
    while let Some(transmit) = from.poll_transmit(now, buffer) {
        for datagram in buffer.chunks(transmit.segment_size) {
            to.handle_arrival(now, Arrival::datagram(path, datagram));
            datagrams += 1;
        }
    }
    datagrams
}

fn to_server() -> Path {
    Path::to(([192, 0, 2, 1], 17_379).into())
}

fn to_client() -> Path {
    Path::to(([192, 0, 2, 2], 40_000).into())
}
