// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key exchange by registered keys (SPEC §7.2), which TLS calls external PSKs: secrets that the
//! application negotiated itself.
//!
//! Flow: 1. both sides register the same key under the same name and suite, for the same two ends
//! 2. the client names it in its parameters, and both add a fresh random 3. HKDF makes the
//!    session's secrets from key, name, both identities by role, and parameter hash, so that no two
//!    sessions share any, and none opens at another host than the one meant. The key seals nothing
//!    itself. There is no forward secrecy beyond that of the key.

pub(crate) mod key;

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider, NamedKey,
};
use smt_record::{Side, Suite};

use self::key::{RegisteredKey, RegisteredKeyError, display_name};
use crate::failure::{caller, environment, nothing_common, parse_params};
use crate::params_exchange::{ParamsExchange, SecretSource};

/// The registered keys of an endpoint: the one it calls with, and those it answers to.
#[derive(Debug)]
pub struct RegisteredProvider {
    own: Option<Arc<RegisteredKey>>,
    accepted: BTreeMap<Vec<u8>, Arc<RegisteredKey>>,
    suite: Suite,
}

impl RegisteredProvider {
    /// For a client that calls with this key.
    pub fn client(key: RegisteredKey) -> Self {
        Self { suite: key.suite(), own: Some(Arc::new(key)), accepted: BTreeMap::new() }
    }

    /// For a server that answers to these keys, by name. All have one suite, since a server's
    /// parameters name only one for registered keys (SPEC §6.3, tag 4), and one own identity.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if there is no key, two have one name, or suites or own identities
    /// differ.
    pub fn server(keys: Vec<RegisteredKey>) -> Result<Self, RegisteredKeyError> {
        let suite = one_suite_and_identity(&keys)?;
        let mut accepted = BTreeMap::new();
        for key in keys {
            let name = key.display_name();
            if accepted.insert(key.name().to_vec(), Arc::new(key)).is_some() {
                return Err(RegisteredKeyError::SameName { name });
            }
        }
        Ok(Self { own: None, accepted, suite })
    }

    /// For an endpoint that is both. It may answer to the key that it calls with: each direction of
    /// calls has keys of its own.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] as [`Self::server`], with `own` among the keys whose suites and own
    /// identities agree.
    pub fn both(own: RegisteredKey, keys: Vec<RegisteredKey>) -> Result<Self, RegisteredKeyError> {
        if let Some(first) = keys.first() {
            one_suite_and_identity([&own, first])?;
        }
        Ok(Self { own: Some(Arc::new(own)), ..Self::server(keys)? })
    }

    /// The key that a client's parameters name, if all of them fit it.
    fn named(&self, client_params: &[u8]) -> Result<Arc<RegisteredKey>, HandshakeFailure> {
        let params = parse_params(client_params, Side::Client)?;
        let name = params.key_name.ok_or_else(|| {
            nothing_common(
                "the client names no registered key, and this server has nothing else".to_owned(),
            )
        })?;
        self.accepted.get(name).map(Arc::clone).ok_or_else(|| {
            nothing_common(format!(
                "the client names registered key {}, which this server does not have; register it \
                here",
                display_name(name)
            ))
        })
    }
}

impl KeyExchangeProvider for RegisteredProvider {
    /// The server's name plays no part: the key says who the server is.
    fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let key = self.own.as_ref().ok_or_else(|| {
            caller("this endpoint has no registered key of its own to make calls with".to_owned())
        })?;
        let source = SecretSource::Registered(Arc::clone(key));
        self.attempt(key, ParamsExchange::client(source))
    }

    fn server(
        &self,
        client_params: &[u8],
        _: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        let key = self.named(client_params)?;
        let source = SecretSource::Registered(Arc::clone(&key));
        source.check(client_params, Side::Client)?;
        self.attempt(&key, ParamsExchange::server(source, client_params))
    }
}

impl RegisteredProvider {
    /// An attempt with a fresh random: without randomness two sessions could share their keys.
    fn attempt(
        &self,
        key: &RegisteredKey,
        exchange: ParamsExchange,
    ) -> Result<Attempt, HandshakeFailure> {
        let mut random = [0; 32];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| environment("the system gives no random bytes".to_owned()))?;
        Ok(Attempt {
            kind: smt_wire::KeyExchange::Registered,
            suites: vec![self.suite],
            key: Some(NamedKey { name: key.name().to_vec(), random }),
            early_max: 0,
            exchange: Box::new(exchange),
        })
    }
}

/// The suite of these keys, if all have the same one and call this endpoint the same (SPEC §7.2).
fn one_suite_and_identity<'a>(
    keys: impl IntoIterator<Item = &'a RegisteredKey>,
) -> Result<Suite, RegisteredKeyError> {
    let mut keys = keys.into_iter();
    let first = keys.next().ok_or(RegisteredKeyError::NoKey)?;
    for key in keys {
        if key.suite() != first.suite() {
            return Err(RegisteredKeyError::TwoSuites { one: first.suite(), other: key.suite() });
        }
        if key.ends().own != first.ends().own {
            return Err(RegisteredKeyError::TwoIdentities {
                one: first.ends().own.to_owned(),
                other: key.ends().own.to_owned(),
            });
        }
    }
    Ok(first.suite())
}

#[cfg(test)]
mod tests;
