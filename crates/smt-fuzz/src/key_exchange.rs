// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The real key exchanges over a network that changes flights (SPEC §6, §7; `smt-handshake`).
//!
//! Nothing panics; unchanged flights agree; an exchange that was tampered with fails, or both sides
//! end with the same secrets for the same parameters, never for others. TLS draws randoms, so an
//! input's path differs a little from run to run; the promises do not. Not here: lost and repeated
//! packets (see [`crate::script`]).

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use smt_handshake::{
    Algorithms, ClientAuth, ClientTls, Group, KeyEnds, PlaintextProvider, RegisteredKey,
    RegisteredProvider, ServerTls, TlsProvider,
};
use smt_pki::EphemeralCa;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, Finished, Input, KeyExchange, KeyExchangeProvider, Step,
};
use smt_record::Suite;
use smt_wire::{Params, SessionIndex};

/// The key exchange, and the fate of its flights.
#[derive(Arbitrary, Debug)]
pub struct Case {
    kind: Kind,
    changes: Vec<Change>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    Tls,
    Registered,
    Plaintext,
}

/// A change to flight 1, 2 or 3.
#[derive(Arbitrary, Debug)]
enum Change {
    Flip {
        flight: u8,
        at: u16,
        bits: u8,
    },
    Cut {
        flight: u8,
        keep: u16,
    },
    Grow {
        flight: u8,
        tail: Vec<u8>,
    },
    Replace {
        flight: u8,
        bytes: Vec<u8>,
    },
    FlipParams {
        flight: u8,
        at: u16,
        bits: u8,
    },
    ReplaceParams {
        flight: u8,
        params: Vec<u8>,
    },
    /// The bytes of an earlier flight instead of its own.
    Repeat {
        flight: u8,
    },
}

/// Runs the exchange.
pub fn check(case: &Case) {
    match case.kind {
        Kind::Tls => {
            let (client, server) = tls();
            run(client, server, &case.changes);
        }
        Kind::Registered => {
            let key = |own, peer| {
                let ends = KeyEnds { own, peer };
                RegisteredKey::from_secret(b"key", ends, Suite::Aes128Gcm, &[7; 32])
                    .expect("a key of full length")
            };
            let server = vec![key("server", "client")];
            let server = RegisteredProvider::server(server).expect("one key");
            let client = RegisteredProvider::client(key("client", "server"));
            run(&client, &server, &case.changes);
        }
        Kind::Plaintext => run(&PlaintextProvider, &PlaintextProvider, &case.changes),
    }
}

/// A flight on its way.
#[derive(Clone)]
struct Flight {
    number: u8,
    params: Vec<u8>,
    bytes: Vec<u8>,
}

/// One side, and whether it has failed or finished.
struct Side {
    exchange: Box<dyn KeyExchange>,
    has_failed: bool,
    finished: Option<Finished>,
}

impl Side {
    /// A side that begins with these parameters, and the key exchange bytes of its first flight.
    fn start(attempt: Attempt, own_params: &[u8]) -> (Self, Option<Vec<u8>>) {
        let mut side = Self { exchange: attempt.exchange, has_failed: false, finished: None };
        let send = side.step(Input::Begin { own_params, early: &[] });
        (side, send)
    }

    /// Takes a flight; the key exchange bytes of the next one.
    fn take(&mut self, flight: &Flight) -> Option<Vec<u8>> {
        self.step(Input::Flight {
            number: flight.number,
            params: &flight.params,
            bytes: &flight.bytes,
        })
    }

    fn step(&mut self, input: Input<'_>) -> Option<Vec<u8>> {
        match self.exchange.step(input) {
            Ok(Step { send, finished, .. }) => {
                assert!(!self.has_failed || finished.is_none(), "a failed attempt has a result");
                if finished.is_some() {
                    self.finished = finished;
                }
                send
            }
            Err(Failed { failure, alert }) => {
                let is_one_line = !failure.text.chars().any(char::is_control);
                assert!(is_one_line, "{:?}", failure.text);
                self.has_failed = true;
                self.finished = None;
                alert
            }
        }
    }
}

fn run(client: &dyn KeyExchangeProvider, server: &dyn KeyExchangeProvider, changes: &[Change]) {
    let attempt = client.client(ClientRequest::new("a.example")).expect("it is a client");
    let kind = attempt.kind;
    let offered = params(1, &attempt);
    let (mut client_side, bytes) = Side::start(attempt, &offered);
    let mut sent = vec![Flight { number: 1, params: offered, bytes: bytes.expect("flight 1") }];
    let first = changed(&sent, changes);
    let Ok(attempt) = server.server(&first.params, None) else {
        assert!(!changes.is_empty(), "an honest client is refused");
        return;
    };
    let mut answer = params(2, &attempt);
    let (mut server_side, bytes) = Side::start(attempt, &answer);
    assert!(bytes.is_none(), "a server waits for flight 1");
    let mut received = first;
    let mut is_intact = received.params == sent[0].params;
    loop {
        let number = received.number;
        let receiver = if number % 2 == 1 { &mut server_side } else { &mut client_side };
        let Some(bytes) = receiver.take(&received) else {
            break;
        };
        let params = if number == 1 { std::mem::take(&mut answer) } else { Vec::new() };
        sent.push(Flight { number: number + 1, params, bytes });
        assert!(sent.len() <= 7, "SPEC §6.1: at most 7 flights");
        received = changed(&sent, changes);
        is_intact &= received.params == sent[usize::from(number)].params;
    }
    compare(kind, [&client_side, &server_side], is_intact);
    if changes.is_empty() {
        assert!(client_side.finished.is_some() && server_side.finished.is_some());
    }
}

/// Secrets are the same at both sides if and only if the parameters are (SPEC §6.3).
fn compare(kind: smt_wire::KeyExchange, sides: [&Side; 2], is_intact: bool) {
    let [Some(client), Some(server)] = sides.map(|side| side.finished.as_ref()) else {
        return;
    };
    let has_secrets = kind != smt_wire::KeyExchange::Plaintext;
    let are_same = client.secrets == server.secrets;
    assert_eq!(are_same, is_intact || !has_secrets);
    if kind == smt_wire::KeyExchange::Tls13 {
        let shown = [client, server].map(|finished| finished.peer.certificates.len());
        assert_eq!(shown, [1, 1], "both have shown who they are");
    }
}

/// The last flight that was sent, as it arrives.
fn changed(sent: &[Flight], changes: &[Change]) -> Flight {
    let mut flight = sent.last().expect("flight 1 was sent").clone();
    for change in changes.iter().take(CHANGES_MAX) {
        change.apply(&mut flight, sent);
    }
    flight
}

impl Change {
    fn apply(&self, flight: &mut Flight, sent: &[Flight]) {
        let is_of = |number: &u8| 1 + number % 3 == flight.number;
        match self {
            Self::Flip { flight: of, at, bits } if is_of(of) => flip(&mut flight.bytes, *at, *bits),
            Self::Cut { flight: of, keep } if is_of(of) => {
                let keep = usize::from(*keep) % (flight.bytes.len() + 1);
                flight.bytes.truncate(keep);
            }
            Self::Grow { flight: of, tail } if is_of(of) => flight.bytes.extend_from_slice(tail),
            Self::Replace { flight: of, bytes } if is_of(of) => flight.bytes.clone_from(bytes),
            Self::FlipParams { flight: of, at, bits } if is_of(of) => {
                flip(&mut flight.params, *at, *bits);
            }
            Self::ReplaceParams { flight: of, params } if is_of(of) => {
                flight.params.clone_from(params);
            }
            Self::Repeat { flight: of } if is_of(of) => flight.bytes.clone_from(&sent[0].bytes),
            _ => {}
        }
    }
}

fn flip(bytes: &mut [u8], at: u16, bits: u8) {
    let at = usize::from(at) % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= bits;
    }
}

/// Mutual authentication without ML-KEM, so that flights are short; made once.
fn tls() -> &'static (TlsProvider, TlsProvider) {
    static PROVIDERS: OnceLock<(TlsProvider, TlsProvider)> = OnceLock::new();
    PROVIDERS.get_or_init(|| {
        let authority = EphemeralCa::new().expect("the system has randomness");
        let trust = authority.trust().expect("it was just made");
        let algorithms = Algorithms { groups: vec![Group::X25519], ..Algorithms::default() };
        let identity = |names: &[&str]| authority.server(names).expect("it has a name");
        // Resumption would make an input's path depend on those before it.
        let client = ClientTls::new(trust.clone())
            .with_identity(authority.client("client").expect("it has a name"))
            .with_sessions_memory(0);
        let server = ServerTls::new(identity(&["a.example"]))
            .with_client_auth(ClientAuth::Required(trust))
            .with_sessions_memory(0);
        let provider = |client, server| {
            TlsProvider::new(client, server, &algorithms).expect("suites, groups and keys fit")
        };
        (provider(Some(client), None), provider(None, Some(server)))
    })
}

/// Parameters as the core sends them.
pub(crate) fn params(index: u64, attempt: &Attempt) -> Vec<u8> {
    let mut suites: Vec<u16> = attempt.suites.iter().map(|suite| suite.code()).collect();
    if suites.is_empty() {
        // The plaintext version has none (SPEC §14).
        suites.push(0);
    }
    let params = Params {
        versions: &[1],
        key_exchange: attempt.kind,
        index: SessionIndex(index),
        suites: suites.as_slice().into(),
        index_bits: 16,
        record_size: 16_384,
        first_record_size: 1_142,
        window: 4_096,
        message_limit: 64 << 20,
        unscheduled: 60_000,
        datagram_limit: 65_507,
        stripes: 0,
        key_name: attempt.key.as_ref().map(|key| key.name.as_slice()),
        random: attempt.key.as_ref().map(|key| &key.random),
        takes_bundles: true,
        part_window: Some(4_096),
        psp_versions: None,
    };
    let mut out = vec![0; Params::LEN_MAX];
    let length = params.emit(&mut out);
    out.truncate(length);
    out
}

/// More would only cost time.
const CHANGES_MAX: usize = 20;
