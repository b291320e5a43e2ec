// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a whole key exchange in memory, through the traits that the core uses.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::time::{Duration, SystemTime};

use smt_handshake::{Algorithms, ClientTls, ServerTls, TlsProvider};
use smt_pki::{EphemeralCa, Validity};
use smt_proto::key_exchange::{Finished, HandshakeFailure, KeyExchange, KeyExchangeProvider};
use smt_record::Suite;
use smt_wire::{Params, SessionIndex};

/// The name that test servers have.
pub const NAME: &str = "a.example";

/// How an exchange ended at each side.
pub struct Outcome {
    /// At the client; a late alert counts.
    pub client: Result<Finished, HandshakeFailure>,
    /// At the server.
    pub server: Result<Finished, HandshakeFailure>,
    /// Flights that were sent.
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
        self.client
            .as_ref()
            .err()
            .cloned()
            .expect("the client fails")
    }

    /// The server's failure.
    #[track_caller]
    pub fn server_failure(&self) -> HandshakeFailure {
        self.server
            .as_ref()
            .err()
            .cloned()
            .expect("the server fails")
    }
}

/// One flight on its way.
pub struct Flight {
    /// From 1.
    pub number: u8,
    /// Empty after flight 2.
    pub params: Vec<u8>,
    /// Key exchange bytes.
    pub bytes: Vec<u8>,
}

/// Runs an exchange with honest parameters and an honest network.
pub fn run(client: &dyn KeyExchangeProvider, server: &dyn KeyExchangeProvider) -> Outcome {
    run_with(client, server, |_| {})
}

/// Runs an exchange over a network that may change flights.
pub fn run_with(
    client_provider: &dyn KeyExchangeProvider,
    server_provider: &dyn KeyExchangeProvider,
    mut network: impl FnMut(&mut Flight),
) -> Outcome {
    let client_params = params(1, client_provider, client_provider.registered_params(None));
    let mut client = client_provider.client(NAME).unwrap();
    client.sent_params(&client_params);
    let bytes = client.next_flight().expect("flight 1");
    let mut flight = Flight {
        number: 1,
        params: client_params,
        bytes,
    };
    network(&mut flight);
    let mut outcome = Outcome {
        client: Err(unfinished()),
        server: Err(unfinished()),
        flights: 1,
    };
    let mut server = match server_provider.server(&flight.params) {
        Ok(server) => server,
        Err(failure) => {
            return Outcome {
                server: Err(failure),
                ..outcome
            };
        }
    };
    let registered = server_provider.registered_params(Some(&flight.params));
    let mut answer = params(2, server_provider, registered);
    server.sent_params(&answer);
    loop {
        let is_to_server = flight.number % 2 == 1;
        let (receiver, result) = if is_to_server {
            (&mut server, &mut outcome.server)
        } else {
            (&mut client, &mut outcome.client)
        };
        deliver(receiver.as_mut(), &flight, result);
        let Some(bytes) = receiver.next_flight() else {
            return outcome;
        };
        let params = if is_to_server {
            std::mem::take(&mut answer)
        } else {
            Vec::new()
        };
        flight = Flight {
            number: flight.number + 1,
            params,
            bytes,
        };
        outcome.flights = flight.number;
        assert!(flight.number <= 7, "SPEC §6.1");
        network(&mut flight);
    }
}

fn deliver(
    receiver: &mut dyn KeyExchange,
    flight: &Flight,
    result: &mut Result<Finished, HandshakeFailure>,
) {
    match receiver.receive(flight.number, &flight.params, &flight.bytes) {
        Err(failure) => *result = Err(failure),
        Ok(()) => {
            if let Some(finished) = receiver.finished() {
                *result = Ok(finished);
            }
        }
    }
}

/// Parameters as the core would send them.
pub fn params(
    index: u64,
    provider: &dyn KeyExchangeProvider,
    registered: Option<(Vec<u8>, [u8; 32])>,
) -> Vec<u8> {
    let suites: Vec<u16> = match provider.kind() {
        smt_wire::KeyExchange::Plaintext => vec![0],
        _ => provider.suites().into_iter().map(Suite::code).collect(),
    };
    let params = Params {
        versions: &[1],
        key_exchange: provider.kind(),
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
        key_name: registered.as_ref().map(|(name, _)| name.as_slice()),
        random: registered.as_ref().map(|(_, random)| random),
        takes_bundles: true,
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
        if days < 0 {
            SystemTime::now() - span
        } else {
            SystemTime::now() + span
        }
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
        let seed = std::env::var("SMT_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap();
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
