// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The terms that the two sides of a session agreed on about records, read from their handshake.
//!
//! 1. Fragments of flights 1 and 2 are put together; their parameters are in the clear (SPEC §6.1).
//! 2. Flight 2 names the client's index, and so finds flight 1.
//! 3. Both directions' terms are then known, by the address and index that their packets carry
//!    (SPEC §6.3), and the ends of the session.

use std::collections::HashMap;
use std::net::SocketAddr;

use smt_record::IndexBits;
use smt_wire::{FlightBody, Geometry, Handshake, KeyExchange, Params, SessionIndex};

use crate::coverage::Coverage;
use crate::rpcs::Ends;
use crate::ticket_flight::TicketFlight;

/// Where packets of one direction of a session go.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Direction {
    pub(crate) target: SocketAddr,
    pub(crate) session: SessionIndex,
}

/// How the records of one direction are cut, numbered and sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Terms {
    pub(crate) geometry: Geometry,
    pub(crate) index_bits: IndexBits,
    pub(crate) sealed: Sealed,
}

/// The part of a session's DATA that is sealed (SPEC §15.4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Sealed {
    /// The packets, by PSP; records in them are plaintext.
    Packets,
    Records,
}

/// All handshakes seen so far.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    flights: HashMap<(Direction, u8), Coverage>,
    /// Index bits of clients.
    offers: HashMap<Direction, IndexBits>,
    terms: HashMap<Direction, Terms>,
    ends: HashMap<Direction, Ends>,
}

impl Handshakes {
    /// Takes a fragment that was sent from one address to another. If its flight is whole and of a
    /// handshake by ticket, gives what the flight says in the clear.
    pub(crate) fn take(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        packet: &Handshake<'_>,
    ) -> Option<TicketFlight> {
        if packet.flight > 2 {
            return None;
        }
        let from = Direction { target: source, session: packet.source };
        let flight = self
            .flights
            .entry((from, packet.flight))
            .or_insert_with(|| Coverage::new(packet.flight_length as usize));
        flight.fill(packet.offset as usize, packet.fragment);
        let bytes = flight.whole()?;
        let body = FlightBody::parse(bytes).ok()?;
        let params = Params::parse(body.params).ok()?;
        let ticket = (params.key_exchange == KeyExchange::Ticket)
            .then(|| TicketFlight::parse(packet.flight, body.key_exchange))
            .flatten();
        let index_bits = IndexBits::new(params.index_bits)?;
        if packet.flight == 1 {
            self.offers.insert(from, index_bits);
            return ticket;
        }
        let client = Direction { target, session: packet.destination };
        let geometry = Geometry::new(params.first_record_size, params.record_size);
        let (Some(geometry), Some(&offer)) = (geometry, self.offers.get(&client)) else {
            return ticket;
        };
        // A server answers the version of PSP if packets are sealed (SPEC [15.4-2]).
        let sealed = match params.psp_versions {
            Some(_) => Sealed::Packets,
            None => Sealed::Records,
        };
        // The index bits are those of the side that sends.
        let terms = |index_bits| Terms { geometry, index_bits, sealed };
        self.terms.insert(client, terms(index_bits));
        self.terms.insert(from, terms(offer));
        let ends = Ends {
            client: client.target,
            server: from.target,
            client_session: Some(client.session),
            server_session: Some(from.session),
            stripes_log2: params.stripes,
        };
        self.ends.insert(client, ends);
        self.ends.insert(from, ends);
        ticket
    }

    /// The terms of packets that go there; `None` if their handshake was not captured.
    pub(crate) fn terms(&self, to: Direction) -> Option<Terms> {
        self.terms.get(&to).copied()
    }

    /// The ends of the session of packets that go there; `None` if their handshake was not
    /// captured.
    pub(crate) fn ends(&self, to: Direction) -> Option<Ends> {
        self.ends.get(&to).copied()
    }
}

impl Terms {
    /// The terms that SMT agrees on unless configured otherwise (SPEC §10), with this of DATA
    /// sealed.
    pub(crate) const fn usual(sealed: Sealed) -> Self {
        let geometry = Geometry::new(1_142, 16_384).expect("both are in range");
        let index_bits = IndexBits::new(16).expect("16 is in range");
        Self { geometry, index_bits, sealed }
    }
}
