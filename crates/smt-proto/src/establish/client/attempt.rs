// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One attempt of a client: from its first flight until the server's CONFIRM is awaited (SPEC §6).
//!
//! Not here: packets, timers and what follows from a failure (`client`).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use smt_carrier::Path;
use smt_record::Side;
use smt_wire::{FlightBody, Params, SessionIndex};

use crate::establish::agreement::{Indices, OwnIndex, agree, client_params};
use crate::establish::association_room::{AssociationRoom, versions_of};
use crate::establish::confirm::Unconfirmed;
use crate::establish::early::EarlyCalls;
use crate::establish::established::Established;
use crate::establish::flight::{FlightAssembly, FlightOut, OWN_FLIGHT_MAX, WholeFlight, flight_of};
use crate::establish::session_factory::SessionFactory;
use crate::key_exchange::{
    ClientRequest, FailureKind, Fault, Finished, HandshakeFailure, Input, KeyExchange,
};
use crate::limits::{FLIGHTS_MAX, HANDSHAKE_RETRY};
use crate::recovery::jitter::Jitter;
use crate::recovery::retry_timer::RetryTimer;
use crate::session::CredentialEnds;
use crate::time::Time;

/// One attempt: one session index, one key exchange.
pub(super) struct Attempt {
    pub(super) own: OwnIndex,
    pub(super) remote: Option<SessionIndex>,
    pub(super) kind: smt_wire::KeyExchange,
    /// Room for the server's associations, if this side offers to seal packets.
    pub(super) association_room: Option<AssociationRoom>,
    pub(super) key_exchange: Box<dyn KeyExchange>,
    pub(super) params: Vec<u8>,
    pub(super) server_params: Vec<u8>,
    pub(super) cookie: Vec<u8>,
    pub(super) flight: FlightOut,
    pub(super) assembly: FlightAssembly,
    /// First wait before a flight is repeated.
    pub(super) first_wait: Duration,
    pub(super) retry: RetryTimer,
    pub(super) must_send: bool,
    /// Questions asked when the first unreachable hint came.
    pub(super) asked_before_hint: Option<u32>,
    /// The established keys, once TLS has finished. The session is live when the server's CONFIRM
    /// has opened.
    pub(super) unconfirmed: Option<Box<Unconfirmed>>,
    /// Whether a fragment of flight 2 has come.
    pub(super) has_answer: bool,
    /// The attempt has failed: an alert may still be due, then a new attempt begins.
    pub(super) has_failed: bool,
    /// Whether the server has taken the early data of flight 1.
    pub(super) early_taken: bool,
}

impl Attempt {
    pub(super) fn new(
        now: Time,
        request: ClientRequest<'_>,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
        early: Option<&mut EarlyCalls>,
    ) -> Result<Self, HandshakeFailure> {
        let mut attempt = factory.provider().client(request)?;
        let association_room = factory.association_room(attempt.kind);
        let psp_versions = versions_of(association_room.as_ref());
        let params = client_params(factory.config, &attempt, own.index, psp_versions);
        let reply_unscheduled = factory.config.unscheduled;
        let early = early.map(|early| early.write(attempt.early_max, reply_unscheduled));
        let early = early.unwrap_or_default();
        let begin = Input::Begin { own_params: &params, early: &early };
        let step = attempt.exchange.step(begin).map_err(|failed| failed.failure)?;
        let bytes = step.send.unwrap_or_default();
        // Attempts that begin together would have their answers fill a queue together again and
        // again.
        let first_wait = Jitter::of(params.iter().chain(&bytes)).lengthen(HANDSHAKE_RETRY);
        Ok(Self {
            own,
            remote: None,
            flight: FlightOut::new(1, &params, &bytes).ok_or_else(|| too_long(1))?,
            kind: attempt.kind,
            key_exchange: attempt.exchange,
            params,
            association_room,
            server_params: Vec::new(),
            cookie: Vec::new(),
            assembly: FlightAssembly::default(),
            first_wait,
            retry: RetryTimer::new(now, first_wait),
            must_send: true,
            asked_before_hint: None,
            unconfirmed: None,
            has_answer: false,
            has_failed: false,
            early_taken: false,
        })
    }

    /// A whole flight of the server has come.
    pub(super) fn advance(
        &mut self,
        now: Time,
        path: Path,
        flight: WholeFlight<'_>,
        factory: &SessionFactory<'_>,
    ) -> Result<(), HandshakeFailure> {
        self.assembly = FlightAssembly::default();
        self.retry = RetryTimer::new(now, self.first_wait);
        let number = flight.number;
        let body = FlightBody::parse(flight.body).map_err(|error| malformed(&error))?;
        if number == 2 {
            let params = Params::parse(body.params).map_err(|error| malformed(&error))?;
            if Some(params.index) != self.remote {
                return Err(malformed(
                    &"the server's parameters name another index than its packets",
                ));
            }
            self.server_params = body.params.to_vec();
        }
        let (next, finished, outcome) = match self.key_exchange.step(flight_of(number, &body)) {
            Ok(step) => (step.send, step.finished, Ok(())),
            Err(failed) => (failed.alert, None, Err(failed.failure)),
        };
        if let Some(finished) = finished {
            self.early_taken = finished.early_taken;
            self.expect_confirm(now, path, finished, factory)?;
        }
        if next.is_some() || self.unconfirmed.is_some() && number == 2 {
            if number + 1 == FLIGHTS_MAX {
                // A client's last flight has an answer: an alert, or tickets.
                return Err(malformed(&"it takes more flights than a handshake has"));
            }
            let next = FlightOut::new(number + 1, &[], &next.unwrap_or_default());
            self.flight = next.ok_or_else(|| too_long(number + 1))?;
            self.must_send = true;
        }
        outcome
    }

    /// Takes the alert that follows the end of TLS. The last flight with CONFIRM is still repeated,
    /// at the time that was set before.
    pub(super) fn hear_alert(&mut self, flight: WholeFlight<'_>) -> Result<(), HandshakeFailure> {
        self.assembly = FlightAssembly::default();
        let body = FlightBody::parse(flight.body).map_err(|error| malformed(&error))?;
        let step = self.key_exchange.step(flight_of(flight.number, &body));
        step.map(|_| ()).map_err(|failed| failed.failure)
    }

    /// Derives the keys: from now on nothing but the server's CONFIRM is missing.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    fn expect_confirm(
        &mut self,
        now: Time,
        path: Path,
        finished: Finished,
        factory: &SessionFactory<'_>,
    ) -> Result<(), HandshakeFailure> {
        let agreement = agree(factory.config, Side::Client, &self.params, &self.server_params)
            .map_err(|error| malformed(&error))?;
        let Some(remote) = self.remote else {
            return Err(malformed(&"the server named no index"));
        };
        let indices =
            Indices { own: self.own.index, remote, own_reset_token: self.own.reset_token };
        let (seal, open, exporter) = factory
            .keys(Side::Client, indices, finished.secrets, agreement.psp_version)
            .map_err(|error| malformed(&error))?;
        let association_room = AssociationRoom::agreed(&mut self.association_room, &agreement);
        self.unconfirmed = Some(Box::new(Unconfirmed::new(Established {
            agreed_at: now,
            path,
            indices,
            agreement,
            seal,
            open,
            exporter,
            ends: CredentialEnds::of(&finished.peer, finished.own_expires),
            peer: finished.peer,
            peer_reset_token: None,
            parting: None,
            controls: 0,
            association_room,
            confirmed_by: None,
        })));
        Ok(())
    }
}

fn malformed(error: &dyn core::fmt::Display) -> HandshakeFailure {
    HandshakeFailure {
        fault: Fault::Peer,
        kind: FailureKind::Malformed,
        text: format!("the server's handshake is not one: {error}"),
    }
}

fn too_long(number: u8) -> HandshakeFailure {
    HandshakeFailure {
        fault: Fault::Caller,
        kind: FailureKind::Other,
        text: format!(
            "flight {number} of the handshake would have more than {OWN_FLIGHT_MAX} bytes; \
             use a shorter certificate chain"
        ),
    }
}
