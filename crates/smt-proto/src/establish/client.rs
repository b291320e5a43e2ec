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
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use smt_carrier::Path;
use smt_wire::{Control, Handshake, SessionIndex};

use crate::error::{ConnectError, Unavailability};
use crate::establish::agreement::OwnIndex;
use crate::establish::early::{EarlyCall, EarlyCalls};
use crate::establish::established::Established;
use crate::establish::flight::{FlightRoute, WholeFlight};
use crate::establish::session_factory::SessionFactory;
use crate::event::ConnectId;
use crate::key_exchange::{ClientRequest, FailureKind, HandshakeFailure};
use crate::limits::{
    ATTEMPT_QUESTIONS, FLIGHTS_MAX, HANDSHAKE_RETRY_MAX, REFUSALS_BELIEVED, STALE_HINTS,
};
use crate::recovery::retry_timer::RetryTimer;
use crate::send::batch::DatagramBatch;
use crate::send::buffer::TransmitBuffer;
use crate::send::ready_queue::Slot;
use crate::statistics::Statistics;
use crate::time::Time;

mod attempt;

use attempt::Attempt;

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
    /// This host has refused to send a packet of it.
    is_send_refused: bool,
    /// The registered key of the last attempt that lacked only the server's CONFIRM.
    unproven_key: Option<Vec<u8>>,
    /// The calls that begin with the session.
    early: EarlyCalls,
    /// Its entries in the endpoint's schedule.
    pub(crate) slot: Slot,
}

/// The session that the application wants.
pub(crate) struct HandshakeRequest<'a> {
    pub(crate) id: ConnectId,
    pub(crate) path: Path,
    /// The name that the server must prove.
    pub(crate) server_name: &'a str,
    /// How long the application waits.
    pub(crate) deadline: Duration,
    /// The calls that begin with the session.
    pub(crate) early: Vec<EarlyCall>,
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
        request: HandshakeRequest<'_>,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
    ) -> Result<Self, HandshakeFailure> {
        let first = ClientRequest {
            server_name: request.server_name,
            wall: factory.wall(now),
            is_retry: false,
        };
        let mut early = EarlyCalls::new(now, request.early);
        let attempt = Attempt::new(now, first, own, factory, Some(&mut early))?;
        Ok(Self {
            id: request.id,
            path: request.path,
            server_name: request.server_name.to_owned(),
            began: now,
            deadline: now + request.deadline,
            attempt,
            refusals: 0,
            last_failure: None,
            has_answered: false,
            is_send_refused: false,
            unproven_key: None,
            early,
            slot: Slot::default(),
        })
    }

    /// Begins a new attempt with a new index.
    pub(crate) fn restart(
        &mut self,
        now: Time,
        own: OwnIndex,
        factory: &SessionFactory<'_>,
    ) -> Progress {
        let again = ClientRequest {
            server_name: &self.server_name,
            wall: factory.wall(now),
            is_retry: true,
        };
        // Early data leaves once: another attempt could not know whether the first was taken.
        self.early.sent = 0;
        match Attempt::new(now, again, own, factory, None) {
            Ok(attempt) => {
                self.attempt = attempt;
                Progress::Waiting
            }
            Err(failure) => Progress::Failed(failure.into()),
        }
    }

    /// Takes the calls that begin with the session, which is live now.
    pub(crate) fn take_early(&mut self) -> EarlyCalls {
        let mut early = core::mem::take(&mut self.early);
        early.is_taken = self.attempt.early_taken;
        early
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
        let flight = WholeFlight { number: packet.flight, body: &body };
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
            // The server is as good without a ticket: the next attempt begins at once.
            Err(failure) if attempt.kind == smt_wire::KeyExchange::Ticket => {
                attempt.has_failed = true;
                attempt.retry.make_due_by(now);
                self.last_failure = Some(failure.into());
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
        let opened = unconfirmed.take_if(|waits| waits.open_confirm(control, statistics));
        let Some(confirmed) = opened else {
            return Progress::Waiting;
        };
        match self.attempt.key_exchange.confirmed() {
            Ok(()) => Progress::Live(Box::new(confirmed.confirmed())),
            Err(failure) => self.fail_attempt(failure),
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
            self.last_failure = Some(ConnectError::Version { ours, theirs: theirs.to_vec() });
        }
    }

    /// Takes a report of the server's host that no socket listens there. The first report may be
    /// about a datagram that was sent before, to a server that has since come back: the flight is
    /// repeated, and a report after that is believed.
    pub(crate) fn handle_unreachable(&mut self, now: Time) -> Progress {
        self.handle_hint(now, ConnectError::NoServer)
    }

    /// Takes the carrier's word that the path does not carry the datagrams of a flight. The first
    /// word may be of a path that has changed since, and somebody may have forged the report that
    /// it comes from: the flight is repeated, and the word after that is believed.
    pub(crate) fn handle_path_too_small(&mut self, now: Time) -> Progress {
        self.handle_hint(now, ConnectError::PathTooSmall)
    }

    /// Repeats the flight after the first hint, and fails so after one that follows.
    fn handle_hint(&mut self, now: Time, failure: ConnectError) -> Progress {
        let attempt = &mut self.attempt;
        if self.has_answered {
            return Progress::Waiting;
        }
        match attempt.asked_before_hint {
            Some(asked) if asked < attempt.retry.asked => Progress::Failed(failure),
            Some(_) => Progress::Waiting,
            None => {
                attempt.asked_before_hint = Some(attempt.retry.asked);
                attempt.retry.make_due_by(now + STALE_HINTS);
                Progress::Waiting
            }
        }
    }

    /// Notes that this host has refused to send a packet: a hint for the error message only, since
    /// the next one may leave.
    pub(crate) fn handle_send_refused(&mut self) {
        self.is_send_refused = true;
    }

    /// Takes the server's word that it takes no client. Anybody can forge it: it costs the attempt,
    /// as an alert does, unless the server has begun to answer. The next attempt may reach another
    /// shard (SPEC §6.6).
    pub(crate) fn handle_unavailable(&mut self, now: Time, why: Unavailability) -> Progress {
        if self.attempt.has_answer || self.attempt.has_failed {
            return Progress::Waiting;
        }
        self.attempt.retry.make_due_by(now + STALE_HINTS);
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
                (None, None) if self.is_send_refused => ConnectError::NotSent(after),
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
    pub(crate) fn write(&mut self, version: u8, batch: &mut DatagramBatch<'_>) {
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
