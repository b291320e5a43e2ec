// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's handshake (SPEC §6).
//!
//! ```text
//!   attempt: flight 1 ──▶ flight 2 ──▶ flight 3 + CONFIRM ──▶ server's CONFIRM opens: live
//!      │ COOKIE: flight 1 again, with the cookie
//!      └ anything wrong, or silence: a new attempt, until the deadline or three refusals in a row
//! ```
//! The timers that repeat flights are here, since the client alone repeats. The server has one,
//! which forgets.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use smt_carrier::Path;
use smt_record::Side;
use smt_wire::{Control, FlightBody, Handshake, Params, SessionIndex};

use crate::error::{ConnectError, Unavailability};
use crate::establish::agreement::{Indices, OwnIndex, agree, client_params};
use crate::establish::confirm::Unconfirmed;
use crate::establish::established::Established;
use crate::establish::flight::{
    FlightAssembly, FlightOut, FlightRoute, OWN_FLIGHT_MAX, WholeFlight, flight_of,
};
use crate::establish::session_factory::SessionFactory;
use crate::event::ConnectId;
use crate::key_exchange::{FailureKind, Fault, Finished, HandshakeFailure, Input, KeyExchange};
use crate::limits::{
    ATTEMPT_QUESTIONS, FLIGHTS_MAX, HANDSHAKE_RETRY, HANDSHAKE_RETRY_MAX, REFUSALS_BELIEVED,
    STALE_HINTS,
};
use crate::recovery::jitter::Jitter;
use crate::recovery::retry_timer::RetryTimer;
use crate::send::batch::Batch;
use crate::send::buffer::TransmitBuffer;
use crate::send::ready_queue::Place;
use crate::statistics::Statistics;
use crate::time::Time;

/// A wish for a session, over all its attempts.
pub(crate) struct ClientHandshake {
    pub(crate) id: ConnectId,
    pub(crate) path: Path,
    pub(crate) server_name: String,
    began: Time,
    deadline: Time,
    attempt: Attempt,
    /// Refusals in a row, and the last thing that went wrong.
    refusals: u32,
    last_failure: Option<ConnectError>,
    has_answered: bool,
    /// The registered key of the last attempt that lacked only the server's CONFIRM.
    unproven_key: Option<Vec<u8>>,
    /// Its place among those with something to send.
    pub(crate) ready: Option<Place>,
    /// The endpoint's timer for it.
    pub(crate) timer: Option<Time>,
}

/// The session that the application wants.
pub(crate) struct HandshakeRequest<'a> {
    pub(crate) id: ConnectId,
    pub(crate) path: Path,
    /// The name that the server must prove.
    pub(crate) server_name: &'a str,
    /// How long the application waits.
    pub(crate) deadline: Duration,
}

/// One attempt: one session index, one key exchange.
struct Attempt {
    own: OwnIndex,
    remote: Option<SessionIndex>,
    key_exchange: Box<dyn KeyExchange>,
    params: Vec<u8>,
    server_params: Vec<u8>,
    cookie: Vec<u8>,
    flight: FlightOut,
    assembly: FlightAssembly,
    /// First wait before a flight is repeated.
    first_wait: Duration,
    retry: RetryTimer,
    must_send: bool,
    /// Questions asked when the first unreachable hint came.
    asked_before_hint: Option<u32>,
    /// The established keys, once TLS has finished. The session is live when the server's CONFIRM
    /// has opened.
    unconfirmed: Option<Box<Unconfirmed>>,
    /// Whether a fragment of flight 2 has come.
    has_answer: bool,
    /// The attempt has failed: an alert may still be due, then a new attempt begins.
    has_failed: bool,
}

/// The progress of a connect.
pub(crate) enum Progress {
    /// The connect goes on.
    Waiting,
    /// This attempt has failed; another is to begin.
    Restart,
    /// The session is live.
    Live(Box<Established>),
    /// The connect has failed.
    Failed(ConnectError),
}

impl ClientHandshake {
    pub(crate) fn new(
        now: Time,
        request: &HandshakeRequest<'_>,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
    ) -> Result<Self, HandshakeFailure> {
        Ok(Self {
            id: request.id,
            path: request.path,
            server_name: request.server_name.to_owned(),
            began: now,
            deadline: now + request.deadline,
            attempt: Attempt::new(now, request.server_name, own, factory)?,
            refusals: 0,
            last_failure: None,
            has_answered: false,
            unproven_key: None,
            ready: None,
            timer: None,
        })
    }

    /// Begins a new attempt with a new index.
    pub(crate) fn restart(
        &mut self,
        now: Time,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
    ) -> Progress {
        match Attempt::new(now, &self.server_name, own, factory) {
            Ok(attempt) => {
                self.attempt = attempt;
                Progress::Waiting
            }
            Err(failure) => Progress::Failed(failure.into()),
        }
    }

    pub(crate) fn index(&self) -> SessionIndex {
        self.attempt.own.index
    }

    /// Takes a HANDSHAKE packet that names this attempt.
    pub(crate) fn handle_handshake(
        &mut self,
        now: Time,
        packet: &Handshake<'_>,
        factory: &SessionFactory<'_>,
    ) -> Progress {
        let attempt = &mut self.attempt;
        let is_next = packet.flight == attempt.flight.number + 1 && packet.flight <= FLIGHTS_MAX;
        if !is_next
            || attempt.has_failed
            || attempt.remote.is_some_and(|remote| remote != packet.source)
        {
            return Progress::Waiting;
        }
        self.has_answered = true;
        attempt.has_answer = true;
        match self.last_failure {
            // It takes clients now.
            Some(ConnectError::Unavailable(_)) => (self.last_failure, self.refusals) = (None, 0),
            // It speaks our version.
            Some(ConnectError::Version { .. }) => self.last_failure = None,
            _ => {}
        }
        let Some(body) = attempt.assembly.add(packet) else {
            return Progress::Waiting;
        };
        let flight = WholeFlight {
            number: packet.flight,
            body: &body,
        };
        attempt.remote = Some(packet.source);
        if attempt.unconfirmed.is_some() {
            // Only CONFIRM is missing: a flight that is no alert is forged.
            return match attempt.hear_alert(flight) {
                Err(failure) if is_refusal(&failure) => self.refuse_attempt(failure.into()),
                Ok(()) | Err(_) => Progress::Waiting,
            };
        }
        match attempt.advance(now, self.path, flight, factory) {
            Ok(()) => {
                if let Some(unconfirmed) = &attempt.unconfirmed {
                    self.unproven_key.clone_from(&unconfirmed.peer().key_name);
                }
                Progress::Waiting
            }
            Err(failure) => self.fail_attempt(failure),
        }
    }

    /// Takes a control packet that names this attempt: only CONFIRM counts.
    pub(crate) fn handle_control(
        &mut self,
        control: &Control<'_>,
        statistics: &mut Statistics,
    ) -> Progress {
        let unconfirmed = &mut self.attempt.unconfirmed;
        match unconfirmed.take_if(|waits| waits.open_confirm(control, statistics)) {
            Some(confirmed) => Progress::Live(Box::new(confirmed.confirmed())),
            None => Progress::Waiting,
        }
    }

    /// Takes the server's cookie: the flight goes out again at once. After flight 1 the server has
    /// kept something, and one cookie is all that it may ask for, if its answer is long.
    pub(crate) fn handle_cookie(&mut self, now: Time, cookie: &[u8]) {
        let attempt = &mut self.attempt;
        let may_come = attempt.flight.number == 1 || attempt.cookie.is_empty();
        if may_come && attempt.cookie != cookie {
            self.has_answered = true;
            // Only the first is answered at once: a cookie is small, a flight is not.
            if attempt.cookie.is_empty() {
                attempt.must_send = true;
                attempt.retry = RetryTimer::new(now, attempt.first_wait);
            }
            attempt.cookie = cookie.to_vec();
        }
    }

    /// A version answer is a hint for the error message only.
    pub(crate) fn handle_version(&mut self, ours: u8, theirs: &[u8]) {
        if self.attempt.flight.number == 1 && !theirs.contains(&ours) {
            self.last_failure = Some(ConnectError::Version {
                ours,
                theirs: theirs.to_vec(),
            });
        }
    }

    /// Takes a report of the server's host that no socket listens there. The first report may be
    /// about a datagram that was sent before, to a server that has since come back: the flight is
    /// repeated, and a report after that is believed.
    pub(crate) fn handle_unreachable(&mut self, now: Time) -> Progress {
        let attempt = &mut self.attempt;
        if self.has_answered {
            return Progress::Waiting;
        }
        match attempt.asked_before_hint {
            Some(asked) if asked < attempt.retry.asked => Progress::Failed(ConnectError::NoServer),
            Some(_) => Progress::Waiting,
            None => {
                attempt.asked_before_hint = Some(attempt.retry.asked);
                attempt.retry.hurry(now + STALE_HINTS);
                Progress::Waiting
            }
        }
    }

    /// Takes the server's word that it takes no client. Anybody can forge it: it costs the attempt,
    /// as an alert does, unless the server has begun to answer. The next attempt may reach another
    /// shard (SPEC §6.6).
    pub(crate) fn handle_unavailable(&mut self, now: Time, why: Unavailability) -> Progress {
        if self.attempt.has_answer || self.attempt.has_failed {
            return Progress::Waiting;
        }
        self.attempt.retry.hurry(now + STALE_HINTS);
        self.refuse_attempt(ConnectError::Unavailable(why))
    }

    /// Does what is due. `foreign` is when a packet that no SMT server sends has last come from the
    /// server's address: a hint for the error message only.
    pub(crate) fn handle_timeout(&mut self, now: Time, foreign: Option<Time>) -> Progress {
        if now >= self.deadline {
            let after = self.deadline.since(self.began);
            let flight = self.attempt.flight.number.saturating_sub(1);
            return Progress::Failed(match (self.last_failure.take(), self.unproven_key.take()) {
                (Some(failure), _) => failure,
                (None, Some(key_name)) => ConnectError::Unproven { after, key_name },
                (None, None) if self.has_answered => ConnectError::Unfinished { after, flight },
                (None, None) if foreign >= Some(self.began) => ConnectError::NotSmt(after),
                (None, None) => ConnectError::NoAnswer(after),
            });
        }
        let attempt = &mut self.attempt;
        if attempt.retry.due <= now {
            if attempt.has_failed {
                return Progress::Restart;
            }
            if attempt.retry.asked >= ATTEMPT_QUESTIONS {
                // Only refusals in a row are believed, and this attempt was not refused.
                self.refusals = 0;
                return Progress::Restart;
            }
            attempt.retry.ask(now, HANDSHAKE_RETRY_MAX);
            attempt.must_send = true;
        }
        Progress::Waiting
    }

    pub(crate) fn due(&self) -> Time {
        self.deadline.min(self.attempt.retry.due)
    }

    pub(crate) fn has_output(&self) -> bool {
        self.attempt.must_send
    }

    /// Writes the flight that is due.
    pub(crate) fn write(&mut self, version: u8, batch: &mut Batch<'_>) {
        let attempt = &mut self.attempt;
        attempt.must_send = false;
        let mut tail = TransmitBuffer::default();
        if let Some(unconfirmed) = attempt.unconfirmed.as_mut() {
            unconfirmed.write_confirm(version, &mut tail);
        }
        let route = FlightRoute {
            version,
            destination: attempt.remote.unwrap_or_default(),
            source: attempt.own.index,
            cookie: &attempt.cookie,
            is_padded: true,
        };
        attempt.flight.write(route, &tail, batch);
    }

    fn fail_attempt(&mut self, failure: HandshakeFailure) -> Progress {
        if is_refusal(&failure) {
            return self.refuse_attempt(failure.into());
        }
        self.refusals = 0;
        self.last_failure = Some(failure.into());
        self.attempt.has_failed = true;
        Progress::Waiting
    }

    /// Counts a refusal of this attempt, which may be forged: some in a row are believed.
    fn refuse_attempt(&mut self, why: ConnectError) -> Progress {
        self.refusals += 1;
        if self.refusals >= REFUSALS_BELIEVED {
            return Progress::Failed(why);
        }
        self.last_failure = Some(why);
        self.attempt.has_failed = true;
        Progress::Waiting
    }
}

/// Whether an attempt failed because one side refused the other.
fn is_refusal(failure: &HandshakeFailure) -> bool {
    matches!(
        failure.kind,
        FailureKind::CertificateRefused
            | FailureKind::AlertReceived
            | FailureKind::NoCommonParameters
    )
}

impl Attempt {
    fn new(
        now: Time,
        server_name: &str,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
    ) -> Result<Self, HandshakeFailure> {
        let mut attempt = factory.provider().client(server_name, factory.wall(now))?;
        let params = client_params(factory.config, &attempt, own.index);
        let begin = Input::Begin {
            own_params: &params,
        };
        let step = attempt
            .exchange
            .step(begin)
            .map_err(|failed| failed.failure)?;
        let bytes = step.send.unwrap_or_default();
        // Attempts that begin together would have their answers fill a queue together again and
        // again.
        let first_wait = Jitter::of(params.iter().chain(&bytes)).lengthen(HANDSHAKE_RETRY);
        Ok(Self {
            own,
            remote: None,
            flight: FlightOut::new(1, &params, &bytes).ok_or_else(|| too_long(1))?,
            key_exchange: attempt.exchange,
            params,
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
        })
    }

    /// A whole flight of the server has come.
    fn advance(
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
            self.expect_confirm(now, path, finished, factory)?;
        }
        if next.is_some() || self.unconfirmed.is_some() && number == 2 {
            let next = FlightOut::new(number + 1, &[], &next.unwrap_or_default());
            self.flight = next.ok_or_else(|| too_long(number + 1))?;
            self.must_send = true;
        }
        outcome
    }

    /// Takes the alert that follows the end of TLS. The last flight with CONFIRM is still repeated,
    /// at the time that was set before.
    fn hear_alert(&mut self, flight: WholeFlight<'_>) -> Result<(), HandshakeFailure> {
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
        let agreement = agree(
            factory.config,
            Side::Client,
            &self.params,
            &self.server_params,
        )
        .map_err(|error| malformed(&error))?;
        let Some(remote) = self.remote else {
            return Err(malformed(&"the server named no index"));
        };
        let indices = Indices {
            own: self.own.index,
            remote,
            own_reset_token: self.own.reset_token,
        };
        let (seal, open) = factory
            .keys(Side::Client, indices, finished.secrets)
            .map_err(|error| malformed(&error))?;
        self.unconfirmed = Some(Box::new(Unconfirmed::new(Established {
            agreed_at: now,
            path,
            indices,
            agreement,
            seal,
            open,
            peer: finished.peer,
            peer_reset_token: None,
            controls: 0,
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
