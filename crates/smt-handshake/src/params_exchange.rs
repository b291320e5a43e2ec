// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key exchange whose flights hold parameters alone: registered keys (SPEC §6.1, §7.2) and the
//! plaintext measurement version (§14).
//!
//! Flow: 1. client's parameters  2. server's parameters  3. an empty flight of the client, after
//! which the server is done (the client was after flight 2). All three have empty key exchange
//! bytes. Neither side has proved anything yet: for registered keys CONFIRM does that (§6.5).

use std::sync::Arc;

use smt_proto::key_exchange::{
    Failed, Finished, HandshakeFailure, Input, KeyExchange, PeerIdentity, Step,
};
use smt_record::{AwsLc, SessionSecrets, Side, parameter_hash};
use smt_wire::Params;

use crate::external_psk::key::RegisteredKey;
use crate::failure::{caller, malformed, nothing_common, parse_params};

/// One attempt without key exchange bytes, of either side.
pub(crate) struct ParamsExchange {
    side: Side,
    source: SecretSource,
    own_params: Option<Vec<u8>>,
    peer_params: Option<Vec<u8>>,
    /// The flight that this side awaits; none after the last.
    awaited: Option<u8>,
    /// Whether this side's next flight is to be sent.
    is_due: bool,
    finished: Option<Finished>,
}

/// Where the session's secrets come from.
pub(crate) enum SecretSource {
    Registered(Arc<RegisteredKey>),
    Plaintext,
}

impl SecretSource {
    /// Refuses parameters of another key exchange, key or suite.
    pub(crate) fn check(&self, params: &[u8], sender: Side) -> Result<(), HandshakeFailure> {
        let params = parse_params(params, sender)?;
        if params.key_exchange != self.kind() {
            return Err(nothing_common(format!(
                "the {sender} wants key exchange {:?}, but this side is set up for {:?}",
                params.key_exchange,
                self.kind()
            )));
        }
        match self {
            Self::Plaintext if params.suites.iter().eq([PLAINTEXT_SUITE]) => Ok(()),
            Self::Plaintext => Err(malformed(format!("the {sender}'s parameters name a suite"))),
            Self::Registered(key) => check_registered(key, &params, sender),
        }
    }

    fn kind(&self) -> smt_wire::KeyExchange {
        match self {
            Self::Registered(_) => smt_wire::KeyExchange::Registered,
            Self::Plaintext => smt_wire::KeyExchange::Plaintext,
        }
    }

    /// The result of the exchange for `side`, which is this one.
    fn finished(&self, side: Side, parameter_hash: &[u8; 32]) -> Finished {
        match self {
            Self::Registered(key) => Finished {
                secrets: key.imported(side).session_secrets(&AwsLc, parameter_hash),
                peer: PeerIdentity {
                    key_name: Some(key.name().to_vec()),
                    key_identity: Some(key.ends().peer.to_owned()),
                    ..PeerIdentity::default()
                },
                key_exchange: "registered key",
                early_taken: false,
                own_expires: None,
            },
            Self::Plaintext => Finished {
                secrets: SessionSecrets::plaintext(),
                peer: PeerIdentity::default(),
                key_exchange: "plaintext",
                early_taken: false,
                own_expires: None,
            },
        }
    }
}

impl ParamsExchange {
    /// A client's attempt: flight 1 is due.
    pub(crate) fn client(source: SecretSource) -> Self {
        Self {
            side: Side::Client,
            source,
            own_params: None,
            peer_params: None,
            awaited: Some(2),
            is_due: true,
            finished: None,
        }
    }

    /// A server's answer to parameters that `source` has checked.
    pub(crate) fn server(source: SecretSource, client_params: &[u8]) -> Self {
        Self {
            side: Side::Server,
            source,
            own_params: None,
            peer_params: Some(client_params.to_vec()),
            awaited: Some(1),
            is_due: false,
            finished: None,
        }
    }

    fn take_flight(&mut self, flight: u8, params: &[u8]) -> Result<(), HandshakeFailure> {
        match (self.side, flight) {
            (Side::Client, _) => {
                self.source.check(params, Side::Server)?;
                self.peer_params = Some(params.to_vec());
                self.finished = Some(self.outcome()?);
                self.is_due = true;
                self.awaited = None;
            }
            (Side::Server, 1) => {
                if self.peer_params.as_deref() != Some(params) {
                    return Err(caller(
                        "flight 1 came with other parameters than those that began the attempt"
                            .to_owned(),
                    ));
                }
                self.is_due = true;
                self.awaited = Some(3);
            }
            (Side::Server, _) if params.is_empty() => {
                self.finished = Some(self.outcome()?);
                self.awaited = None;
            }
            (Side::Server, _) => {
                return Err(malformed(format!(
                    "the client sent parameters in flight {flight}, where none belong"
                )));
            }
        }
        Ok(())
    }

    fn outcome(&self) -> Result<Finished, HandshakeFailure> {
        let (Some(own), Some(peer)) = (&self.own_params, &self.peer_params) else {
            return Err(caller(
                "the attempt ended before its own parameters were given".to_owned(),
            ));
        };
        let hash = match self.side {
            Side::Client => parameter_hash(&AwsLc, own, peer),
            Side::Server => parameter_hash(&AwsLc, peer, own),
        };
        Ok(self.source.finished(self.side, &hash))
    }
}

impl ParamsExchange {
    /// Takes a whole flight of the peer.
    fn take(&mut self, flight: u8, params: &[u8], bytes: &[u8]) -> Result<(), HandshakeFailure> {
        let peer = self.side.peer();
        // Taken out: a failed flight is the end of the attempt.
        if self.awaited.take() != Some(flight) {
            self.finished = None;
            return Err(malformed(format!("flight {flight} of the {peer} is out of turn")));
        }
        if !bytes.is_empty() {
            return Err(malformed(format!(
                "flight {flight} of the {peer} has key exchange bytes, where none belong"
            )));
        }
        self.take_flight(flight, params)
    }

    /// Takes the flight that is to be sent now.
    fn next_flight(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.is_due).then(Vec::new)
    }
}

impl KeyExchange for ParamsExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let taken = match input {
            Input::Begin { own_params, .. } => {
                self.own_params = Some(own_params.to_vec());
                Ok(())
            }
            Input::Flight { number, params, bytes } => self.take(number, params, bytes),
        };
        let send = self.next_flight();
        Step::of(taken, send, self.finished.take())
    }
}

fn check_registered(
    key: &RegisteredKey,
    params: &Params<'_>,
    sender: Side,
) -> Result<(), HandshakeFailure> {
    if params.key_name != Some(key.name()) {
        return Err(nothing_common(format!(
            "the {sender} names another registered key than {}",
            key.display_name()
        )));
    }
    if params.random.is_none() {
        return Err(malformed(format!("the {sender}'s parameters have no random")));
    }
    if !params.suites.iter().eq([key.suite().code()]) {
        return Err(nothing_common(format!(
            "the {sender} uses registered key {} with another suite than {}; register it with the \
            same on both sides",
            key.display_name(),
            key.suite()
        )));
    }
    Ok(())
}

/// The suite that the parameters of the plaintext version name (SPEC §14).
const PLAINTEXT_SUITE: u16 = 0;
