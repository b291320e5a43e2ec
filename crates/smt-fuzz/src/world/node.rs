// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint, its address, and its transmit buffer.

use std::net::SocketAddr;
use std::sync::Arc;

use smt_carrier::{Arrival, Marks, Path};
use smt_proto::key_exchange::KeyExchangeProvider;
use smt_proto::{Config, Endpoint, Pull, Time, TransmitBuffer};
use smt_testkit::FakeTokenMac;

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
    /// Its grant policy asks for packets that the network has trimmed.
    pulls: bool,
}

impl Node {
    pub(crate) fn new(
        number: usize,
        config: Config,
        provider: Arc<dyn KeyExchangeProvider>,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, provider, Arc::new(FakeTokenMac(number as u8))),
            number,
            buffer: TransmitBuffer::default(),
            pulls: false,
        }
    }

    /// The same with another grant policy, if there is one.
    pub(crate) fn with_pull(mut self, pull: Option<Pull>) -> Self {
        if let Some(pull) = pull {
            self.endpoint.set_pull_policy(Box::new(pull));
            self.pulls = true;
        }
        self
    }

    /// Hands in a datagram.
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram) {
        let path = Path::between(address_of(datagram.from), address_of(self.number).ip());
        self.endpoint.handle_arrival(now, Arrival::datagram(path, &datagram.bytes));
    }

    /// Hands in what a switch has left of a datagram; everything else was said and heard before. It
    /// is a hint (SPEC §9.10): it is counted, and brings a question forward where the policy pulls,
    /// and nothing else.
    pub(crate) fn receive_trimmed(&mut self, now: Time, datagram: &Datagram) {
        let path = Path::between(address_of(datagram.from), address_of(self.number).ip());
        let due = self.endpoint.poll_timeout();
        let mut expected = self.endpoint.statistics();
        let marks = Marks { trimmed: true, ..Marks::NONE };
        let arrival = Arrival::datagram(path, &datagram.bytes).with_marks(marks);
        self.endpoint.handle_arrival(now, arrival);
        let counted = self.endpoint.statistics();
        expected.datagrams_received += u64::from(!datagram.bytes.is_empty());
        expected.packets_malformed = counted.packets_malformed;
        expected.packets_unknown_session = counted.packets_unknown_session;
        expected.packets_contradicting = counted.packets_contradicting;
        expected.packets_duplicate = counted.packets_duplicate;
        expected.packets_trimmed = counted.packets_trimmed;
        expected.memory_refusals = counted.memory_refusals;
        assert_eq!(counted, expected, "a hint has done more than it may");
        assert!(self.endpoint.poll_event().is_none(), "a hint is no event");
        if !self.pulls {
            assert_eq!(self.endpoint.poll_timeout(), due, "a hint moves a timer");
            assert!(self.transmits(now).is_empty(), "a hint is answered");
        }
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
                self.check_questions();
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

    /// A trimmed header is worth one question, and one more for what its packet had beside record 0
    /// (SPEC §9.10).
    fn check_questions(&self) {
        let statistics = self.endpoint.statistics();
        let per_header = if self.pulls { 2 } else { 0 };
        let most = per_header * statistics.packets_trimmed;
        assert!(
            statistics.trimmed_asked <= most,
            "{} questions for what was cut, at most {most} are due",
            statistics.trimmed_asked
        );
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
