// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registered key (SPEC §7.2): a secret that the application negotiated itself, bound to the two
//! hosts that it joins.

use std::fmt;
use std::sync::Arc;

use smt_record::{AwsLc, ImportedIdentity, ImportedKey, Side, Suite};
use zeroize::Zeroizing;

use crate::limits::{KEY_IDENTITY_LEN_MAX, KEY_NAME_LEN_MAX, REGISTERED_SECRET_LEN_MIN};

/// The identities of the two ends that a registered key joins, as one of them sees it: its peer has
/// the same two the other way round.
///
/// An identity is any text of 1 to [`KEY_IDENTITY_LEN_MAX`] bytes that both ends write alike, byte
/// for byte: a name of the host or of the service. It is never sent. The two differ, and an
/// endpoint has one of its own for all its keys. All endpoints of one host should share that
/// identity: then no attacker can turn a session around to the host that began it, or lead it to
/// another host that has the same secret (RFC 9257). Hosts that share an identity are not told
/// apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyEnds<'a> {
    /// This end.
    pub own: &'a str,
    /// The other end.
    pub peer: &'a str,
}

/// The key and IV of one direction of a TLS session, as an application hands them to kTLS.
#[derive(Clone, Copy)]
pub struct TlsTrafficKey<'a> {
    /// The key, of the suite's length.
    pub key: &'a [u8],
    /// The IV, salt included.
    pub iv: &'a [u8; 12],
}

/// A key that both ends hold, with the name and suite it is registered under and the two ends that
/// it joins. Cleared when dropped.
///
/// It serves for calls to the peer and for calls of the peer, with different keys. The secret that
/// it was made from is not kept.
#[derive(Clone)]
pub struct RegisteredKey {
    name: Vec<u8>,
    own: String,
    peer: String,
    /// With this end as the client.
    to_peer: Arc<ImportedKey>,
    /// With this end as the server.
    from_peer: Arc<ImportedKey>,
}

impl RegisteredKey {
    /// From a secret of full entropy, at least [`REGISTERED_SECRET_LEN_MIN`] bytes. The name, at
    /// most [`KEY_NAME_LEN_MAX`] bytes, travels in the clear. Sides that have registered another
    /// secret under the name, or other ends, establish no session.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if the name is too long, the secret too short, or `ends` are not two
    /// identities.
    pub fn from_secret(
        name: &[u8],
        ends: KeyEnds<'_>,
        suite: Suite,
        secret: &[u8],
    ) -> Result<Self, RegisteredKeyError> {
        if secret.len() < REGISTERED_SECRET_LEN_MIN {
            return Err(RegisteredKeyError::ShortSecret { len: secret.len() });
        }
        Self::new(name, ends, suite, secret)
    }

    /// From the keys of both directions of a TLS session: those of its client and of its server.
    /// They must seal nothing else any more. Which end was TLS's client does not matter to `ends`.
    ///
    /// # Errors
    /// [`RegisteredKeyError`] if the name is too long, a key has not the suite's length, or `ends`
    /// are not two identities.
    pub fn from_tls_keys(
        name: &[u8],
        ends: KeyEnds<'_>,
        suite: Suite,
        client: TlsTrafficKey<'_>,
        server: TlsTrafficKey<'_>,
    ) -> Result<Self, RegisteredKeyError> {
        for direction in [client, server] {
            let len = direction.key.len();
            if len != suite.key_len() {
                return Err(RegisteredKeyError::KeyLength { suite, len });
            }
        }
        // The capacity is exact: growing would leave copies behind.
        let mut secret = Zeroizing::new(Vec::with_capacity(2 * (suite.key_len() + 12)));
        for direction in [client, server] {
            secret.extend_from_slice(direction.key);
            secret.extend_from_slice(direction.iv);
        }
        Self::new(name, ends, suite, &secret)
    }

    /// The name that the client's parameters carry.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The identities of this end and of its peer.
    pub fn ends(&self) -> KeyEnds<'_> {
        KeyEnds { own: &self.own, peer: &self.peer }
    }

    /// The suite of its sessions.
    pub fn suite(&self) -> Suite {
        self.to_peer.suite()
    }

    /// The key that this end uses as `side`.
    pub(crate) fn imported(&self, side: Side) -> &ImportedKey {
        match side {
            Side::Client => &self.to_peer,
            Side::Server => &self.from_peer,
        }
    }

    pub(crate) fn display_name(&self) -> String {
        display_name(&self.name)
    }

    fn new(
        name: &[u8],
        ends: KeyEnds<'_>,
        suite: Suite,
        secret: &[u8],
    ) -> Result<Self, RegisteredKeyError> {
        if name.len() > KEY_NAME_LEN_MAX {
            return Err(RegisteredKeyError::LongName { len: name.len() });
        }
        for identity in [ends.own, ends.peer] {
            if !(1..=KEY_IDENTITY_LEN_MAX).contains(&identity.len()) {
                return Err(RegisteredKeyError::IdentityLength { len: identity.len() });
            }
        }
        if ends.own == ends.peer {
            return Err(RegisteredKeyError::OneEnd { identity: ends.own.to_owned() });
        }
        let import = |client: &str, server: &str| {
            let identity = ImportedIdentity {
                key_name: name,
                client: client.as_bytes(),
                server: server.as_bytes(),
            };
            Arc::new(ImportedKey::new(&AwsLc, suite, secret, &identity))
        };
        Ok(Self {
            name: name.to_vec(),
            own: ends.own.to_owned(),
            peer: ends.peer.to_owned(),
            to_peer: import(ends.own, ends.peer),
            from_peer: import(ends.peer, ends.own),
        })
    }
}

impl fmt::Debug for RegisteredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredKey")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("own", &self.own)
            .field("peer", &self.peer)
            .field("suite", &self.suite())
            .finish_non_exhaustive()
    }
}

/// Why keys cannot be registered so. All of it is local.
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum RegisteredKeyError {
    /// An identity is empty, or does not fit where it goes.
    #[error(
        "caller: an identity of a registered key has {len} bytes; give 1 to {KEY_IDENTITY_LEN_MAX}"
    )]
    IdentityLength {
        /// Bytes given.
        len: usize,
    },
    /// A TLS key has not the length that the suite has.
    #[error(
        "caller: a key of {len} bytes was registered for {suite}, whose keys have {}",
        .suite.key_len()
    )]
    KeyLength {
        /// The suite.
        suite: Suite,
        /// Bytes given.
        len: usize,
    },
    /// The name does not fit the parameters.
    #[error(
        "caller: the name of a registered key has {len} bytes; give at most {KEY_NAME_LEN_MAX}"
    )]
    LongName {
        /// Bytes given.
        len: usize,
    },
    /// A server without keys would refuse everybody.
    #[error("caller: no key was registered; give at least one")]
    NoKey,
    /// The endpoint would take itself for its peer if its packets came back to it.
    #[error(
        "caller: a registered key joins {identity:?} with itself; give its two ends different identities"
    )]
    OneEnd {
        /// The identity.
        identity: String,
    },
    /// Two keys have one name, so that a client's choice would be ambiguous.
    #[error("caller: two registered keys have the name {name}; give each its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// The secret can be guessed.
    #[error(
        "caller: a registered secret has {len} bytes; give at least {REGISTERED_SECRET_LEN_MIN} random ones"
    )]
    ShortSecret {
        /// Bytes given.
        len: usize,
    },
    /// With two identities an endpoint could be made to call itself.
    #[error(
        "caller: an endpoint's registered keys call it {one:?} and {other:?}; give it one identity of its own in all"
    )]
    TwoIdentities {
        /// Own identity in one key.
        one: String,
        /// Own identity in another.
        other: String,
    },
    /// An endpoint's registered keys must have one suite.
    #[error(
        "caller: registered keys of {one} and {other} are mixed; give each suite an endpoint of its own"
    )]
    TwoSuites {
        /// The suite of one key.
        one: Suite,
        /// The suite of another.
        other: Suite,
    },
}

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for RegisteredKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A name in quotes, whatever bytes it has.
pub(crate) fn display_name(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests;
