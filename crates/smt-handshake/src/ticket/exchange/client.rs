// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client's side of a handshake by ticket.

use std::sync::Arc;

use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange};
use rustls::sign::CertifiedKey;
use smt_proto::key_exchange::{
    Failed, Finished, HandshakeFailure, Input, KeyExchange, PeerIdentity, Step,
};
use smt_record::{Side, Suite};

use super::client_proof::{ClientProof, Signed};
use super::{BothParams, bad_length, bad_share, not_begun, out_of_turn};
use crate::failure::{check_suite, environment, malformed, nothing_common};
use crate::peer_certificate::PeerCertificate;
use crate::ticket::hello::{
    ClientFlight, ClientHello, ServerFlight, ServerHello, hash_of_hello, hash_of_hellos,
};
use crate::ticket::schedule::{EarlySecret, TranscriptHash};
use crate::ticket::store::TicketStore;
use crate::ticket::verify::VerifiedTicket;

/// The parts of a client's attempt.
pub(in crate::ticket) struct ClientSide {
    pub(in crate::ticket) ticket: Arc<VerifiedTicket>,
    pub(in crate::ticket) suite: Suite,
    pub(in crate::ticket) forward_secrecy: bool,
    pub(in crate::ticket) identity: Option<CertifiedKey>,
    /// To forget the ticket if the server does not take it.
    pub(in crate::ticket) store: TicketStore,
}

/// A client's attempt.
pub(in crate::ticket) struct ClientExchange {
    side: ClientSide,
    state: State,
}

enum State {
    New,
    /// Flight 1 has left.
    Sent(Box<Sent>),
    Ended,
}

/// The values that flight 2 is checked with.
struct Sent {
    early: EarlySecret,
    hello: TranscriptHash,
    flight: Vec<u8>,
    ephemeral: Option<Box<dyn ActiveKeyExchange>>,
    params: Vec<u8>,
}

/// The values that each attempt has afresh.
pub(in crate::ticket) struct Drawn {
    pub(in crate::ticket) random: [u8; 32],
    /// With the ticket's share.
    pub(in crate::ticket) agreed: CompletedKeyExchange,
    /// For forward secrecy.
    pub(in crate::ticket) ephemeral: Option<Box<dyn ActiveKeyExchange>>,
}

impl Drawn {
    fn new(side: &ClientSide) -> Result<Self, HandshakeFailure> {
        let no_share = |_| environment("this host makes no key share".to_owned());
        let content = &side.ticket.ticket.content;
        let group = content.group.kx_group();
        let agreed = group.start_and_complete(&content.share);
        let agreed = agreed.map_err(|_| bad_share(Side::Server))?;
        let ephemeral = side.forward_secrecy.then(|| group.start());
        let ephemeral = ephemeral.transpose().map_err(no_share)?;
        let mut random = [0; 32];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| environment("the system gives no random bytes".to_owned()))?;
        Ok(Self { random, agreed, ephemeral })
    }
}

impl ClientExchange {
    pub(in crate::ticket) const fn new(side: ClientSide) -> Self {
        Self { side, state: State::New }
    }

    /// Makes flight 1.
    fn begin(&mut self, params: &[u8], early_data: &[u8]) -> Result<Vec<u8>, HandshakeFailure> {
        let drawn = Drawn::new(&self.side)?;
        self.begin_with(drawn, params, early_data)
    }

    /// Makes flight 1 of what was drawn for it.
    pub(in crate::ticket) fn begin_with(
        &mut self,
        drawn: Drawn,
        params: &[u8],
        early_data: &[u8],
    ) -> Result<Vec<u8>, HandshakeFailure> {
        let side = &self.side;
        let too_long = || environment("the flight would be too long".to_owned());
        let Drawn { random, agreed, ephemeral } = drawn;
        let hello = ClientHello {
            suite: side.suite.code(),
            ticket: side.ticket.hash,
            random,
            share: agreed.pub_key,
            ephemeral: ephemeral.as_ref().map_or_else(Vec::new, |active| active.pub_key().to_vec()),
        };
        let mut flight = hello.bytes().ok_or_else(too_long)?;
        let hello = hash_of_hello(params, &flight);
        let early = EarlySecret::new(side.suite, agreed.secret.secret_bytes());
        let proof = match &side.identity {
            Some(identity) => {
                let hello = &hello;
                ClientProof::new(identity, &Signed { hello, early_data }).map_err(environment)?
            }
            None => ClientProof::default(),
        };
        let mut sealed = proof.bytes().ok_or_else(too_long)?;
        sealed.extend_from_slice(early_data);
        let sealed = early.seal(&hello, &sealed);
        flight.extend_from_slice(&early.binder(&hello));
        crate::ticket::codec::put_long(&mut flight, &sealed).ok_or_else(too_long)?;
        self.state = State::Sent(Box::new(Sent {
            early,
            hello,
            flight: flight.clone(),
            ephemeral,
            params: params.to_vec(),
        }));
        Ok(flight)
    }

    fn finish(
        &mut self,
        sent: Sent,
        params: &[u8],
        bytes: &[u8],
    ) -> Result<Finished, HandshakeFailure> {
        let side = &self.side;
        let answer = ServerFlight::parse(bytes, side.suite);
        let answer = match answer.map_err(|_| bad_length(Side::Server))? {
            ServerFlight::Hello(answer) => answer,
            ServerFlight::Refused(refusal) => {
                side.store.remove(&side.ticket);
                return Err(nothing_common(format!("{refusal}; TLS is tried instead")));
            }
        };
        check_suite(side.suite, params, Side::Server)?;
        let ephemeral = match (sent.ephemeral, answer.ephemeral.as_slice()) {
            (None, []) => None,
            (Some(active), share @ [_, ..]) => {
                Some(active.complete(share).map_err(|_| bad_share(Side::Server))?)
            }
            _ => {
                return Err(malformed(
                    "the server's flight has a share where none belongs, or none".to_owned(),
                ));
            }
        };
        let secret = sent.early.handshake(ephemeral.as_ref().map(|secret| secret.secret_bytes()));
        let flight = ClientFlight::parse(&sent.flight).map_err(|_| not_begun())?;
        let hellos = hash_of_hellos(&sent.hello, &flight, params, &hello_bytes(&answer)?);
        if !secret.is_finished(&hellos, &answer.finished) {
            return Err(malformed(
                "the server's finished is wrong: it does not have the ticket's key, or bytes were \
                 changed on the way"
                    .to_owned(),
            ));
        }
        side.store.count_handshake();
        let both = BothParams { client: sent.params, server: params.to_vec() };
        let chain = side.ticket.chain.iter();
        let own = side.identity.as_ref().and_then(|own| own.cert.first());
        Ok(Finished {
            secrets: both.session_secrets(&secret, &hellos),
            peer: PeerIdentity {
                server_name: Some(side.ticket.server_name().into()),
                certificates: chain.map(|der| der.to_vec()).collect(),
                public_key: None,
                key_name: None,
                key_identity: None,
                expires: side.ticket.expires,
                is_resumed: false,
            },
            own_expires: own.and_then(|leaf| PeerCertificate::expiry(leaf)),
            key_exchange: name(side),
            early_taken: answer.takes_early,
        })
    }
}

fn hello_bytes(answer: &ServerHello) -> Result<Vec<u8>, HandshakeFailure> {
    answer.hello_bytes().ok_or_else(|| bad_length(Side::Server))
}

fn name(side: &ClientSide) -> &'static str {
    use crate::tls::algorithms::Group;
    match (side.ticket.ticket.content.group, side.forward_secrecy) {
        (Group::X25519MlKem768, true) => "ticket X25519MLKEM768 with forward secrecy",
        (Group::X25519MlKem768, false) => "ticket X25519MLKEM768",
        (Group::X25519, true) => "ticket X25519 with forward secrecy",
        (Group::X25519, false) => "ticket X25519",
        (Group::P256, true) => "ticket P-256 with forward secrecy",
        (Group::P256, false) => "ticket P-256",
    }
}

impl KeyExchange for ClientExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        match (state, input) {
            (State::New, Input::Begin { own_params, early }) => {
                Ok(Step { send: Some(self.begin(own_params, early)?), ..Step::default() })
            }
            (State::Sent(sent), Input::Flight { number: 2, params, bytes }) => Ok(Step {
                finished: Some(self.finish(*sent, params, bytes)?),
                send: Some(Vec::new()),
                ..Step::default()
            }),
            (_, Input::Flight { number, .. }) => Err(out_of_turn(number, Side::Server).into()),
            (_, Input::Begin { .. }) => Err(not_begun().into()),
        }
    }
}
