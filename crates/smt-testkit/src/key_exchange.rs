// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key exchange without TLS and without chance: three flights, a secret that both sides hold.
//!
//! Real in what the core relies on: each attempt has a fresh random (counted, not drawn), keys and
//! proofs are bound to both sides' parameters and to every byte of the flights, forged flights
//! fail, and failures send an alert. SHA-256 stands in for every MAC, and equal inputs give equal
//! runs. Without proofs ([`FakeKeyExchange::unproven`]) flights are three short words, for scale.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, FailureKind, Fault, Finished, HandshakeFailure, Input,
    KeyExchange, KeyExchangeProvider, PeerIdentity, Step,
};
use smt_record::{
    AwsLc, ImportedIdentity, ImportedKey, SessionSecrets, Side, Suite, parameter_hash,
};

use crate::hash;

/// Makes the exchanges of one endpoint; both sides need the same secret.
pub struct FakeKeyExchange {
    /// The settings that an attempt needs.
    pub settings: ExchangeSettings,
    attempts: AtomicU64,
}

/// How exchanges go.
#[derive(Clone, Debug)]
pub struct ExchangeSettings {
    /// The secret that both sides hold and nobody else.
    pub secret: Vec<u8>,
    /// Bytes that fill flights 1, 2 and 3, as certificates and post-quantum shares would.
    pub filler: [usize; 3],
    /// The server answers every client with an alert.
    pub refuses: bool,
    /// The kind of key exchange that parameters name.
    pub kind: smt_wire::KeyExchange,
    /// Told of each transcript as the keys are made from it.
    pub observer: fn(&Transcript),
    /// Whether exchanges are as those by tickets: the server is done after flight 1, which has
    /// early data.
    pub early: Early,
    /// When the credentials of the peer end, and those of this side.
    pub expires: [Option<WallTime>; 2],
    /// The certificate that the peer is to have shown, if it is to have one.
    pub certificate: Option<Vec<u8>>,
    /// How many sessions may still begin, if that is bounded: more are refused once the peer has
    /// confirmed.
    pub sessions_left: Option<Arc<AtomicU64>>,
    /// Bytes that a server leaves its client beside CONFIRM, if there are any.
    pub parting: Vec<u8>,
    /// How often the server has its client begin anew, as TLS does by HelloRetryRequest.
    pub retries: u8,
    /// Flights have randoms and proofs.
    is_proven: bool,
    /// Flights 1 whose early data a server has taken.
    seen: Arc<Mutex<BTreeSet<Vec<u8>>>>,
}

/// The early data of exchanges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Early {
    /// There is none: exchanges are as those of TLS.
    None,
    /// The server takes it, once.
    Taken,
    /// The server does not take it.
    NotTaken,
}

/// A hash of all that both sides have sent: a session's secrets come from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transcript([u8; 32]);

impl Transcript {
    /// Both directions' secrets.
    pub fn secrets(&self) -> SessionSecrets {
        let identity = ImportedIdentity { key_name: b"", client: b"client", server: b"server" };
        let key = ImportedKey::new(&AwsLc, Suite::Aes128Gcm, &self.0, &identity);
        key.session_secrets(&AwsLc, &self.0)
    }
}

impl FakeKeyExchange {
    /// With randoms counted from `attempt`, so that two endpoints can have different ones.
    pub fn new(attempt: u64) -> Self {
        Self {
            settings: ExchangeSettings {
                secret: SECRET.to_vec(),
                filler: [0; 3],
                refuses: false,
                kind: smt_wire::KeyExchange::Tls13,
                observer: |_| {},
                early: Early::None,
                expires: [None; 2],
                certificate: None,
                sessions_left: None,
                parting: Vec::new(),
                retries: 0,
                is_proven: true,
                seen: Arc::default(),
            },
            attempts: AtomicU64::new(attempt),
        }
    }

    /// Exchanges as those by tickets, with early data.
    pub fn with_early(attempt: u64, early: Early) -> Self {
        let mut exchange = Self::new(attempt);
        exchange.settings.kind = smt_wire::KeyExchange::Ticket;
        exchange.settings.early = early;
        exchange
    }

    /// Flights prove nothing: the secrets follow from the parameters alone.
    pub fn unproven() -> Self {
        let mut exchange = Self::new(0);
        exchange.settings.is_proven = false;
        exchange
    }

    fn attempt(&self, side: Side) -> Attempt {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let exchange = Exchange {
            side,
            hello: self.settings.hello(side, attempt),
            settings: self.settings.clone(),
            own_params: Vec::new(),
            peer_params: None,
            transcript: None,
            next: None,
            awaited: Some(if side == Side::Client { 2 } else { 1 }),
            finished: None,
            early: None,
        };
        Attempt {
            kind: self.settings.kind,
            suites: vec![Suite::Aes128Gcm],
            key: None,
            early_max: match self.settings.early {
                Early::None => 0,
                Early::Taken | Early::NotTaken => EARLY_MAX,
            },
            exchange: Box::new(exchange),
        }
    }
}

impl ExchangeSettings {
    /// The first bytes that a side says.
    fn hello(&self, side: Side, attempt: u64) -> Vec<u8> {
        let (word, filler) = match side {
            Side::Client => (&b"client"[..], self.filler[0]),
            Side::Server => (&b"server"[..], self.filler[1]),
        };
        if !self.is_proven {
            return word.to_vec();
        }
        let mut hello = hash(&[&self.secret, &attempt.to_be_bytes(), word]).to_vec();
        hello.resize(hello.len() + filler, b'f');
        hello
    }

    /// The transcript of these parameters of client and server, and of what both said first.
    fn agreed(&self, client: &[u8], server: &[u8], hellos: [&[u8]; 2]) -> Transcript {
        let params = parameter_hash(&AwsLc, client, server);
        Transcript(match self.is_proven {
            true => hash(&[&self.secret, &params, hellos[0], hellos[1]]),
            false => params,
        })
    }
}

impl KeyExchangeProvider for FakeKeyExchange {
    fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        Ok(self.attempt(Side::Client))
    }

    fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        Ok(self.attempt(Side::Server))
    }
}

/// One attempt: `hello`, then `hello || proof`, then `filler || proof`; before the second perhaps
/// some rounds of a word and the `hello` again.
struct Exchange {
    side: Side,
    settings: ExchangeSettings,
    hello: Vec<u8>,
    own_params: Vec<u8>,
    peer_params: Option<Vec<u8>>,
    transcript: Option<Transcript>,
    next: Option<Vec<u8>>,
    awaited: Option<u8>,
    finished: Option<Finished>,
    /// Early data that the server takes.
    early: Option<Vec<u8>>,
}

impl Exchange {
    fn take(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        // Taken out: a failed flight ends the attempt.
        if self.awaited.take() != Some(flight) {
            return Err(failure(FailureKind::Malformed, "a flight out of turn"));
        }
        let params = self.take_params(params)?;
        let is_first = self.transcript.is_none();
        match self.side {
            Side::Server if self.settings.retries > 0 => {
                self.settings.retries -= 1;
                (self.next, self.awaited) = (Some(RETRY.to_vec()), Some(flight + 2));
            }
            Side::Client if bytes == RETRY => {
                (self.next, self.awaited) = (Some(self.hello.clone()), Some(flight + 2));
            }
            Side::Server if is_first && self.settings.is_proven && bytes.len() < RANDOM_LEN => {
                return Err(failure(FailureKind::Malformed, "a flight without a random"));
            }
            Side::Server if is_first && self.settings.early != Early::None => {
                self.take_early(bytes);
                self.transcript =
                    Some(self.settings.agreed(&params, &self.own_params, [bytes, &self.hello]));
                self.next = Some(self.proven(self.hello.clone()));
                self.finish();
            }
            Side::Server if is_first => {
                self.transcript =
                    Some(self.settings.agreed(&params, &self.own_params, [bytes, &self.hello]));
                self.next = Some(self.proven(self.hello.clone()));
                self.awaited = Some(flight + 2);
            }
            Side::Client => {
                let (hello, proof) = self.split(bytes)?;
                self.transcript =
                    Some(self.settings.agreed(&self.own_params, &params, [&self.hello, hello]));
                self.check(hello, proof)?;
                let is_taken = hello.last() == Some(&TAKEN) && self.settings.early != Early::None;
                self.early = is_taken.then(Vec::new);
                let last = match self.settings.is_proven {
                    true => vec![b'c'; self.settings.filler[2]],
                    false => b"done".to_vec(),
                };
                self.next = Some(self.proven(last));
                self.finish();
            }
            Side::Server => {
                let (filler, proof) = self.split(bytes)?;
                self.check(filler, proof)?;
                self.finish();
            }
        }
        Ok(())
    }

    /// The peer's parameters, which come with its first flight and no other.
    fn take_params(&mut self, params: &[u8]) -> Result<Vec<u8>, HandshakeFailure> {
        match &self.peer_params {
            Some(known) if params.is_empty() => Ok(known.clone()),
            Some(_) => Err(failure(FailureKind::Malformed, "parameters in a later flight")),
            None => {
                self.peer_params = Some(params.to_vec());
                Ok(params.to_vec())
            }
        }
    }

    /// Takes the early data of flight 1, if there is some and the flight is new.
    fn take_early(&mut self, flight: &[u8]) {
        let early = flight.get(RANDOM_LEN + self.settings.filler[0]..);
        let early = early.filter(|early| !early.is_empty() && self.settings.early == Early::Taken);
        let mut seen = self.settings.seen.lock().expect("no test has panicked");
        self.early = early.filter(|_| seen.insert(flight.to_vec())).map(<[u8]>::to_vec);
        let is_taken = self.early.is_some();
        self.hello.push(if is_taken { TAKEN } else { NOT_TAKEN });
    }

    /// A flight and the proof at its end.
    fn split<'a>(&self, flight: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), HandshakeFailure> {
        let proof_len = if self.settings.is_proven { PROOF_LEN } else { 0 };
        let parts = flight.len().checked_sub(proof_len).map(|at| flight.split_at(at));
        parts.ok_or_else(not_authentic)
    }

    /// A flight of this side with its proof.
    fn proven(&self, flight: Vec<u8>) -> Vec<u8> {
        let proof = self.proof(self.side, &flight);
        [flight, proof].concat()
    }

    fn proof(&self, side: Side, flight: &[u8]) -> Vec<u8> {
        if !self.settings.is_proven {
            return Vec::new();
        }
        let transcript = self.transcript.map_or([0; 32], |transcript| transcript.0);
        hash(&[&self.settings.secret, &transcript, &[side as u8], flight]).to_vec()
    }

    /// Without a comparison that a fuzzer could learn from.
    fn check(&self, flight: &[u8], proof: &[u8]) -> Result<(), HandshakeFailure> {
        match hash(&[proof]) == hash(&[&self.proof(self.side.peer(), flight)]) {
            true => Ok(()),
            false => Err(not_authentic()),
        }
    }

    fn finish(&mut self) {
        self.finished = self.transcript.map(|transcript| {
            (self.settings.observer)(&transcript);
            Finished {
                secrets: transcript.secrets(),
                peer: PeerIdentity {
                    certificates: self.settings.certificate.iter().cloned().collect(),
                    expires: self.settings.expires[0],
                    ..PeerIdentity::default()
                },
                own_expires: self.settings.expires[1],
                key_exchange: "none",
                early_taken: self.early.is_some(),
            }
        });
    }
}

impl KeyExchange for Exchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let taken = match input {
            Input::Begin { own_params, early } => {
                self.own_params = own_params.to_vec();
                self.hello.extend_from_slice(early);
                self.next = (self.side == Side::Client).then(|| self.hello.clone());
                Ok(())
            }
            Input::Flight { number, params, bytes } => self.receive(number, params, bytes),
        };
        let send = self.next.take();
        let early = self.early.take().filter(|_| self.side == Side::Server);
        let step = Step::of(taken, send, self.finished.take())?;
        let has_parting = self.side == Side::Server && step.finished.is_some();
        let parting = Some(self.settings.parting.clone());
        let parting = parting.filter(|bytes| has_parting && !bytes.is_empty());
        Ok(Step { early, parting, ..step })
    }

    fn confirmed(&mut self) -> Result<(), HandshakeFailure> {
        let Some(left) = &self.settings.sessions_left else {
            return Ok(());
        };
        let take = |left: u64| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map(drop)
            .map_err(|_| failure(FailureKind::NoCommonParameters, "no session is left"))
    }
}

impl Exchange {
    fn receive(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        if bytes == ALERT {
            self.awaited = None;
            return Err(failure(FailureKind::AlertReceived, "refused by the peer"));
        }
        if self.settings.refuses {
            self.next = Some(ALERT.to_vec());
            return Err(failure(FailureKind::CertificateRefused, "told to refuse"));
        }
        let taken = self.take(flight, params, bytes);
        if taken.is_err() {
            self.next = Some(ALERT.to_vec());
        }
        taken
    }
}

fn not_authentic() -> HandshakeFailure {
    failure(FailureKind::Malformed, "the flight is not authentic")
}

fn failure(kind: FailureKind, text: &str) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Peer, kind, text: text.to_owned() }
}

const SECRET: &[u8] = b"what both sides hold and nobody else";
const ALERT: &[u8] = b"alert";
const RETRY: &[u8] = b"again";
/// The last byte of the server's hello, with early data.
const TAKEN: u8 = 1;
const NOT_TAKEN: u8 = 0;
/// Bytes of early data.
const EARLY_MAX: usize = 4_096;
/// Bytes that a side begins with.
const RANDOM_LEN: usize = 32;
/// SHA-256.
const PROOF_LEN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs an exchange whose flight 2 is changed so.
    fn run(
        provider: &FakeKeyExchange,
        change: fn(&mut Vec<u8>),
    ) -> Result<[Finished; 2], HandshakeFailure> {
        let (mut client, mut server) =
            (provider.client(ClientRequest::new("s"))?, provider.server(b"c", None)?);
        let mut step = |is_client: bool, input: Input<'_>| {
            let side = if is_client { &mut client } else { &mut server };
            side.exchange.step(input).map_err(|failed| failed.failure)
        };
        let hello = step(true, Input::Begin { own_params: b"c", early: &[] })?.send.unwrap();
        step(false, Input::Begin { own_params: b"s", early: &[] })?;
        let flight = |number, params, bytes| Input::Flight { number, params, bytes };
        let mut answer = step(false, flight(1, b"c", &hello))?.send.unwrap();
        change(&mut answer);
        let at_client = step(true, flight(2, b"s", &answer))?;
        let at_server = step(false, flight(3, b"", &at_client.send.unwrap()))?;
        Ok([at_client.finished.unwrap(), at_server.finished.unwrap()])
    }

    #[test]
    fn both_sides_agree_with_proofs_and_without() {
        for provider in [FakeKeyExchange::new(7), FakeKeyExchange::unproven()] {
            let [client, server] = run(&provider, |_| {}).unwrap();
            assert_eq!(client.secrets, server.secrets);
        }
    }

    #[test]
    fn each_session_with_proofs_has_secrets_of_its_own() {
        let provider = FakeKeyExchange::new(7);
        let [one, other] = [0, 1].map(|_| {
            let [client, _] = run(&provider, |_| {}).unwrap();
            client.secrets
        });
        assert_ne!(one.client, other.client);
        assert_ne!(one.exporter, other.exporter);
    }

    #[test]
    fn a_changed_flight_is_refused_wherever_it_changed() {
        let mut provider = FakeKeyExchange::new(7);
        provider.settings.filler = [10, 20, 30];
        let changes: [fn(&mut Vec<u8>); 4] = [
            |flight| flight[0] ^= 1,
            |flight| flight[40] ^= 1,
            |flight| *flight.last_mut().unwrap() ^= 1,
            |flight| flight.truncate(9),
        ];
        for change in changes {
            let failure = run(&provider, change).err().unwrap();
            assert_eq!(failure.kind, FailureKind::Malformed);
        }
    }
}
