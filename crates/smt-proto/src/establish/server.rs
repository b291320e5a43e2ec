// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's handshake (SPEC §6).
//!
//! The server answers flight by flight until the client's CONFIRM opens, and never repeats on its
//! own. While many handshakes are in progress, no state is kept for an address that has not been
//! validated, and at most three times the bytes received are sent to one. Not here: making
//! and checking cookies (`stateless`), and deciding when one is asked for (`endpoint`).

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use smt_carrier::Path;
use smt_record::Side;
use smt_wire::{Control, FlightBody, Handshake, Params, SessionIndex};

use crate::error::Unavailability;
use crate::establish::agreement::{
    Disagreement, Indices, OwnIndex, agree, check_offer, offers_sealed_packets, server_params,
};
use crate::establish::association_room::{AssociationRoom, versions_of};
use crate::establish::confirm::Unconfirmed;
use crate::establish::established::Established;
use crate::establish::flight::{FlightAssembly, FlightOut, FlightRoute, flight_of};
use crate::establish::session_factory::SessionFactory;
use crate::establish::stateless::COOKIE_PACKET_LEN;
use crate::key_exchange::{Failed, FailureKind, Finished, Input, KeyExchange, Step};
use crate::limits::{ACCEPT_LIFE, AMPLIFICATION, FLIGHTS_MAX};
use crate::send::batch::DatagramBatch;
use crate::send::ready_queue::Slot;
use crate::session::CredentialEnds;
use crate::statistics::Statistics;
use crate::time::Time;

/// A client's handshake in progress.
pub(crate) struct ServerHandshake {
    pub(crate) path: Path,
    own: OwnIndex,
    pub(crate) remote: SessionIndex,
    began: Time,
    /// Whether the address was validated: by a cookie, or by TLS.
    is_validated: bool,
    /// The cookie that began this handshake, if one did: then every packet of it carries this or a
    /// newer one.
    cookie: Vec<u8>,
    bytes_received: usize,
    bytes_sent: usize,
    key_exchange: Option<Box<dyn KeyExchange>>,
    /// The kind of the key exchange, once it has begun.
    kind: smt_wire::KeyExchange,
    client_params: Vec<u8>,
    /// Room for the client's associations, if it has offered to seal packets.
    association_room: Option<AssociationRoom>,
    server_params: Vec<u8>,
    /// The flight that comes next from the client.
    expected: u8,
    assembly: FlightAssembly,
    flight: Option<FlightOut>,
    must_send: bool,
    /// How often a bad flight 1 has spoilt the attempt.
    spoilt: u8,
    /// A refusal that the client is still to be told; it would else wait in vain.
    refusal: Option<Unavailability>,
    /// Why the attempt has failed, until the owner is told.
    failure: Option<Box<str>>,
    unconfirmed: Option<Box<Unconfirmed>>,
    /// The flight that leaves beside CONFIRM, until there is a session.
    parting: Option<FlightOut>,
    /// Early data that is taken, until its session begins.
    early: Option<Vec<u8>>,
    has_early_session: bool,
    /// Its entries in the endpoint's schedule.
    pub(crate) slot: Slot,
}

impl ServerHandshake {
    /// The handshake of the client that chose the index `remote`; `cookie` is empty if it has shown
    /// none.
    pub(crate) fn new(
        now: Time,
        path: Path,
        remote: SessionIndex,
        own: OwnIndex,
        cookie: &[u8],
    ) -> Self {
        Self {
            path,
            own,
            remote,
            began: now,
            is_validated: !cookie.is_empty(),
            cookie: cookie.to_vec(),
            bytes_received: 0,
            bytes_sent: 0,
            key_exchange: None,
            kind: smt_wire::KeyExchange::Tls13,
            client_params: Vec::new(),
            association_room: None,
            server_params: Vec::new(),
            expected: 1,
            assembly: FlightAssembly::default(),
            flight: None,
            must_send: false,
            spoilt: 0,
            refusal: None,
            failure: None,
            unconfirmed: None,
            parting: None,
            early: None,
            has_early_session: false,
            slot: Slot::default(),
        }
    }

    pub(crate) fn index(&self) -> SessionIndex {
        self.own.index
    }

    /// Takes a HANDSHAKE packet of this client. Returns false if the attempt has failed, for the
    /// statistics.
    pub(crate) fn handle_handshake(
        &mut self,
        now: Time,
        packet: &Handshake<'_>,
        length: usize,
        factory: &SessionFactory<'_>,
    ) -> bool {
        self.bytes_received += length;
        if packet.flight + 2 == self.expected && packet.offset == 0 {
            // The client has not got our answer.
            let answer = packet.flight + 1;
            self.must_send = self.flight.as_ref().is_some_and(|out| out.number == answer);
            return true;
        }
        // Once TLS is finished nothing but CONFIRM is missing, and the last flight of all is never
        // a client's: it has no answer.
        let is_awaited = packet.flight == self.expected && packet.flight < FLIGHTS_MAX;
        let is_over = self.expected > 1 && self.key_exchange.is_none();
        if !is_awaited || is_over || self.unconfirmed.is_some() || self.has_early_session {
            return true;
        }
        let Some(body) = self.assembly.add(packet) else {
            return true;
        };
        self.assembly = FlightAssembly::default();
        self.expected += 2;
        let advanced = self
            .or_failed(FlightBody::parse(&body))
            .and_then(|body| self.advance(now, packet.flight, body, factory));
        let is_unanswered = packet.flight == 1 && self.flight.is_none();
        if advanced.is_none() && is_unanswered && self.spoilt < SPOILT_MAX {
            // The flight was forged or damaged, and no answer was sent: the genuine flight may
            // still come. The tries are bounded, since TLS may have signed before it met the fault.
            self.spoilt += 1;
            self.expected = 1;
        }
        advanced.is_some()
    }

    /// Takes a control packet that names this handshake. Returns what is established if it was the
    /// client's CONFIRM, and the key exchange permits a session.
    pub(crate) fn handle_control(
        &mut self,
        control: &Control<'_>,
        statistics: &mut Statistics,
    ) -> Option<Established> {
        let unconfirmed = &mut self.unconfirmed;
        let confirmed = unconfirmed.take_if(|waits| waits.open_confirm(control, statistics))?;
        let judged = self.key_exchange.as_mut().map(|judge| judge.confirmed());
        let judged = judged.unwrap_or(Ok(()));
        if judged.is_err() {
            // It is not called again: a forged flight that follows must not reach it.
            self.key_exchange = None;
        }
        self.or_failed(judged)?;
        Some(confirmed.confirmed())
    }

    /// Takes early data and what is established, once: the session begins with them, and with all
    /// that may still be sent to the client's address.
    pub(crate) fn take_early(&mut self) -> Option<EarlySession> {
        let bytes = self.early.take()?;
        let unconfirmed = self.unconfirmed.take()?;
        self.has_early_session = true;
        let permitted = self.permitted();
        // The handshake lives on to repeat its flight, and has no more than what comes from now on.
        self.bytes_sent += permitted.unwrap_or(0);
        Some(EarlySession { unconfirmed, bytes, permitted })
    }

    /// Whether a session has begun with this client's early data, which has not confirmed yet.
    pub(crate) fn has_early_session(&self) -> bool {
        self.has_early_session
    }

    /// Bytes that may still be sent to the client's address (SPEC §6.2), its flight counted;
    /// `None` if the address is validated.
    pub(crate) fn permitted(&self) -> Option<usize> {
        let flight = self.flight.as_ref().map_or(0, FlightOut::wire_len);
        let permitted = self.bytes_received * AMPLIFICATION;
        (!self.is_validated).then(|| permitted.saturating_sub(self.bytes_sent + flight))
    }

    /// Whether the handshake began with a cookie.
    pub(crate) fn has_cookie(&self) -> bool {
        !self.cookie.is_empty()
    }

    /// Whether a packet with this cookie counts. One that began with a cookie has packets with
    /// that or a newer one alone. `is_fresh` tells whether the cookie is valid now: the first such
    /// cookie validates the client's address.
    pub(crate) fn admits(&mut self, cookie: &[u8], is_fresh: impl FnOnce() -> bool) -> bool {
        if self.is_validated && !self.has_cookie() {
            return true;
        }
        let is_first = self.has_cookie() && self.cookie == cookie;
        let is_shown = is_first || is_fresh();
        self.is_validated |= is_shown;
        is_shown || !self.has_cookie()
    }

    /// Whether its flight is due and more than may be sent to an address that has not been
    /// validated (SPEC §6.2): then the flight is put off, and the client has to show a cookie
    /// first.
    pub(crate) fn needs_cookie(&mut self) -> bool {
        let permitted = (self.bytes_received * AMPLIFICATION).saturating_sub(self.bytes_sent);
        let length = self.flight.as_ref().map_or(0, FlightOut::wire_len);
        let is_put_off = self.must_send && !self.is_validated && length > permitted;
        self.must_send &= !is_put_off;
        is_put_off && COOKIE_PACKET_LEN <= permitted
    }

    /// Counts a COOKIE for this attempt among the bytes that are sent to the address.
    pub(crate) fn cookie_left(&mut self) {
        self.bytes_sent += COOKIE_PACKET_LEN;
    }

    /// Takes the refusal that the client is to be told, once.
    pub(crate) fn take_refusal(&mut self) -> Option<Unavailability> {
        self.refusal.take()
    }

    /// Takes the reason why the attempt has failed, once.
    pub(crate) fn take_failure(&mut self) -> Option<Box<str>> {
        self.failure.take()
    }

    /// When the handshake is forgotten.
    pub(crate) fn due(&self) -> Time {
        self.began + ACCEPT_LIFE
    }

    pub(crate) fn has_output(&self) -> bool {
        self.must_send
    }

    /// Writes the flight that is due.
    pub(crate) fn write(&mut self, version: u8, batch: &mut DatagramBatch<'_>) {
        self.must_send = false;
        let Some(flight) = &self.flight else { return };
        self.bytes_sent += flight.wire_len();
        let route = FlightRoute {
            version,
            destination: self.remote,
            source: self.own.index,
            cookie: &[],
            is_padded: false,
        };
        flight.write(route, &[], batch);
    }

    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    fn advance(
        &mut self,
        now: Time,
        number: u8,
        body: FlightBody<'_>,
        factory: &SessionFactory<'_>,
    ) -> Option<()> {
        if number == 1 {
            self.answer_offer(now, body.params, factory)?;
        }
        match self.step(flight_of(number, &body))? {
            Ok(mut step) => {
                self.early = step.early.take();
                self.keep_parting(number + 1, step.parting.take());
                if step.send.is_some() || number == 1 {
                    self.answer(number, step.send.take())?;
                }
                match step.finished.take() {
                    Some(finished) => self.expect_confirm(now, finished, factory),
                    None => Some(()),
                }
            }
            Err(failed) => {
                if failed.alert.is_some() {
                    self.answer(number, failed.alert)?;
                }
                self.or_failed(Err(failed.failure))
            }
        }
    }

    /// Gives the exchange a flight. The step is large, so it is not on the stack of the caller.
    #[inline(never)]
    fn step(&mut self, flight: Input<'_>) -> Option<Result<Box<Step>, Failed>> {
        Some(self.key_exchange.as_mut()?.step(flight).map(Box::new))
    }

    /// Answers flight `number`. `None` if the answer is longer than a flight may be.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    fn answer(&mut self, number: u8, body: Option<Vec<u8>>) -> Option<()> {
        let params = match number {
            1 => self.server_params.as_slice(),
            _ => &[],
        };
        self.flight = FlightOut::new(number + 1, params, &body.unwrap_or_default());
        self.flight.as_ref()?;
        self.must_send = true;
        Some(())
    }

    /// Keeps the flight that leaves beside CONFIRM, if there is one.
    #[inline(never)]
    fn keep_parting(&mut self, number: u8, body: Option<Vec<u8>>) {
        self.parting = body.and_then(|bytes| FlightOut::in_one_packet(number, &bytes));
    }

    /// Answers the client's parameters.
    fn answer_offer(
        &mut self,
        now: Time,
        client: &[u8],
        factory: &SessionFactory<'_>,
    ) -> Option<()> {
        let names_itself = Params::parse(client).is_ok_and(|params| params.index == self.remote);
        self.or_refused(check_offer(factory.config, client), |disagreement| {
            *disagreement == Disagreement::Version
        })?;
        if !names_itself {
            return None;
        }
        let attempt = factory.provider().server(client, factory.wall(now));
        let mut attempt =
            self.or_refused(attempt, |failure| failure.kind == FailureKind::NoCommonParameters)?;
        let association_room = match offers_sealed_packets(client) {
            true => factory.association_room(attempt.kind),
            false => None,
        };
        let params = server_params(
            factory.config,
            &attempt,
            self.own.index,
            client,
            versions_of(association_room.as_ref()),
        );
        let params =
            self.or_refused(params, |disagreement| *disagreement == Disagreement::KeyExchange)?;
        let begin = Input::Begin { own_params: &params, early: &[] };
        let begun = attempt.exchange.step(begin);
        self.or_failed(begun.map_err(|failed| failed.failure))?;
        self.kind = attempt.kind;
        self.key_exchange = Some(attempt.exchange);
        self.client_params = client.to_vec();
        self.association_room = association_room;
        self.server_params = params;
        Some(())
    }

    /// The value, if there is one. Else the failure is kept, and the client is told if the sides
    /// have nothing in common.
    fn or_refused<T, E: core::fmt::Display>(
        &mut self,
        result: Result<T, E>,
        disagrees: impl FnOnce(&E) -> bool,
    ) -> Option<T> {
        let disagrees = result.as_ref().err().is_some_and(disagrees);
        self.refusal = disagrees.then_some(Unavailability::NothingInCommon);
        self.or_failed(result)
    }

    /// The value, if there is one. Else the reason is kept for the owner and its log. The client
    /// learns an alert at most, which sends its user there.
    fn or_failed<T, E: core::fmt::Display>(&mut self, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::debug!(client = %self.path.remote, %error, "a handshake failed");
                self.failure = Some(error.to_string().into());
                None
            }
        }
    }

    /// Derives the keys: from now on nothing but the client's CONFIRM is missing.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    fn expect_confirm(
        &mut self,
        now: Time,
        finished: Finished,
        factory: &SessionFactory<'_>,
    ) -> Option<()> {
        let (client, server) = (&self.client_params, &self.server_params);
        let agreed = agree(factory.config, Side::Server, client, server);
        let agreement = self.or_failed(agreed)?;
        let indices = Indices {
            own: self.own.index,
            remote: self.remote,
            own_reset_token: self.own.reset_token,
        };
        let keys = factory.keys(Side::Server, indices, finished.secrets, agreement.psp_version);
        let (seal, open, exporter) = self.or_failed(keys)?;
        let association_room = AssociationRoom::agreed(&mut self.association_room, &agreement);
        self.unconfirmed = Some(Box::new(Unconfirmed::new(Established {
            agreed_at: now,
            path: self.path,
            indices,
            agreement,
            seal,
            open,
            exporter,
            ends: CredentialEnds::of(&finished.peer, finished.own_expires),
            peer: finished.peer,
            peer_reset_token: None,
            parting: self.parting.take().map(Box::new),
            controls: 0,
            association_room,
            confirmed_by: None,
        })));
        // With TLS, the client's Finished has shown that it receives what is sent to this address.
        self.is_validated |= self.kind == smt_wire::KeyExchange::Tls13;
        Some(())
    }
}

/// A session that begins before its client has confirmed.
pub(crate) struct EarlySession {
    pub(crate) unconfirmed: Box<Unconfirmed>,
    /// The early data.
    pub(crate) bytes: Vec<u8>,
    /// Bytes that the session may send until its client is heard; `None` if the address is
    /// validated.
    pub(crate) permitted: Option<usize>,
}

/// How often a bad flight 1 may spoil an attempt and be followed by another.
const SPOILT_MAX: u8 = 2;
