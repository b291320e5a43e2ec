// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a handshake of the vectors, and how the file says them.

use serde_json::{Map, Value, json};
use smt_proto::key_exchange::{Finished, Input, KeyExchange as _};
use smt_record::{AwsLc, Prk, SessionSecrets, Suite, parameter_hash};

use super::inputs::hex;
use crate::ticket::codec::put_long;
use crate::ticket::exchange::client::ClientExchange;
use crate::ticket::format::Ticket;
use crate::ticket::hello::{ClientFlight, ServerHello};
use crate::ticket::schedule::{EarlySecret, HandshakeSecret, TranscriptHash};
use crate::ticket::signature::Context;

/// Both flights, and the values behind them.
pub(super) struct Played {
    pub(super) client_params: Vec<u8>,
    pub(super) server_params: Vec<u8>,
    pub(super) flight_1: Vec<u8>,
    pub(super) hello: TranscriptHash,
    pub(super) early: EarlySecret,
    pub(super) plaintext: Vec<u8>,
    pub(super) server_hello: ServerHello,
    pub(super) hellos: TranscriptHash,
    pub(super) handshake: HandshakeSecret,
}

impl Played {
    /// This crate's client takes flight 2, and has the secrets that are written.
    pub(super) fn check_client(&self, mut client: ClientExchange) {
        let flight =
            Input::Flight { number: 2, params: &self.server_params, bytes: &self.flight_2() };
        let finished: Finished = client.step(flight).ok().unwrap().finished.unwrap();
        let expected = self.handshake.session_secrets(&self.hellos, &self.parameter_hash());
        assert!(finished.secrets == expected);
        assert_eq!(finished.early_taken, self.server_hello.takes_early);
    }

    /// Flight 1 with these bytes behind its early data, sealed by one who has the ticket's key.
    pub(super) fn flight_with_more_early_data(&self, added: &[u8]) -> Vec<u8> {
        let flight = ClientFlight::parse(&self.flight_1).unwrap();
        let plaintext = [&self.plaintext, added].concat();
        let sealed = self.early.seal(&self.hello, &plaintext);
        let mut bytes = [flight.hello_bytes, flight.binder].concat();
        put_long(&mut bytes, &sealed).unwrap();
        bytes
    }

    fn flight_2(&self) -> Vec<u8> {
        let mut bytes = self.server_hello.hello_bytes().unwrap();
        bytes.extend_from_slice(&self.server_hello.finished);
        bytes
    }

    fn parameter_hash(&self) -> [u8; 32] {
        parameter_hash(&AwsLc, &self.client_params, &self.server_params)
    }

    fn suite(&self) -> Suite {
        let flight = ClientFlight::parse(&self.flight_1).unwrap();
        Suite::from_code(flight.hello.suite).unwrap()
    }

    pub(super) fn secrets(&self) -> Map<String, Value> {
        let mut secrets = Map::new();
        let early = self.early.told(&self.hello);
        for (name, bytes) in early.into_iter().chain(self.handshake.told(&self.hellos)) {
            secrets.insert(name.to_owned(), hex(&bytes).into());
        }
        let hash = self.parameter_hash();
        secrets.insert("parameter_hash".into(), hex(&hash).into());
        for label in SessionSecrets::EXPORTER_LABELS {
            let bytes = self.handshake.exported(&self.hellos, label, &hash);
            let name = label.strip_prefix("EXPORTER-smt-1 ").unwrap();
            let value = match name {
                "exporter" => hex(&bytes).into(),
                _ => self.epoch(&bytes),
            };
            let name = name.replace("exporter", "exporter secret");
            secrets.insert(name, value);
        }
        secrets
    }

    /// A secret of §7.1 with its key and IV.
    fn epoch(&self, secret: &[u8]) -> Value {
        let suite = self.suite();
        let (mut key, mut iv) = (vec![0; suite.key_len()], [0; 12]);
        let prk = Prk::new(&AwsLc, suite, secret);
        prk.expand_label("key", b"", &mut key);
        prk.expand_label("iv", b"", &mut iv);
        json!({ "secret": hex(secret), "key": hex(&key), "iv": hex(&iv) })
    }

    pub(super) fn client_json(&self) -> Value {
        let flight = ClientFlight::parse(&self.flight_1).unwrap();
        json!({
            "params": hex(&self.client_params),
            "random": hex(&flight.hello.random),
            "share": hex(&flight.hello.share),
            "ephemeral_share": hex(&flight.hello.ephemeral),
            "hello": hex(flight.hello_bytes),
            "h1": hex(&self.hello),
            "binder": hex(flight.binder),
            "plaintext": hex(&self.plaintext),
            "sealed": hex(flight.sealed),
            "flight": hex(&self.flight_1),
        })
    }

    pub(super) fn server_json(&self) -> Value {
        let hello = &self.server_hello;
        json!({
            "params": hex(&self.server_params),
            "takes_early_data": hello.takes_early,
            "random": hex(&hello.random),
            "ephemeral_share": hex(&hello.ephemeral),
            "hello": hex(&hello.hello_bytes().unwrap()),
            "h2": hex(&self.hellos),
            "finished": hex(&hello.finished),
            "flight": hex(&self.flight_2()),
        })
    }
}

pub(super) fn ticket_json(ticket: &Ticket) -> Value {
    let suites = ticket.suites().iter();
    json!({
        "group": ticket.as_bytes()[1],
        "suites": suites.map(|suite| format!("{:04x}", suite.code())).collect::<Vec<_>>(),
        "id": hex(&ticket.content.id),
        "begin": ticket.content.not_before,
        "end": ticket.content.not_after,
        "forward_secrecy": ticket.requires_forward_secrecy(),
        "client_certificate": ticket.requires_client_certificate(),
        "early_data": ticket.takes_early_data(),
        "share": hex(&ticket.content.share),
        "names": ticket.content.names,
        "chain_hash": hex(&ticket.content.chain_hash),
        "signature_input": hex(&Context::Ticket.message(ticket.signed_bytes())),
        "scheme": format!("{:04x}", ticket.signature.scheme),
        "signature": hex(&ticket.signature.bytes),
        "hex": hex(ticket.as_bytes()),
        "hash": hex(&ticket.hash()),
    })
}
