// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key exchange of the plaintext measurement version (SPEC §14): none at all.
//!
//! It exists to measure what encryption costs. It has its own wire version, and its secrets open
//! nothing else: an endpoint of version 1 cannot use them, nor negotiate this.

use smt_proto::key_exchange::{HandshakeFailure, KeyExchange, KeyExchangeProvider};
use smt_record::{Side, Suite};

use crate::params_exchange::{ParamsExchange, SecretSource};

/// Makes attempts that agree on parameters only, for both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaintextProvider;

impl KeyExchangeProvider for PlaintextProvider {
    fn client(&self, _server_name: &str) -> Result<Box<dyn KeyExchange>, HandshakeFailure> {
        Ok(Box::new(ParamsExchange::client(SecretSource::Plaintext)))
    }

    fn server(&self, client_params: &[u8]) -> Result<Box<dyn KeyExchange>, HandshakeFailure> {
        SecretSource::Plaintext.check(client_params, Side::Client)?;
        Ok(Box::new(ParamsExchange::server(
            SecretSource::Plaintext,
            client_params,
        )))
    }

    /// None: the parameters name suite 0 alone, which is no suite.
    fn suites(&self) -> Vec<Suite> {
        Vec::new()
    }

    fn kind(&self) -> smt_wire::KeyExchange {
        smt_wire::KeyExchange::Plaintext
    }

    fn registered_params(&self, _client_params: Option<&[u8]>) -> Option<(Vec<u8>, [u8; 32])> {
        None
    }
}
