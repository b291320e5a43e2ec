// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One attempt's TLS 1.3 handshake, flight by flight (SPEC §6.1), and its outcome (§7.1).
//!
//! Flow: 1. a flight's bytes go into TLS, in portions that TLS takes  2. what TLS then wants to
//! send is the next flight, an alert too  3. once TLS is done (at the server: once the client's
//! Finished is verified) ALPN and suite are checked and the exporter gives the secrets.
//! After that the exchange still takes flights: a server that refuses the client's certificate
//! says so in an alert that comes when the client is already done, and one that lets it resume the
//! session later sends a ticket. Not here: application data, early data. TLS's own traffic keys
//! protect nothing but the handshake and tickets.

use rustls::{AlertDescription, ClientConnection, Connection, HandshakeKind, ServerConnection};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Failed, Finished, HandshakeFailure, Input, KeyExchange, PeerIdentity, Step,
};
use smt_record::{AwsLc, SessionSecrets, Side, Suite, parameter_hash};

use crate::failure::{caller, check_suite, environment, malformed, nothing_common};
use crate::limits::FLIGHT_LEN_MAX;
use crate::peer_certificate::PeerCertificate;
use crate::tls::ALPN;
use crate::tls::failure;
use crate::tls::resumption::{Proof, Tickets};
use crate::tls::verify::Form;

/// A TLS handshake of either side.
///
/// ```text
///              done and checked               late alert
///   Exchanging ----------------> Complete --------------------> Failed
///       |                                                         ^
///       +--- alert, bad bytes, refused, nothing in common --------+
/// ```
pub(crate) struct TlsExchange {
    connection: Connection,
    side: Side,
    state: State,
    dates: Dates,
    peer_form: Form,
    server_name: Option<Box<str>>,
    own_params: Option<Vec<u8>>,
    peer_params: Option<Vec<u8>>,
    /// The alert that a failed attempt still has to send.
    alert: Alert,
    /// The result, until the step that yields it ends.
    finished: Option<Finished>,
    tickets: Tickets,
}

/// The dates and tickets of an attempt.
pub(crate) struct Terms {
    pub(crate) dates: Dates,
    pub(crate) tickets: Tickets,
    /// The form in which the peer shows its key.
    pub(crate) peer_form: Form,
    /// The name by which the peer is called, if it is a server.
    pub(crate) server_name: Option<Box<str>>,
}

/// The dates that bound the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dates {
    /// Whether the peer's certificate was judged by its dates.
    pub(crate) of_peer: bool,
    /// When the own certificate counts no more, if one may be shown.
    pub(crate) own: Option<WallTime>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Exchanging,
    Complete,
    Failed,
}

/// The alert that a failed attempt still has to send to the peer.
#[derive(Debug, Default)]
enum Alert {
    /// Nothing; what TLS has not sent yet is dropped.
    #[default]
    None,
    /// An alert that TLS wants to send.
    OfTls,
    /// One in the clear, instead of what TLS wants to send.
    Clear(AlertDescription),
}

impl TlsExchange {
    pub(crate) fn client(connection: ClientConnection, terms: Terms) -> Self {
        Self::new(Connection::Client(connection), None, terms)
    }

    pub(crate) fn server(connection: ServerConnection, client_params: &[u8], terms: Terms) -> Self {
        let peer_params = Some(client_params.to_vec());
        Self::new(Connection::Server(connection), peer_params, terms)
    }

    fn new(connection: Connection, peer_params: Option<Vec<u8>>, terms: Terms) -> Self {
        let side = match connection {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        };
        let Terms { dates, tickets, peer_form, server_name } = terms;
        Self {
            connection,
            side,
            state: State::Exchanging,
            dates,
            peer_form,
            server_name,
            own_params: None,
            peer_params,
            alert: Alert::None,
            finished: None,
            tickets,
        }
    }

    fn take_flight(
        &mut self,
        flight: u8,
        params: &[u8],
        bytes: &[u8],
    ) -> Result<(), HandshakeFailure> {
        self.take_params(flight, params)?;
        self.feed(bytes)?;
        if self.state == State::Complete {
            self.keep_tickets(bytes.len());
            return Ok(());
        }
        if self.connection.is_handshaking() {
            self.check_client_hello()?;
            return self.check_answer(flight);
        }
        match self.outcome() {
            Ok(finished) => {
                self.finished = Some(finished);
                self.state = State::Complete;
                self.keep_tickets(bytes.len());
                Ok(())
            }
            Err(failure) => {
                // TLS is content, so there is no other alert; the peer need not wait in vain.
                self.connection.send_close_notify();
                self.alert = Alert::OfTls;
                Err(failure)
            }
        }
    }

    /// Keeps the tickets that a flight of so many bytes has brought, or has caused at the server.
    fn keep_tickets(&self, flight: usize) {
        self.tickets.keep(Proof {
            is_resumed: self.is_resumed(),
            certificates: self.connection.peer_certificates().unwrap_or_default(),
            flight,
        });
    }

    fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The peer's parameters come in flight 1 at the server and in flight 2 at the client.
    fn take_params(&mut self, flight: u8, params: &[u8]) -> Result<(), HandshakeFailure> {
        match (self.side, flight) {
            (Side::Server, 1) if self.peer_params.as_deref() == Some(params) => Ok(()),
            (Side::Server, 1) => Err(caller(
                "flight 1 came with other parameters than those that began the attempt".to_owned(),
            )),
            (Side::Client, 2) => {
                self.peer_params = Some(params.to_vec());
                Ok(())
            }
            _ if params.is_empty() => Ok(()),
            (side, _) => Err(malformed(format!(
                "the {} sent parameters in flight {flight}, where none belong",
                side.peer()
            ))),
        }
    }

    /// TLS takes at most some KiB at once, so it is fed and run by turns.
    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), HandshakeFailure> {
        let peer = self.side.peer();
        if bytes.len() > FLIGHT_LEN_MAX {
            return Err(malformed(format!(
                "a flight of the {peer} has {} bytes, more than {FLIGHT_LEN_MAX}",
                bytes.len()
            )));
        }
        while !bytes.is_empty() {
            let taken = self
                .connection
                .read_tls(&mut bytes)
                .map_err(|error| malformed(format!("the {peer}'s TLS bytes: {error}")))?;
            let state = self.connection.process_new_packets().map_err(|error| {
                if !matches!(error, rustls::Error::AlertReceived(_)) {
                    self.alert = Alert::OfTls;
                }
                failure::from_tls(&error, self.side)
            })?;
            if state.plaintext_bytes_to_read() > 0 {
                return Err(malformed(format!("the {peer} sent application data through TLS")));
            }
            if state.peer_has_closed() || taken == 0 {
                return Err(failure::alert_received(AlertDescription::CloseNotify, self.side));
            }
        }
        Ok(())
    }

    /// A server judges what its TLS has agreed to before the ServerHello leaves: then an alert in
    /// the clear can still say no. (A HelloRetryRequest has not agreed on a group yet.)
    fn check_client_hello(&mut self) -> Result<(), HandshakeFailure> {
        if self.side == Side::Client || self.connection.negotiated_key_exchange_group().is_none() {
            return Ok(());
        }
        let checked = self.check_alpn().map_err(|no| (AlertDescription::NoApplicationProtocol, no));
        let checked = checked.and_then(|()| {
            self.check_suites().map_err(|no| (AlertDescription::IllegalParameter, no))
        });
        checked.map_err(|(alert, failure)| {
            self.alert = Alert::Clear(alert);
            failure
        })
    }

    /// A whole flight that does not end the handshake has an answer. At the client only a
    /// HelloRetryRequest does not end it: once there is a ServerHello, Finished must be there too.
    fn check_answer(&self, flight: u8) -> Result<(), HandshakeFailure> {
        let has_hello = self.connection.negotiated_key_exchange_group().is_some();
        if self.connection.wants_write() && (self.side == Side::Server || !has_hello) {
            return Ok(());
        }
        let peer = self.side.peer();
        Err(malformed(format!("flight {flight} of the {peer} ends in the middle of a TLS message")))
    }

    /// rustls refuses a wrong protocol but not a missing one (RFC 7301 §3.2).
    fn check_alpn(&self) -> Result<(), HandshakeFailure> {
        if self.connection.alpn_protocol() == Some(ALPN) {
            return Ok(());
        }
        Err(nothing_common(format!(
            "the {} does not name the protocol smt/1 in TLS (ALPN); is it another program?",
            self.side.peer()
        )))
    }

    /// The suite must be among those of both sides' parameters, as far as those are known.
    fn check_suites(&self) -> Result<(), HandshakeFailure> {
        let suite = self.suite()?;
        if let Some(params) = &self.peer_params {
            check_suite(suite, params, self.side.peer())?;
        }
        if let Some(params) = &self.own_params {
            check_suite(suite, params, self.side)?;
        }
        Ok(())
    }

    fn suite(&self) -> Result<Suite, HandshakeFailure> {
        let suite = self.connection.negotiated_cipher_suite();
        suite
            .and_then(|suite| Suite::from_code(suite.suite().into()))
            .ok_or_else(|| environment("TLS agreed on no suite that SMT has".to_owned()))
    }

    fn outcome(&self) -> Result<Finished, HandshakeFailure> {
        self.check_alpn()?;
        self.check_suites()?;
        let own = self.own_params.as_ref().ok_or_else(|| {
            caller("the handshake ended before its own parameters were given".to_owned())
        })?;
        let peer = self
            .peer_params
            .as_ref()
            .ok_or_else(|| malformed(format!("the {} sent no parameters", self.side.peer())))?;
        let hash = match self.side {
            Side::Client => parameter_hash(&AwsLc, own, peer),
            Side::Server => parameter_hash(&AwsLc, peer, own),
        };
        let secrets = SessionSecrets::from_exporter(self.suite()?, &hash, |out, label, context| {
            self.connection.export_keying_material(out, label.as_bytes(), Some(context)).map(|_| ())
        })
        .map_err(|error| environment(format!("TLS exports no secrets: {error}")))?;
        let group = self.connection.negotiated_key_exchange_group();
        Ok(Finished {
            secrets,
            peer: self.peer(),
            own_expires: self.dates.own,
            key_exchange: group.and_then(|group| group.name().as_str()).unwrap_or("unknown group"),
            early_taken: false,
        })
    }
}

impl TlsExchange {
    /// The identity that the peer has proved.
    fn peer(&self) -> PeerIdentity {
        let shown = self.connection.peer_certificates().unwrap_or_default();
        let first = shown.first();
        let identity = PeerIdentity {
            server_name: self.server_name.clone(),
            is_resumed: self.is_resumed(),
            ..PeerIdentity::default()
        };
        match self.peer_form {
            Form::Certificate => PeerIdentity {
                certificates: shown.iter().map(|der| der.to_vec()).collect(),
                expires: first
                    .filter(|_| self.dates.of_peer)
                    .and_then(|leaf| PeerCertificate::expiry(leaf)),
                ..identity
            },
            Form::RawPublicKey => {
                PeerIdentity { public_key: first.map(|key| key.as_ref().into()), ..identity }
            }
        }
    }

    /// Takes a whole flight of the peer.
    fn take(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        if self.state == State::Failed {
            return Err(malformed("a flight came after the attempt had failed".to_owned()));
        }
        let taken = self.take_flight(flight, params, bytes);
        if taken.is_err() {
            self.state = State::Failed;
            self.finished = None;
        }
        taken
    }

    /// Takes the flight that is to be sent now.
    fn next_flight(&mut self) -> Option<Vec<u8>> {
        let mut flight = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut flight).expect("writing to a Vec cannot fail");
        }
        match (self.state, std::mem::take(&mut self.alert)) {
            (State::Failed, Alert::None) => None,
            (State::Failed, Alert::Clear(alert)) => Some(clear_alert(alert)),
            _ => (!flight.is_empty()).then_some(flight),
        }
    }
}

impl KeyExchange for TlsExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let taken = match input {
            Input::Begin { own_params, .. } => {
                self.own_params = Some(own_params.to_vec());
                Ok(())
            }
            Input::Flight { number, params, bytes } => self.take(number, params, bytes),
        };
        let send = self.next_flight();
        let finished = self.finished.take();
        if self.side == Side::Server && finished.is_some() {
            // The client is done: what TLS has left are tickets.
            return Ok(Step { finished, parting: send, ..Step::default() });
        }
        Step::of(taken, send, finished)
    }
}

/// A fatal alert in a TLS record without protection (RFC 8446 §5.1, §6), as a server may send
/// instead of its ServerHello.
fn clear_alert(alert: AlertDescription) -> Vec<u8> {
    vec![0x15, 0x03, 0x03, 0x00, 0x02, ALERT_FATAL, alert.into()]
}

/// RFC 8446 §6.
const ALERT_FATAL: u8 = 2;
