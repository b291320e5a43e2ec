// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint, its address, and what it has to send.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::Path;
use smt_proto::handshake::KeyExchangeProvider;
use smt_proto::{Config, Endpoint, Time, TransmitBuffer};

use super::exchange::tokens;

/// A datagram, by node numbers. [`STRANGER`] is an address without a node.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bytes: Vec<u8>,
}

/// One endpoint.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    number: usize,
    buffer: TransmitBuffer,
}

impl Node {
    pub(crate) fn new(
        number: usize,
        config: Config,
        provider: Arc<dyn KeyExchangeProvider>,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, provider, tokens(number)),
            number,
            buffer: TransmitBuffer::default(),
        }
    }

    /// Hands in a datagram.
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram) {
        let path = Path::between(address_of(datagram.from), address_of(self.number).ip());
        self.endpoint.handle_datagram(now, path, &datagram.bytes);
    }

    /// Serves timers that are due. Afterwards none is.
    pub(crate) fn serve_timers(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        let due = self.endpoint.poll_timeout();
        assert!(
            due.is_none_or(|(due, _)| due > now),
            "a timer that is due was not served: {due:?} at {now:?}"
        );
    }

    /// Everything that is to be sent now.
    pub(crate) fn transmits(&mut self, now: Time) -> Vec<Datagram> {
        let mut datagrams = Vec::new();
        for _ in 0..TRANSMITS_MAX {
            let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) else {
                return datagrams;
            };
            transmit.assert_valid();
            assert!(!self.buffer.is_empty() && self.buffer.len() <= 65_507);
            let segments = transmit.segments(&self.buffer);
            assert!(segments.len() <= 64, "more segments than a kernel takes");
            let to = (0..=STRANGER).find(|to| address_of(*to) == transmit.path.remote);
            let to = to.expect("an address that was heard of");
            datagrams.extend(segments.map(|bytes| Datagram {
                from: self.number,
                to,
                bytes: bytes.to_vec(),
            }));
        }
        panic!("poll_transmit never ends");
    }
}

/// The address of a node.
pub(crate) fn address_of(number: usize) -> SocketAddr {
    let host = 2 + u8::try_from(number).expect("few nodes");
    SocketAddr::from(([192, 0, host, 1], 17_379))
}

/// The number of an address that has no node.
pub(crate) const STRANGER: usize = 2;

/// One call may yield a single control packet; 64 sessions' worth of everything is far less.
const TRANSMITS_MAX: usize = 20_000;
