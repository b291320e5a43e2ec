// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key exchange without TLS and without chance: three flights, a secret that both sides hold.
//!
//! Real in what the core relies on: each attempt has fresh randoms (counted, not drawn), keys and
//! proofs are bound to both sides' parameters and randoms, forged flights fail, failures send an
//! alert. SHA-256 stands in for every MAC; equal inputs give equal runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, Failed, FailureKind, Fault, Finished, HandshakeFailure, Input, KeyExchange,
    KeyExchangeProvider, MacPurpose, PeerIdentity, Step, TokenMac,
};
use smt_record::{AwsLc, ImportedIdentity, ImportedKey, Side, Suite, parameter_hash};

/// Makes the exchanges of one node.
pub(super) struct Exchanges {
    attempts: AtomicU64,
}

impl Exchanges {
    pub(super) fn new() -> Self {
        Self {
            attempts: AtomicU64::new(1),
        }
    }

    fn begin(&self, side: Side) -> Attempt {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let random = hash(&[SECRET, &attempt.to_be_bytes(), &[side as u8]]);
        let exchange = Exchange {
            side,
            random,
            own_params: Vec::new(),
            transcript: None,
            awaited: Some(if side == Side::Client { 2 } else { 1 }),
            next: (side == Side::Client).then(|| random.to_vec()),
            finished: None,
        };
        Attempt {
            kind: smt_wire::KeyExchange::Tls13,
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

/// One attempt: `random`, then `random || proof`, then `proof`.
struct Exchange {
    side: Side,
    random: [u8; 32],
    own_params: Vec<u8>,
    /// Hash over the secret, both sides' parameters and randoms.
    transcript: Option<[u8; 32]>,
    awaited: Option<u8>,
    next: Option<Vec<u8>>,
    finished: Option<Finished>,
}

impl Exchange {
    fn take_flight(
        &mut self,
        flight: u8,
        params: &[u8],
        bytes: &[u8],
    ) -> Result<(), HandshakeFailure> {
        // Taken out: a failed flight ends the attempt.
        if self.awaited.take() != Some(flight) {
            return Err(failure(FailureKind::Malformed));
        }
        match (self.side, flight) {
            (Side::Server, 1) => {
                let random = bytes
                    .try_into()
                    .map_err(|_| failure(FailureKind::Malformed))?;
                self.agree([params, &self.own_params.clone()], [random, self.random]);
                self.next = Some([self.random, self.proof(Side::Server)].concat());
                self.awaited = Some(3);
            }
            (Side::Client, _) => {
                let random = bytes.first_chunk().copied();
                let random = random.ok_or_else(|| failure(FailureKind::Malformed))?;
                self.agree([&self.own_params.clone(), params], [self.random, random]);
                self.check(Side::Server, &bytes[32..])?;
                self.next = Some(self.proof(Side::Client).to_vec());
                self.finish();
            }
            (Side::Server, _) => {
                self.check(Side::Client, bytes)?;
                self.finish();
            }
        }
        Ok(())
    }

    fn agree(&mut self, params: [&[u8]; 2], randoms: [[u8; 32]; 2]) {
        let params = parameter_hash(&AwsLc, params[0], params[1]);
        self.transcript = Some(hash(&[SECRET, &params, &randoms.concat()]));
    }

    fn proof(&self, side: Side) -> [u8; 32] {
        let transcript = self.transcript.expect("the parameters are agreed on");
        hash(&[SECRET, &transcript, &[side as u8]])
    }

    /// Without a comparison that a fuzzer could learn from.
    fn check(&self, side: Side, proof: &[u8]) -> Result<(), HandshakeFailure> {
        if hash(&[proof]) == hash(&[&self.proof(side)]) {
            Ok(())
        } else {
            Err(failure(FailureKind::Malformed))
        }
    }

    fn finish(&mut self) {
        let transcript = self.transcript.expect("the parameters are agreed on");
        let identity = ImportedIdentity {
            key_name: b"",
            client: b"client",
            server: b"server",
        };
        let key = ImportedKey::new(&AwsLc, Suite::Aes128Gcm, SECRET, &identity);
        self.finished = Some(Finished {
            secrets: key.session_secrets(&AwsLc, &transcript),
            peer: PeerIdentity::default(),
            key_exchange: "none",
        });
    }
}

impl Exchange {
    /// Takes a whole flight of the peer.
    fn take(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        if bytes == ALERT {
            self.awaited = None;
            return Err(failure(FailureKind::AlertReceived));
        }
        let taken = self.take_flight(flight, params, bytes);
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

/// Cookies and reset tokens of one node.
struct Tokens(u8);

impl TokenMac for Tokens {
    fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16] {
        let purpose = match purpose {
            MacPurpose::Cookie { generation } => generation,
            MacPurpose::Reset => u64::MAX,
            MacPurpose::Tables => u64::MAX - 1,
        };
        let whole = hash(&[&[self.0], SECRET, &purpose.to_be_bytes(), &message.concat()]);
        *whole.first_chunk().expect("32 bytes")
    }
}

/// The tokens of node `number`.
pub(super) fn tokens(number: usize) -> Arc<dyn TokenMac> {
    Arc::new(Tokens(number as u8))
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    parameter_hash(&AwsLc, &parts.concat(), b"")
}

fn failure(kind: FailureKind) -> HandshakeFailure {
    HandshakeFailure {
        fault: Fault::Peer,
        kind,
        text: "the flight is not authentic".to_owned(),
    }
}

const SECRET: &[u8] = b"what both sides hold and nobody else";
const ALERT: &[u8] = b"alert";
