// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key exchange for tests: three flights, a shared secret instead of certificates.
//!
//! Real in what the core relies on: fresh randoms of both sides, keys bound to every byte of both
//! parameters, a MAC of each side over the transcript (so that a forged flight fails), alerts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::hmac;
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, Failed, FailureKind, Fault, Finished, HandshakeFailure, Input, KeyExchange,
    KeyExchangeProvider, MacPurpose, PeerIdentity, Step, TokenMac,
};
use smt_record::{
    AwsLc, ImportedIdentity, ImportedKey, SessionSecrets, Side, Suite, parameter_hash,
};

/// Makes exchanges; both sides need the same secret.
pub struct Exchanges {
    pub secret: Vec<u8>,
    /// Bytes that fill flights 1, 2 and 3, as certificates and post-quantum shares would.
    pub filler: [usize; 3],
    /// The server answers every client with an alert.
    pub refuses: bool,
    /// What parameters say of them.
    pub kind: smt_wire::KeyExchange,
    randoms: AtomicU64,
}

impl Exchanges {
    pub fn new(randoms: u64) -> Self {
        Self {
            secret: b"a secret for tests, 32 bytes long".to_vec(),
            filler: [200, 900, 0],
            refuses: false,
            kind: smt_wire::KeyExchange::Tls13,
            randoms: AtomicU64::new(randoms),
        }
    }

    fn begin(&self, side: Side) -> Attempt {
        let mut random = [0; 32];
        let number = self.randoms.fetch_add(1, Ordering::Relaxed);
        random[..8].copy_from_slice(&number.to_be_bytes());
        random[31] = side as u8;
        let exchange = Exchange {
            side,
            secret: self.secret.clone(),
            filler: self.filler,
            refuses: self.refuses,
            random,
            own_params: Vec::new(),
            transcript: None,
            next: (side == Side::Client).then(|| hello(&random, self.filler[0])),
            awaited: if side == Side::Client { 2 } else { 1 },
            finished: None,
        };
        Attempt {
            kind: self.kind,
            suites: vec![Suite::Aes128Gcm],
            key: None,
            exchange: Box::new(exchange),
        }
    }
}

impl KeyExchangeProvider for Exchanges {
    fn client(&self, _: &str, _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        Ok(self.begin(Side::Client))
    }

    fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        Ok(self.begin(Side::Server))
    }
}

/// Both directions' secrets of a transcript.
pub fn secrets(transcript: &[u8], hash: &[u8; 32]) -> SessionSecrets {
    let identity = ImportedIdentity {
        key_name: b"",
        client: b"client",
        server: b"server",
    };
    ImportedKey::new(&AwsLc, Suite::Aes128Gcm, transcript, &identity).session_secrets(&AwsLc, hash)
}

struct Exchange {
    side: Side,
    secret: Vec<u8>,
    filler: [usize; 3],
    refuses: bool,
    random: [u8; 32],
    own_params: Vec<u8>,
    /// Secret and everything that both sides have said.
    transcript: Option<Vec<u8>>,
    next: Option<Vec<u8>>,
    awaited: u8,
    finished: Option<Finished>,
}

impl Exchange {
    fn set_transcript(&mut self, peer_params: &[u8], peer_random: &[u8]) {
        let (params, randoms) = match self.side {
            Side::Client => (
                (self.own_params.as_slice(), peer_params),
                [&self.random, peer_random],
            ),
            Side::Server => (
                (peer_params, self.own_params.as_slice()),
                [peer_random, &self.random],
            ),
        };
        let hash = parameter_hash(&AwsLc, params.0, params.1);
        self.transcript = Some([&self.secret, &hash[..], &randoms.concat()].concat());
    }

    fn mac(&self, side: Side) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let transcript = self.transcript.as_deref().unwrap();
        hmac::sign(&key, &[transcript, &[side as u8]].concat())
            .as_ref()
            .to_vec()
    }

    fn finish(&mut self) {
        let transcript = self.transcript.as_deref().unwrap();
        let hash = parameter_hash(&AwsLc, transcript, b"");
        super::rogue::learn(transcript, hash);
        self.finished = Some(Finished {
            secrets: secrets(transcript, &hash),
            peer: PeerIdentity::default(),
            key_exchange: "test",
        });
    }

    /// Checks the peer's MAC at the end of `bytes`.
    fn check(&self, bytes: &[u8]) -> Result<(), HandshakeFailure> {
        if bytes.ends_with(&self.mac(match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        })) {
            Ok(())
        } else {
            Err(failure(
                FailureKind::Malformed,
                "the flight is not authentic",
            ))
        }
    }

    fn take_flight(
        &mut self,
        flight: u8,
        params: &[u8],
        bytes: &[u8],
    ) -> Result<(), HandshakeFailure> {
        let random = bytes.get(..32).unwrap_or_default().to_vec();
        match (self.side, flight) {
            (Side::Server, 1) => {
                self.set_transcript(params, &random);
                self.awaited = 3;
                let mut answer = hello(&self.random, self.filler[1]);
                answer.extend(self.mac(Side::Server));
                self.next = Some(answer);
            }
            (Side::Client, 2) => {
                self.set_transcript(params, &random);
                self.check(bytes)?;
                let mut answer = vec![b'c'; self.filler[2]];
                answer.extend(self.mac(Side::Client));
                self.next = Some(answer);
                self.awaited = 0;
                self.finish();
            }
            _ => {
                self.check(bytes)?;
                self.finish();
            }
        }
        Ok(())
    }
}

impl Exchange {
    /// Takes a whole flight of the peer.
    fn take(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        if bytes == ALERT {
            return Err(failure(FailureKind::AlertReceived, "refused by the peer"));
        }
        if self.refuses {
            self.next = Some(ALERT.to_vec());
            return Err(failure(FailureKind::CertificateRefused, "told to refuse"));
        }
        let awaited = std::mem::take(&mut self.awaited);
        let taken = if awaited == flight {
            self.take_flight(flight, params, bytes)
        } else {
            Err(failure(FailureKind::Malformed, "a flight out of turn"))
        };
        if taken.is_err() {
            self.next = Some(ALERT.to_vec());
        }
        taken
    }
}

impl KeyExchange for Exchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let taken = match input {
            Input::Begin { own_params } => {
                self.own_params = own_params.to_vec();
                Ok(())
            }
            Input::Flight {
                number,
                params,
                bytes,
            } => self.take(number, params, bytes),
        };
        let send = self.next.take();
        match taken {
            Ok(()) => Ok(Step {
                send,
                finished: self.finished.take(),
            }),
            Err(failure) => Err(Failed {
                failure,
                alert: send,
            }),
        }
    }
}

/// HMAC-SHA256 under a key per host.
pub struct HmacTokens(pub [u8; 32]);

impl TokenMac for HmacTokens {
    fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let purpose = match purpose {
            MacPurpose::Cookie { generation } => generation,
            MacPurpose::Reset => u64::MAX,
            MacPurpose::Tables => u64::MAX - 1,
        };
        let tag = hmac::sign(
            &key,
            &[&purpose.to_be_bytes()[..], &message.concat()].concat(),
        );
        tag.as_ref()[..16].try_into().unwrap()
    }
}

pub fn tokens(seed: u8) -> Arc<dyn TokenMac> {
    Arc::new(HmacTokens([seed; 32]))
}

fn hello(random: &[u8; 32], filler: usize) -> Vec<u8> {
    let mut bytes = random.to_vec();
    bytes.resize(32 + filler, b'f');
    bytes
}

fn failure(kind: FailureKind, text: &str) -> HandshakeFailure {
    HandshakeFailure {
        fault: Fault::Peer,
        kind,
        text: text.to_owned(),
    }
}

const ALERT: &[u8] = b"alert";
