// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From what the two sides agreed on to traffic secrets, and from those to keys (SPEC §7).
//!
//! 1. [`parameter_hash`] binds every clear parameter, byte for byte as sent and received.
//! 2. Five secrets come from the TLS exporter ([`SessionSecrets::from_exporter`]) or from a
//!    registered key ([`ImportedKey`](crate::ImportedKey)): data and control of each direction, and
//!    that of the session's own [`Exporter`].
//! 3. Each of the first four gives a key and an IV, and at a key update the next secret.
//!
//! TLS's own traffic keys never get here, and a registered key is only input: it seals nothing.

use core::fmt;

use zeroize::Zeroizing;

use crate::exporter::Exporter;
use crate::hash::{HashProvider, Prk};
use crate::secret::Secret;
use crate::suite::Suite;

/// One of the two ends of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that started the handshake.
    Client,
    /// The end that answered it.
    Server,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// The use of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Records of messages.
    Data,
    /// Control packets.
    Control,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Control => "control",
        })
    }
}

/// The secrets of one epoch by which one side sends.
#[derive(Debug, PartialEq, Eq)]
pub struct DirectionSecrets {
    /// For records.
    pub data: Secret,
    /// For control packets.
    pub control: Secret,
}

/// All secrets of a session, of epoch 0.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionSecrets {
    /// The suite of both directions. Without meaning if [`Self::is_plaintext`].
    pub suite: Suite,
    /// The secrets by which the client sends.
    pub client: DirectionSecrets,
    /// The secrets by which the server sends.
    pub server: DirectionSecrets,
    /// The exporter, for uses of the application's own (SPEC §7.4).
    pub exporter: Exporter,
}

impl SessionSecrets {
    /// The TLS exporter's labels of client data, client control, server data, server control and
    /// the exporter secret.
    pub const EXPORTER_LABELS: [&'static str; 5] = [
        "EXPORTER-smt-1 client data",
        "EXPORTER-smt-1 client control",
        "EXPORTER-smt-1 server data",
        "EXPORTER-smt-1 server control",
        "EXPORTER-smt-1 exporter",
    ];

    /// Secrets from the TLS exporter (SPEC §7.1, §7.4). `export` fills its buffer for a label and a
    /// context, as RFC 8446 §7.5 says; `suite` is the one that TLS negotiated.
    ///
    /// # Errors
    /// The first error of `export`.
    pub fn from_exporter<E>(
        suite: Suite,
        parameter_hash: &[u8; 32],
        mut export: impl FnMut(&mut [u8], &str, &[u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::from_labels(suite, Self::EXPORTER_LABELS, |out, label| {
            export(out, label, parameter_hash)
        })
    }

    /// The secrets of the plaintext measurement version (SPEC §14): they protect nothing.
    /// An endpoint of version 1 refuses them ([`Self::is_plaintext`]).
    pub fn plaintext() -> Self {
        let direction =
            || DirectionSecrets { data: Secret::plaintext(), control: Secret::plaintext() };
        Self {
            suite: Suite::Aes128Gcm,
            client: direction(),
            server: direction(),
            exporter: Exporter::new(Suite::Aes128Gcm, Secret::plaintext()),
        }
    }

    /// Whether these are the secrets of the plaintext measurement version.
    pub fn is_plaintext(&self) -> bool {
        [&self.client, &self.server]
            .into_iter()
            .any(|direction| direction.data.is_plaintext() || direction.control.is_plaintext())
    }

    pub(crate) fn from_labels<E>(
        suite: Suite,
        labels: [&str; 5],
        mut fill: impl FnMut(&mut [u8], &str) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut secret = |label| Secret::fill(suite, |out| fill(out, label));
        let [client_data, client_control, server_data, server_control, exporter] = labels;
        Ok(Self {
            suite,
            client: DirectionSecrets {
                data: secret(client_data)?,
                control: secret(client_control)?,
            },
            server: DirectionSecrets {
                data: secret(server_data)?,
                control: secret(server_control)?,
            },
            exporter: Exporter::new(suite, secret(exporter)?),
        })
    }
}

impl DirectionSecrets {
    /// The secrets of the next epoch (SPEC §7.3).
    pub(crate) fn next_epoch(&self, hash: &dyn HashProvider, suite: Suite) -> Self {
        Self {
            data: next_epoch(hash, suite, &self.data),
            control: next_epoch(hash, suite, &self.control),
        }
    }
}

/// SHA-256 over both sides' parameters, each with its length before it (SPEC §6.3).
///
/// # Panics
/// If either is 2^32 bytes long or longer; a flight is at most 65,536.
pub fn parameter_hash(hash: &dyn HashProvider, client: &[u8], server: &[u8]) -> [u8; 32] {
    let [client_length, server_length] = [client, server].map(|params| {
        let length = u32::try_from(params.len()).expect("params are a part of a flight");
        length.to_be_bytes()
    });
    hash.sha256(&[&client_length, client, &server_length, server])
}

/// The key and IV from which a cipher is made (RFC 8446 §7.3).
pub(crate) struct DerivedKey {
    /// The first [`Suite::key_len`] bytes are in use.
    pub(crate) key: Zeroizing<[u8; 32]>,
    pub(crate) iv: Zeroizing<[u8; 12]>,
}

impl DerivedKey {
    /// Key and IV of a traffic secret.
    pub(crate) fn of(hash: &dyn HashProvider, suite: Suite, secret: &Secret) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        let mut iv = Zeroizing::new([0; 12]);
        let prk = Prk::new(hash, suite, secret.as_bytes());
        prk.expand_label("key", b"", &mut key[..suite.key_len()]);
        prk.expand_label("iv", b"", &mut iv[..]);
        Self { key, iv }
    }
}

fn next_epoch(hash: &dyn HashProvider, suite: Suite, secret: &Secret) -> Secret {
    if secret.is_plaintext() {
        return Secret::plaintext();
    }
    let next = Secret::fill(suite, |out| {
        Prk::new(hash, suite, secret.as_bytes()).expand_label("traffic upd", b"", out);
        Ok::<(), core::convert::Infallible>(())
    });
    match next {
        Ok(next) => next,
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests;
