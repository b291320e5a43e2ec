// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client, a server that echoes, and memory between them: one thread, no sockets, no clock, no
//! loss.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::{Arrival, Path};
use smt_proto::{Config, Endpoint, Event, Time, TransmitBuffer};
use smt_wire::SessionIndex;

use crate::{FakeKeyExchange, FakeTokenMac, NullCipher};

/// Two endpoints and what is between them.
pub struct EndpointPair {
    /// The end that calls.
    pub client: Endpoint,
    /// The client's sessions, all with the server.
    pub sessions: Vec<SessionIndex>,
    /// The time of both.
    pub now: Time,
    /// Datagrams that have arrived, at either end.
    pub datagrams: usize,
    server: Endpoint,
    to_server: Wire,
    to_client: Wire,
    buffer: TransmitBuffer,
}

/// Datagrams on their way, in memory that is used again.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl EndpointPair {
    /// A pair without sessions. With `is_null` records are not encrypted.
    #[must_use]
    pub fn new(datagram_limit: u16, is_null: bool) -> Self {
        let endpoint = |accept, key| {
            let mut config = Config::default();
            config.accept = accept;
            config.datagram_limit = datagram_limit;
            let exchange = Arc::new(FakeKeyExchange::unproven());
            let mut endpoint = Endpoint::new(config, exchange, Arc::new(FakeTokenMac(key)));
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
            to_server: Wire::default(),
            to_client: Wire::default(),
            datagrams: 0,
        }
    }

    /// Begins sessions, and lets the sizes of datagrams be discovered.
    ///
    /// # Panics
    /// If a session cannot begin.
    pub fn connect(&mut self, sessions: usize) {
        while self.sessions.len() < sessions {
            let (path, patience) = (to_server(), Duration::from_secs(5));
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

    /// Makes `calls` calls, `at_once` at a time, which take the sessions in turn.
    ///
    /// # Panics
    /// If a call fails.
    pub fn run(&mut self, calls: usize, at_once: usize, request: &Bytes) {
        let (mut begun, mut ended) = (0, 0);
        while ended < calls {
            while begun < calls && begun - ended < at_once {
                let session = self.sessions[begun % self.sessions.len()];
                let call = self.client.call(self.now, session, request.clone(), None);
                call.expect("nothing stands in the way of a call");
                begun += 1;
            }
            self.turn(&mut ended);
        }
    }

    /// All that is ready goes to the server, and what it answers comes back, without a copy. Counts
    /// replies.
    fn turn(&mut self, ended: &mut usize) {
        self.now = self.now + STEP;
        let now = self.now;
        let Self {
            client,
            server,
            buffer,
            ..
        } = self;
        self.datagrams += deliver(now, client, server, to_client(), buffer);
        answer(now, server);
        self.datagrams += deliver(now, server, client, to_server(), buffer);
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected { session, .. } => self.sessions.push(session),
                Event::Reply { .. } => *ended += 1,
                other => panic!("a call has ended otherwise: {other:?}"),
            }
        }
    }

    /// All that the client has ready leaves it, and waits for [`Self::server_answers`].
    pub fn client_sends(&mut self) {
        self.now = self.now + STEP;
        let Self { client, buffer, .. } = self;
        self.to_server.fill(self.now, client, buffer);
    }

    /// The server takes what has left the client, and echoes all requests.
    ///
    /// # Panics
    /// If a request cannot be answered.
    pub fn server_answers(&mut self) {
        let Self { server, buffer, .. } = self;
        self.datagrams += self.to_server.empty(self.now, server, to_client());
        answer(self.now, server);
        self.to_client.fill(self.now, server, buffer);
    }

    /// The client takes what has left the server; its events wait in it.
    pub fn client_takes(&mut self) {
        self.datagrams += self
            .to_client
            .empty(self.now, &mut self.client, to_server());
    }
}

/// A server echoes all requests that have come.
fn answer(now: Time, server: &mut Endpoint) {
    while let Some(event) = server.poll_event() {
        if let Event::Request { rpc, body, .. } = event {
            server.reply(now, rpc, body).expect("the call is live");
        }
    }
}

/// Hands all that one end has ready to the other. Returns how many datagrams there were.
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

impl Wire {
    fn fill(&mut self, now: Time, from: &mut Endpoint, buffer: &mut TransmitBuffer) {
        while let Some(transmit) = from.poll_transmit(now, buffer) {
            for datagram in buffer.chunks(transmit.segment_size) {
                self.bytes.extend_from_slice(datagram);
                self.ends.push(self.bytes.len());
            }
        }
    }

    /// Returns how many datagrams have arrived.
    fn empty(&mut self, now: Time, to: &mut Endpoint, from: Path) -> usize {
        let mut begins = 0;
        for end in &self.ends {
            to.handle_arrival(now, Arrival::datagram(from, &self.bytes[begins..*end]));
            begins = *end;
        }
        self.bytes.clear();
        let count = self.ends.len();
        self.ends.clear();
        count
    }
}

/// Time from one turn to the next.
const STEP: Duration = Duration::from_micros(20);

fn to_server() -> Path {
    Path::to(([192, 0, 2, 1], 17_379).into())
}

fn to_client() -> Path {
    Path::to(([192, 0, 2, 2], 40_000).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_memory_come_back_and_take_datagrams() {
        let mut pair = EndpointPair::new(65_507, true);
        pair.connect(2);
        let before = pair.datagrams;
        pair.run(10, 3, &Bytes::from(vec![7; 100]));
        assert_eq!(pair.sessions.len(), 2);
        assert!(pair.datagrams >= before + 8, "{}", pair.datagrams);
    }
}
