// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages between vendor and controller.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::KEY_LEN;
use crate::configuration::Configuration;
use crate::error::BootstrapError;
use crate::event_log::EVENT_LOG_LEN_MAX;
use crate::evidence::Evidence;

/// The longest message in bytes: evidence with the longest log of events.
pub const MESSAGE_LEN_MAX: usize = EVENT_LOG_LEN_MAX + (1 << 16);

/// Room for a message with a key, and for a configuration of a device's 63 secrets.
const ROOM: usize = 4096;

/// A message. Vendor and controller take turns, in this order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Message {
    /// Vendor: random bytes of this connection.
    Nonce([u8; 32]),
    /// Controller: what it is.
    Evidence(Box<Evidence>),
    /// Vendor: the configuration, encrypted.
    Image(Vec<u8>),
    /// Controller: the digest of the image, and its signature.
    Report([u8; 32], [[u8; 32]; 2]),
    /// Vendor: the key of the image.
    Key(ImageKey),
    /// Controller: it has stored what the report told; its signature over that.
    Done([[u8; 32]; 2]),
}

/// The key of a configuration on its way. Wiped when dropped, and never printed.
#[derive(Clone, Deserialize, Serialize)]
pub struct ImageKey(pub [u8; 32]);

impl Drop for ImageKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for ImageKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the key of an image")
    }
}

/// A connection as both ends know it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Binding {
    /// The key of the other end.
    pub peer: [u8; KEY_LEN],
    /// Bytes that both ends derive from the connection's secrets, and nobody else (RFC 8446, 7.5).
    pub exporter: [u8; 32],
}

impl Message {
    /// The message as bytes.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // These types cannot fail to serialize. A key has room from the beginning: memory that
        // grows leaves copies.
        let room = Vec::with_capacity(ROOM);
        Zeroizing::new(postcard::to_extend(self, room).unwrap_or_default())
    }

    pub(crate) fn decode(bytes: &[u8], step: &'static str) -> Result<Self, BootstrapError> {
        match postcard::take_from_bytes(bytes) {
            Ok((message, [])) => Ok(message),
            _ => Err(BootstrapError::Malformed(step)),
        }
    }
}

/// Bytes that a controller signs: what for, nonce and connection, and what about.
pub(crate) fn signed(
    purpose: &[u8; 16],
    nonce: &[u8; 32],
    exporter: &[u8; 32],
    about: &[u8],
) -> Vec<u8> {
    let digest = Sha256::digest(about);
    [&purpose[..], nonce, exporter, &digest].concat()
}

/// Encrypts a configuration: 24 bytes of nonce, and ciphertext.
pub(crate) fn seal(configuration: &Configuration, key: &[u8; 32], nonce: [u8; 24]) -> Vec<u8> {
    let room = Vec::with_capacity(ROOM);
    let clear = Zeroizing::new(postcard::to_extend(configuration, room).unwrap_or_default());
    let cipher = XChaCha20Poly1305::new(key.into());
    // Only more than 256 GiB fail.
    let sealed = cipher.encrypt(&XNonce::from(nonce), &clear[..]).unwrap_or_default();
    [&nonce[..], &sealed].concat()
}

pub(crate) fn open(image: &[u8], key: &[u8; 32]) -> Result<Configuration, BootstrapError> {
    let (nonce, sealed) = image.split_first_chunk::<24>().ok_or(BootstrapError::Key)?;
    let cipher = XChaCha20Poly1305::new(key.into());
    let clear = cipher.decrypt(&XNonce::from(*nonce), sealed).map_err(|_| BootstrapError::Key)?;
    let clear = Zeroizing::new(clear);
    postcard::from_bytes(&clear).map_err(|_| BootstrapError::Key)
}
