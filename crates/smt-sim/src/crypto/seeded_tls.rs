// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The production key exchange with everything random from a seed.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::time_provider::TimeProvider;
use rustls_pki_types::UnixTime;
use smt_handshake::{ClientAuth, ClientTls, EntropySources, ServerTls, TlsProvider};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, HandshakeFailure, Input, KeyExchange, KeyExchangeProvider, Step,
};
use smt_record::Suite;

use super::credentials::{Credentials, DATE};
use super::seeded_random::{SeededRandom, lend};
use super::x25519::SeededX25519;
use crate::net::packet::HostId;
use crate::random::Random;

/// TLS 1.3 of one host, client and server, with certificates required on both sides.
pub struct SeededTls {
    provider: TlsProvider,
    random: Mutex<Random>,
}

impl SeededTls {
    /// For a host with these suites, preferred first.
    ///
    /// # Panics
    /// If `suites` is empty.
    pub fn new(credentials: &Credentials, host: HostId, suites: &[Suite], random: Random) -> Self {
        let identity = credentials.identity(host);
        let client = ClientTls::new(credentials.trust())
            .with_identity(identity.clone())
            .with_sessions_memory(0);
        let server = ServerTls::new(identity)
            .with_client_auth(ClientAuth::Required(credentials.trust()))
            .with_sessions_memory(0);
        let sources = EntropySources {
            groups: vec![&SeededX25519],
            random: &SeededRandom,
            time: Arc::new(FixedDate),
        };
        let provider = TlsProvider::with_sources(Some(client), Some(server), suites, sources)
            .expect("documented under Panics");
        Self { provider, random: Mutex::new(random) }
    }

    fn make(
        &self,
        make: impl FnOnce(&TlsProvider) -> Result<Attempt, HandshakeFailure>,
    ) -> Result<Attempt, HandshakeFailure> {
        let mut own = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut random = own.fork();
        let attempt = lend(&mut random, || make(&self.provider))?;
        Ok(Attempt {
            exchange: Box::new(SeededExchange { exchange: attempt.exchange, random }),
            ..attempt
        })
    }
}

impl KeyExchangeProvider for SeededTls {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        self.make(|provider| provider.client(request))
    }

    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        self.make(|provider| provider.server(client_params, wall))
    }
}

/// One attempt, with a generator of its own.
struct SeededExchange {
    exchange: Box<dyn KeyExchange>,
    random: Random,
}

impl KeyExchange for SeededExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        lend(&mut self.random, || self.exchange.step(input))
    }

    fn confirmed(&mut self) -> Result<(), HandshakeFailure> {
        self.exchange.confirmed()
    }
}

/// Certificates are judged by the same date in every run.
#[derive(Debug)]
struct FixedDate;

impl TimeProvider for FixedDate {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(DATE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(credentials: &Credentials, host: u32, seed: u64) -> SeededTls {
        let random = Random::new(seed);
        SeededTls::new(credentials, HostId(host), &[Suite::Aes128Gcm], random)
    }

    fn first_flight(seed: u64) -> Vec<u8> {
        let tls = tls(&Credentials::new(2, 0), 0, seed);
        let mut client = tls.client(ClientRequest::new("host-1.sim")).unwrap().exchange;
        let begun = client.step(Input::Begin { own_params: &[], early: &[] });
        begun.unwrap().send.unwrap()
    }

    #[test]
    fn a_seed_gives_the_same_flight_and_another_seed_another() {
        assert_eq!(first_flight(1), first_flight(1));
        assert_ne!(first_flight(1), first_flight(2));
    }
}
