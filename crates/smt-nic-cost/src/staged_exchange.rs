// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client and a server whose datagrams wait on their way, so that the work of one end is measured
//! alone.

use smt_carrier::{Arrival, Path};
use smt_proto::{Endpoint, Time, TransmitBuffer};
use smt_testkit::EndpointPair;

/// Two endpoints, and the datagrams that have left one and not arrived at the other.
pub(crate) struct StagedExchange {
    pub(crate) pair: EndpointPair,
    to_server: Wire,
    to_client: Wire,
    buffer: TransmitBuffer,
}

impl StagedExchange {
    /// With one session.
    pub(crate) fn new(mut pair: EndpointPair) -> Self {
        pair.connect(1);
        Self {
            pair,
            to_server: Wire::default(),
            to_client: Wire::default(),
            buffer: TransmitBuffer::default(),
        }
    }

    /// All that the client has ready leaves it, and waits for [`Self::server_answers`].
    pub(crate) fn client_sends(&mut self) {
        self.pair.step();
        let now = self.pair.now;
        self.to_server.fill(now, &mut self.pair.client, &mut self.buffer);
    }

    /// The server takes what has left the client, and echoes all requests.
    pub(crate) fn server_answers(&mut self) {
        let (now, pair) = (self.pair.now, &mut self.pair);
        let path = EndpointPair::client_path();
        pair.datagrams += self.to_server.empty(now, &mut pair.server, path);
        pair.answer();
        self.to_client.fill(now, &mut pair.server, &mut self.buffer);
    }

    /// The client takes what has left the server; its events wait in it.
    pub(crate) fn client_takes(&mut self) {
        let (now, pair) = (self.pair.now, &mut self.pair);
        let path = EndpointPair::server_path();
        pair.datagrams += self.to_client.empty(now, &mut pair.client, path);
    }
}

/// Datagrams on their way, in memory that is used again.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    ends: Vec<usize>,
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
