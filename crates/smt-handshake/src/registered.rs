// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered keys (SPEC §7.2): secrets that the application negotiated itself.
//!
//! Flow: 1. both sides register the same key under the same name and suite  2. the client names
//! it in its parameters, and both add a fresh random  3. HKDF makes the session's secrets from
//! key and parameter hash, so that no two sessions share any.
//! The key seals nothing itself. There is no forward secrecy beyond that of the key.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use smt_proto::handshake::{HandshakeFailure, KeyExchange, KeyExchangeProvider};
use smt_record::{Side, Suite};
use zeroize::Zeroizing;

use crate::failure::{caller, nothing_common, parse_params};
use crate::limits::{KEY_NAME_LEN_MAX, REGISTERED_SECRET_LEN_MIN};
use crate::params_exchange::{ParamsExchange, SecretSource};

/// A key that both sides hold, with the name and suite it is registered under. Cleared when
/// dropped.
#[derive(Clone)]
pub struct RegisteredKey {
    name: Vec<u8>,
    suite: Suite,
    ikm: Zeroizing<Vec<u8>>,
}

impl RegisteredKey {
    /// From a secret of full entropy, at least [`REGISTERED_SECRET_LEN_MIN`] bytes. The name, at
    /// most [`KEY_NAME_LEN_MAX`] bytes, travels in the clear.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if the name is too long or the secret too short.
    pub fn from_secret(
        name: &[u8],
        suite: Suite,
        secret: &[u8],
    ) -> Result<Self, RegisteredKeyError> {
        if secret.len() < REGISTERED_SECRET_LEN_MIN {
            return Err(RegisteredKeyError::ShortSecret { len: secret.len() });
        }
        Self::new(name, suite, Zeroizing::new(secret.to_vec()))
    }

    /// From the keys and IVs of both directions of a TLS session, as an application hands them to
    /// kTLS. They must seal nothing else any more.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if the name is too long or a key has not the suite's length.
    pub fn from_tls_keys(
        name: &[u8],
        suite: Suite,
        client: (&[u8], &[u8; 12]),
        server: (&[u8], &[u8; 12]),
    ) -> Result<Self, RegisteredKeyError> {
        for (key, _) in [client, server] {
            if key.len() != suite.key_len() {
                return Err(RegisteredKeyError::KeyLength {
                    suite,
                    len: key.len(),
                });
            }
        }
        // Of the right capacity: growing would leave copies behind.
        let mut ikm = Zeroizing::new(Vec::with_capacity(2 * (suite.key_len() + 12)));
        for (key, iv) in [client, server] {
            ikm.extend_from_slice(key);
            ikm.extend_from_slice(iv);
        }
        Self::new(name, suite, ikm)
    }

    /// The name that the client's parameters carry.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The suite of its sessions.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    pub(crate) fn ikm(&self) -> &[u8] {
        &self.ikm
    }

    pub(crate) fn display_name(&self) -> String {
        display_name(&self.name)
    }

    fn new(name: &[u8], suite: Suite, ikm: Zeroizing<Vec<u8>>) -> Result<Self, RegisteredKeyError> {
        if name.len() > KEY_NAME_LEN_MAX {
            return Err(RegisteredKeyError::LongName { len: name.len() });
        }
        Ok(Self {
            name: name.to_vec(),
            suite,
            ikm,
        })
    }
}

impl fmt::Debug for RegisteredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredKey")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

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
        Self {
            suite: key.suite,
            own: Some(Arc::new(key)),
            accepted: BTreeMap::new(),
        }
    }

    /// For a server that answers to these keys, by name. All have one suite, since a server's
    /// parameters name only one for registered keys (SPEC §6.3, tag 4).
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if there is no key, two have one name, or the suites differ.
    pub fn server(keys: Vec<RegisteredKey>) -> Result<Self, RegisteredKeyError> {
        let suite = keys.first().ok_or(RegisteredKeyError::NoKey)?.suite;
        let mut accepted = BTreeMap::new();
        for key in keys {
            if key.suite != suite {
                return Err(RegisteredKeyError::TwoSuites {
                    one: suite,
                    other: key.suite,
                });
            }
            let name = key.display_name();
            if accepted.insert(key.name.clone(), Arc::new(key)).is_some() {
                return Err(RegisteredKeyError::SameName { name });
            }
        }
        Ok(Self {
            own: None,
            accepted,
            suite,
        })
    }

    /// For an endpoint that is both. The key that it calls with must not be one that it answers to:
    /// somebody on the path could turn all its packets around, and it would take itself for its
    /// peer. Each direction between two hosts has a key of its own.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] as [`Self::server`], with `own` among the keys whose suites agree; or
    /// if `own` has the secret of one of `keys`, whatever their names.
    pub fn both(own: RegisteredKey, keys: Vec<RegisteredKey>) -> Result<Self, RegisteredKeyError> {
        if let Some(same) = keys.iter().find(|key| key.ikm == own.ikm) {
            return Err(RegisteredKeyError::BothDirections {
                own: own.display_name(),
                accepted: same.display_name(),
            });
        }
        let server = Self::server(keys)?;
        if own.suite != server.suite {
            return Err(RegisteredKeyError::TwoSuites {
                one: own.suite,
                other: server.suite,
            });
        }
        Ok(Self {
            own: Some(Arc::new(own)),
            ..server
        })
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
    /// The server's name plays no part: who has the key is the peer.
    fn client(&self, _server_name: &str) -> Result<Box<dyn KeyExchange>, HandshakeFailure> {
        let key = self.own.as_ref().ok_or_else(|| {
            caller("this endpoint has no registered key of its own to make calls with".to_owned())
        })?;
        let source = SecretSource::Registered(Arc::clone(key));
        Ok(Box::new(ParamsExchange::client(source)))
    }

    fn server(&self, client_params: &[u8]) -> Result<Box<dyn KeyExchange>, HandshakeFailure> {
        let source = SecretSource::Registered(self.named(client_params)?);
        source.check(client_params, Side::Client)?;
        Ok(Box::new(ParamsExchange::server(source, client_params)))
    }

    fn suites(&self) -> Vec<Suite> {
        vec![self.suite]
    }

    fn kind(&self) -> smt_wire::KeyExchange {
        smt_wire::KeyExchange::Registered
    }

    fn registered_params(&self, client_params: Option<&[u8]>) -> Option<(Vec<u8>, [u8; 32])> {
        let key = match client_params {
            None => self.own.as_ref().map(Arc::clone)?,
            Some(params) => self.named(params).ok()?,
        };
        let mut random = [0; 32];
        // Without randomness two sessions could share their keys: rather none.
        aws_lc_rs::rand::fill(&mut random).ok()?;
        Some((key.name.clone(), random))
    }
}

/// Why keys cannot be registered so. All of it is local.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum RegisteredKeyError {
    /// The endpoint would take itself for its peer if its packets came back to it.
    #[error(
        "the registered key {own} to call with has the same secret as {accepted}, which is accepted \
        from clients: an endpoint could be made to call itself; register a key for each direction"
    )]
    BothDirections {
        /// Name of the key that the endpoint calls with.
        own: String,
        /// Name of the key that it answers to.
        accepted: String,
    },
    /// A TLS key has not the length that the suite has.
    #[error(
        "a key of {len} bytes was registered for {suite}, whose keys have {}",
        .suite.key_len()
    )]
    KeyLength {
        /// The suite.
        suite: Suite,
        /// Bytes given.
        len: usize,
    },
    /// The name does not fit the parameters.
    #[error("the name of a registered key has {len} bytes; give at most {KEY_NAME_LEN_MAX}")]
    LongName {
        /// Bytes given.
        len: usize,
    },
    /// A server without keys would refuse everybody.
    #[error("no key was registered; give at least one")]
    NoKey,
    /// Two keys have one name, so that a client's choice would be ambiguous.
    #[error("two registered keys have the name {name}; give each its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// The secret can be guessed.
    #[error(
        "a registered secret has {len} bytes; give at least {REGISTERED_SECRET_LEN_MIN} random ones"
    )]
    ShortSecret {
        /// Bytes given.
        len: usize,
    },
    /// An endpoint's registered keys must have one suite.
    #[error(
        "registered keys of {one} and {other} are mixed; give each suite an endpoint of its own"
    )]
    TwoSuites {
        /// The suite of one key.
        one: Suite,
        /// The suite of another.
        other: Suite,
    },
}

/// A name in quotes, whatever bytes it has.
fn display_name(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests;
