// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a whole key exchange in memory, through the traits that the core uses.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::time::{Duration, SystemTime};

use smt_handshake::{Algorithms, ClientTls, ServerTls, TlsProvider};
use smt_pki::{EphemeralCa, Validity};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, Finished, HandshakeFailure, Input, KeyExchange,
    KeyExchangeProvider, Step,
};
use smt_wire::{Params, SessionIndex};

/// The name that test servers have.
pub const NAME: &str = "a.example";

/// How an exchange ended at each side.
pub struct Outcome {
    /// At the client; a late alert counts.
    pub client: Result<Finished, HandshakeFailure>,
    /// At the server.
    pub server: Result<Finished, HandshakeFailure>,
    /// Flights that were sent, without that beside CONFIRM.
    pub flights: u8,
}

impl Outcome {
    /// Both sides' results.
    #[track_caller]
    pub fn both(self) -> (Finished, Finished) {
        (
            self.client.unwrap_or_else(|e| panic!("{e}")),
            self.server.unwrap_or_else(|e| panic!("{e}")),
        )
    }

    /// The client's failure.
    #[track_caller]
    pub fn client_failure(&self) -> HandshakeFailure {
        self.client.as_ref().err().cloned().expect("the client fails")
    }

    /// The server's failure.
    #[track_caller]
    pub fn server_failure(&self) -> HandshakeFailure {
        self.server.as_ref().err().cloned().expect("the server fails")
    }
}

/// The extension of a ClientHello that names a session's secret.
pub const PRE_SHARED_KEY: u16 = 41;
/// The extension of a ClientHello that announces early data.
pub const EARLY_DATA: u16 = 42;

/// One flight on its way.
#[derive(Clone)]
pub struct Flight {
    /// From 1.
    pub number: u8,
    /// Empty after flight 2.
    pub params: Vec<u8>,
    /// Key exchange bytes.
    pub bytes: Vec<u8>,
}

impl Flight {
    /// A flight as a test makes it.
    pub fn of(number: u8, params: &[u8], bytes: &[u8]) -> Self {
        Self { number, params: params.to_vec(), bytes: bytes.to_vec() }
    }

    /// The extensions of a ClientHello in one record, by their numbers.
    pub fn extensions(&self) -> Vec<(u16, Vec<u8>)> {
        // Record, message, version and random are before the session id.
        let mut rest = &self.bytes[5 + 4 + 2 + 32..];
        let mut take = |width: usize| {
            let length = rest[..width].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            let (taken, left) = rest[width..].split_at(length);
            rest = left;
            taken
        };
        let (_session, _suites, _compressions) = (take(1), take(2), take(1));
        let mut all = take(2);
        let mut found = Vec::new();
        while let [a, b, c, d, left @ ..] = all {
            let (content, left) = left.split_at(usize::from(u16::from_be_bytes([*c, *d])));
            found.push((u16::from_be_bytes([*a, *b]), content.to_vec()));
            all = left;
        }
        found
    }
}

/// One side of an attempt, and what its last step has yielded, until it is taken.
pub struct Side {
    exchange: Box<dyn KeyExchange>,
    /// The parameters that it sends.
    pub params: Vec<u8>,
    send: Option<Vec<u8>>,
    finished: Option<Finished>,
    /// Early data that the last step has yielded.
    pub early: Option<Vec<u8>>,
    /// Bytes that leave beside CONFIRM.
    parting: Option<Vec<u8>>,
}

impl Side {
    /// A client of [`NAME`] that has begun, with honest parameters.
    pub fn client(provider: &dyn KeyExchangeProvider) -> Self {
        Self::begun(provider.client(ClientRequest::new(NAME)).unwrap(), 1)
    }

    /// A server that has begun, with honest parameters, to answer these.
    pub fn server(
        provider: &dyn KeyExchangeProvider,
        client_params: &[u8],
    ) -> Result<Self, HandshakeFailure> {
        let attempt = provider.server(client_params, None)?;
        Ok(Self::begun(attempt, 2))
    }

    /// A side that has not begun.
    pub fn of(attempt: Attempt, index: u64) -> Self {
        Self {
            params: params(index, &attempt),
            exchange: attempt.exchange,
            send: None,
            finished: None,
            early: None,
            parting: None,
        }
    }

    /// Begins with these parameters, whatever it should send.
    pub fn start(&mut self, own_params: &[u8]) {
        self.start_with_early(own_params, &[]);
    }

    /// The same with early data.
    pub fn start_with_early(&mut self, own_params: &[u8], early: &[u8]) {
        self.step(Input::Begin { own_params, early }).unwrap();
    }

    /// Takes a flight of the peer.
    pub fn receive(&mut self, flight: &Flight) -> Result<(), HandshakeFailure> {
        self.step(Input::Flight {
            number: flight.number,
            params: &flight.params,
            bytes: &flight.bytes,
        })
    }

    /// Takes the message that the last step wants sent, an alert too, as the flight of this number.
    pub fn flight(&mut self, number: u8) -> Option<Flight> {
        let params = match number {
            1 | 2 => self.params.clone(),
            _ => Vec::new(),
        };
        self.send.take().map(|bytes| Flight { number, params, bytes })
    }

    /// Takes what the last step wants sent beside CONFIRM, as the flight of this number.
    pub fn parting(&mut self, number: u8) -> Option<Flight> {
        let bytes = self.parting.take()?;
        Some(Flight::of(number, &[], &bytes))
    }

    /// The result, if the last step has yielded one.
    pub fn finished(&mut self) -> Option<Finished> {
        self.finished.take()
    }

    fn begun(attempt: Attempt, index: u64) -> Self {
        let mut side = Self::of(attempt, index);
        let params = side.params.clone();
        side.start(&params);
        side
    }

    fn step(&mut self, input: Input<'_>) -> Result<(), HandshakeFailure> {
        match self.exchange.step(input) {
            Ok(Step { send, finished, early, parting }) => {
                (self.send, self.finished, self.early) = (send, finished, early);
                self.parting = parting;
                Ok(())
            }
            Err(Failed { failure, alert }) => {
                (self.send, self.finished) = (alert, None);
                Err(failure)
            }
        }
    }
}

/// Runs an exchange with honest parameters and an honest network.
pub fn run(client: &dyn KeyExchangeProvider, server: &dyn KeyExchangeProvider) -> Outcome {
    run_with(client, server, |_| {})
}

/// Runs an exchange over a network that may change flights.
pub fn run_with(
    client: &dyn KeyExchangeProvider,
    server: &dyn KeyExchangeProvider,
    network: impl FnMut(&mut Flight),
) -> Outcome {
    run_at(None, client, server, network)
}

/// Runs an exchange at a wall time that both sides are told.
pub fn run_at(
    wall: Option<WallTime>,
    client: &dyn KeyExchangeProvider,
    server: &dyn KeyExchangeProvider,
    network: impl FnMut(&mut Flight),
) -> Outcome {
    let request = ClientRequest { wall, ..ClientRequest::new(NAME) };
    run_request(request, client, server, network)
}

/// Runs an exchange as this request has it.
pub fn run_request(
    request: ClientRequest<'_>,
    client: &dyn KeyExchangeProvider,
    server: &dyn KeyExchangeProvider,
    mut network: impl FnMut(&mut Flight),
) -> Outcome {
    let mut client = Side::begun(client.client(request).unwrap(), 1);
    let mut flight = client.flight(1).expect("flight 1");
    network(&mut flight);
    let mut outcome = Outcome { client: Err(unfinished()), server: Err(unfinished()), flights: 1 };
    let mut server = match server.server(&flight.params, request.wall) {
        Ok(attempt) => Side::begun(attempt, 2),
        Err(failure) => {
            return Outcome { server: Err(failure), ..outcome };
        }
    };
    assert!(server.flight(2).is_none(), "a server has not begun to speak");
    loop {
        let (receiver, result) = match flight.number % 2 {
            1 => (&mut server, &mut outcome.server),
            _ => (&mut client, &mut outcome.client),
        };
        match receiver.receive(&flight) {
            Err(failure) => *result = Err(failure),
            Ok(()) => {
                if let Some(finished) = receiver.finished() {
                    *result = Ok(finished);
                }
            }
        }
        let parting = receiver.parting(flight.number + 1);
        let next = receiver.flight(flight.number + 1);
        if let Some(mut parting) = parting {
            network(&mut parting);
            // An alert alone would count, and this is none.
            let _ = client.receive(&parting);
        }
        let Some(next) = next else {
            return outcome;
        };
        flight = next;
        outcome.flights = flight.number;
        assert!(flight.number <= 7, "SPEC §6.1");
        network(&mut flight);
    }
}

/// Parameters as the core would send them.
pub fn params(index: u64, attempt: &Attempt) -> Vec<u8> {
    let suites: Vec<u16> = match attempt.kind {
        smt_wire::KeyExchange::Plaintext => vec![0],
        _ => attempt.suites.iter().map(|suite| suite.code()).collect(),
    };
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
        part_window: None,
        psp_versions: None,
    };
    let mut out = vec![0; Params::LEN_MAX];
    let len = params.emit(&mut out);
    out.truncate(len);
    out
}

/// A client and a server that know each other, without client certificates.
pub fn providers(client: &Algorithms, server: &Algorithms) -> (TlsProvider, TlsProvider) {
    let authority = EphemeralCa::new().unwrap();
    let client_tls = ClientTls::new(authority.trust().unwrap());
    let server_tls = ServerTls::new(authority.server(&[NAME]).unwrap());
    (
        TlsProvider::new(Some(client_tls), None, client).unwrap(),
        TlsProvider::new(None, Some(server_tls), server).unwrap(),
    )
}

/// A validity by days from now, negative ones in the past.
pub fn days(from: i64, to: i64) -> Validity {
    let at = |days: i64| {
        let span = Duration::from_secs(days.unsigned_abs() * 86_400);
        if days < 0 { SystemTime::now() - span } else { SystemTime::now() + span }
    };
    Validity::between(at(from), at(to)).unwrap()
}

fn unfinished() -> HandshakeFailure {
    HandshakeFailure {
        fault: smt_proto::key_exchange::Fault::Environment,
        kind: smt_proto::key_exchange::FailureKind::Other,
        text: "nothing came".to_owned(),
    }
}

/// Random numbers that a printed seed repeats (SplitMix64).
pub struct Random(u64);

impl Random {
    /// From `SMT_SEED`, or from the clock; prints it.
    pub fn from_env() -> Self {
        let seed = std::env::var("SMT_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("SMT_SEED={seed}");
        Self(seed)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Any 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
