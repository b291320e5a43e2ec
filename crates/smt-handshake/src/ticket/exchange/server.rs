// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's side of a handshake by ticket.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Failed, Finished, HandshakeFailure, Input, KeyExchange, PeerIdentity, Step,
};
use smt_record::{Side, Suite};

use super::client_proof::{ClientProof, Signed};
use super::{BothParams, bad_length, bad_share, not_begun, out_of_turn};
use crate::failure::{check_suite, environment, malformed, nothing_common};
use crate::peer_certificate::PeerCertificate;
use crate::ticket::hello::{ClientFlight, Refusal, ServerHello, hash_of_hello, hash_of_hellos};
use crate::ticket::keys::{TicketKey, TicketKeys};
use crate::ticket::schedule::{EarlySecret, TranscriptHash};

/// The parts of a server's attempts.
#[derive(Clone, Debug)]
pub(in crate::ticket) struct ServerSide {
    pub(in crate::ticket) keys: TicketKeys,
    /// Judges client certificates, if clients may show any.
    pub(in crate::ticket) clients: Option<Arc<dyn ClientCertVerifier>>,
    /// Whether dates of client certificates matter.
    pub(in crate::ticket) judges_dates: bool,
    pub(in crate::ticket) algorithms: WebPkiSupportedAlgorithms,
}

/// A server's attempt.
pub(in crate::ticket) struct ServerExchange {
    side: ServerSide,
    now: WallTime,
    params: BothParams,
    has_answered: bool,
}

/// Why flight 1 was not taken: with or without an answer.
enum NotTaken {
    Refused(Refusal),
    Failed(HandshakeFailure),
}

impl From<HandshakeFailure> for NotTaken {
    fn from(failure: HandshakeFailure) -> Self {
        Self::Failed(failure)
    }
}

impl ServerExchange {
    pub(in crate::ticket) fn new(side: ServerSide, client_params: &[u8], now: WallTime) -> Self {
        Self {
            side,
            now,
            params: BothParams { client: client_params.to_vec(), server: Vec::new() },
            has_answered: false,
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> Result<Step, NotTaken> {
        let flight = ClientFlight::parse(bytes).map_err(|_| bad_length(Side::Client))?;
        let key = self.side.keys.get(&flight.hello.ticket, self.now);
        let key = key.ok_or(NotTaken::Refused(Refusal::UnknownTicket))?;
        let suite = self.suite(&flight, &key)?;
        // One agreement for anyone who sends a flight; all else waits for the binder.
        let shared = key.key.agree(&flight.hello.share);
        let early = EarlySecret::new(suite, &shared.map_err(|_| bad_share(Side::Client))?);
        let hello = hash_of_hello(&self.params.client, flight.hello_bytes);
        if !early.is_binder(&hello, flight.binder) {
            return Err(malformed("the client's binder is wrong".to_owned()).into());
        }
        let wrong = || malformed("the sealed part of flight 1 is wrong".to_owned());
        let sealed = early.open(&hello, flight.sealed).map_err(|_| wrong())?;
        let (proof, early_data) = ClientProof::parse(&sealed).map_err(|_| wrong())?;
        let signed = Signed { hello: &hello, early_data };
        self.check_client(&proof, &signed, &key)?;
        self.finish(Begun {
            key: &key,
            early,
            hello,
            flight: &flight,
            chain: proof.chain,
            early_data,
        })
    }

    /// The suite must be one of the ticket, which the server has signed, and of both parameters.
    fn suite(&self, flight: &ClientFlight<'_>, key: &TicketKey) -> Result<Suite, HandshakeFailure> {
        let suite = Suite::from_code(flight.hello.suite);
        let suite = suite.filter(|suite| key.ticket.content.suites.contains(suite));
        let suite = suite.ok_or_else(|| {
            nothing_common("the client wants a suite that the ticket does not name".to_owned())
        })?;
        check_suite(suite, &self.params.client, Side::Client)?;
        check_suite(suite, &self.params.server, Side::Server)?;
        Ok(suite)
    }

    fn check_client(
        &self,
        proof: &ClientProof,
        signed: &Signed<'_>,
        key: &TicketKey,
    ) -> Result<(), NotTaken> {
        let verifier = self.side.clients.as_ref();
        let is_mandatory = key.ticket.content.requires.client_certificate
            || verifier.is_some_and(|verifier| verifier.client_auth_mandatory());
        let Some((leaf, intermediates)) = proof.chain.split_first() else {
            return match is_mandatory {
                true => Err(NotTaken::Refused(Refusal::TooLittle)),
                false => Ok(()),
            };
        };
        // A server that does not ask takes no notice.
        let Some(verifier) = verifier else {
            return Ok(());
        };
        let at = UnixTime::since_unix_epoch(Duration::from_secs(self.now.as_secs()));
        let is_trusted = verifier.verify_client_cert(leaf, intermediates, at).is_ok();
        match is_trusted && proof.is_signed(&self.side.algorithms, signed) {
            true => Ok(()),
            false => Err(NotTaken::Refused(Refusal::Certificate)),
        }
    }

    fn finish(&mut self, begun: Begun<'_>) -> Result<Step, NotTaken> {
        let content = &begun.key.ticket.content;
        let share = begun.flight.hello.ephemeral.as_slice();
        if share.is_empty() && content.requires.forward_secrecy {
            return Err(NotTaken::Refused(Refusal::TooLittle));
        }
        let ephemeral =
            (!share.is_empty()).then(|| content.group.kx_group().start_and_complete(share));
        let ephemeral = ephemeral.transpose().map_err(|_| bad_share(Side::Client))?;
        let mut random = [0; 32];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| environment("the system gives no random bytes".to_owned()))?;
        let (own_share, secret) = match ephemeral {
            Some(agreed) => (agreed.pub_key, Some(agreed.secret)),
            None => (Vec::new(), None),
        };
        let secret = begun.early.handshake(secret.as_ref().map(|secret| secret.secret_bytes()));
        // The last check of all: from here on the early data is delivered.
        let takes_early = content.takes_early_data
            && smt_wire::early_requests(begun.early_data).is_some()
            && begun.key.seen.is_first(begun.flight.hello.random);
        let answer =
            ServerHello { takes_early, random, ephemeral: own_share, finished: Vec::new() };
        let mut bytes = answer.hello_bytes().ok_or_else(|| bad_length(Side::Server))?;
        let hellos = hash_of_hellos(&begun.hello, begun.flight, &self.params.server, &bytes);
        bytes.extend_from_slice(&secret.finished(&hellos));
        let has_asked = self.side.clients.is_some();
        let chain = begun.chain.iter().filter(|_| has_asked);
        let judges_dates = has_asked && self.side.judges_dates;
        let leaf = begun.chain.first().filter(|_| judges_dates);
        let finished = Finished {
            secrets: self.params.session_secrets(&secret, &hellos),
            peer: PeerIdentity {
                server_name: None,
                certificates: chain.map(|der| der.to_vec()).collect(),
                public_key: None,
                key_name: None,
                key_identity: None,
                expires: leaf.and_then(|leaf| PeerCertificate::expiry(leaf)),
                is_resumed: false,
            },
            own_expires: None,
            key_exchange: match share.is_empty() {
                true => "ticket",
                false => "ticket with forward secrecy",
            },
            early_taken: takes_early,
        };
        Ok(Step {
            send: Some(bytes),
            finished: Some(finished),
            early: takes_early.then(|| begun.early_data.to_vec()),
            parting: None,
        })
    }
}

/// A client whose binder was right.
struct Begun<'a> {
    key: &'a TicketKey,
    early: EarlySecret,
    hello: TranscriptHash,
    flight: &'a ClientFlight<'a>,
    chain: Vec<CertificateDer<'static>>,
    early_data: &'a [u8],
}

impl KeyExchange for ServerExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        match input {
            Input::Begin { own_params, .. } => {
                self.params.server = own_params.to_vec();
                Ok(Step::default())
            }
            Input::Flight { number: 1, params, bytes } if !self.has_answered => {
                self.has_answered = true;
                if params != self.params.client || self.params.server.is_empty() {
                    return Err(not_begun().into());
                }
                match self.answer(bytes) {
                    Ok(step) => Ok(step),
                    Err(NotTaken::Failed(failure)) => Err(failure.into()),
                    Err(NotTaken::Refused(refusal)) => Err(Failed {
                        failure: nothing_common(format!(
                            "a client's ticket is not taken: {refusal}"
                        )),
                        alert: Some(refusal.bytes()),
                    }),
                }
            }
            // It is there for CONFIRM alone (SPEC §6.1).
            Input::Flight { number: 3, params: [], bytes: [] } if self.has_answered => {
                Ok(Step::default())
            }
            Input::Flight { number, .. } => Err(out_of_turn(number, Side::Client).into()),
        }
    }
}
