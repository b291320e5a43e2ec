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
    /// The end that echoes.
    pub server: Endpoint,
    /// The client's sessions, all with the server.
    pub sessions: Vec<SessionIndex>,
    /// The time of both.
    pub now: Time,
    /// Datagrams that have arrived, at either end.
    pub datagrams: usize,
    buffer: TransmitBuffer,
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
            datagrams: 0,
        }
    }

    /// Begins sessions, and lets the sizes of datagrams be discovered.
    ///
    /// # Panics
    /// If a session cannot begin.
    pub fn connect(&mut self, sessions: usize) {
        while self.sessions.len() < sessions {
            let (path, patience) = (Self::server_path(), Duration::from_secs(5));
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

    /// Time goes on by a step.
    pub fn step(&mut self) {
        self.now = self.now + STEP;
    }

    /// All that is ready goes to the server, and what it answers comes back, without a copy. Counts
    /// replies.
    fn turn(&mut self, ended: &mut usize) {
        self.step();
        let now = self.now;
        let Self { client, server, buffer, .. } = self;
        self.datagrams += deliver(now, client, server, Self::client_path(), buffer);
        self.answer();
        let Self { client, server, buffer, .. } = self;
        self.datagrams += deliver(now, server, client, Self::server_path(), buffer);
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected { session, .. } => self.sessions.push(session),
                Event::Reply { .. } => *ended += 1,
                other => panic!("a call has ended otherwise: {other:?}"),
            }
        }
    }

    /// The server echoes all requests that have come.
    ///
    /// # Panics
    /// If a request cannot be answered.
    pub fn answer(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let Event::Request { rpc, body, .. } = event {
                let replied = self.server.reply(self.now, rpc, body);
                replied.expect("the call is live");
            }
        }
    }

    /// The path to the server.
    #[must_use]
    pub fn server_path() -> Path {
        Path::to(([192, 0, 2, 1], 17_379).into())
    }

    /// The path to the client.
    #[must_use]
    pub fn client_path() -> Path {
        Path::to(([192, 0, 2, 2], 40_000).into())
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

/// Time from one step to the next.
const STEP: Duration = Duration::from_micros(20);

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
