// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key exchange of the plaintext measurement version (SPEC §14): none at all.
//!
//! It exists to measure what encryption costs. It has its own wire version, and its secrets open
//! nothing else: an endpoint of version 1 cannot use them, nor negotiate this.

use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};
use smt_record::Side;

use crate::params_exchange::{ParamsExchange, SecretSource};

/// Makes attempts that agree on parameters only, for both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaintextProvider;

impl KeyExchangeProvider for PlaintextProvider {
    fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        Ok(attempt(ParamsExchange::client(SecretSource::Plaintext)))
    }

    fn server(
        &self,
        client_params: &[u8],
        _: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        SecretSource::Plaintext.check(client_params, Side::Client)?;
        Ok(attempt(ParamsExchange::server(SecretSource::Plaintext, client_params)))
    }
}

/// An attempt whose parameters name suite 0 alone, which is no suite.
fn attempt(exchange: ParamsExchange) -> Attempt {
    Attempt {
        kind: smt_wire::KeyExchange::Plaintext,
        suites: Vec::new(),
        key: None,
        early_max: 0,
        exchange: Box::new(exchange),
    }
}
