// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packet protections of QUIC, and how much each may protect (RFC 9001 §5.3, §6.6).

use thiserror::Error;
use zeroize::Zeroizing;

/// An AEAD with the header protection that belongs to it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Suite {
    /// AEAD_AES_128_GCM.
    Aes128Gcm,
    /// AEAD_AES_256_GCM.
    Aes256Gcm,
    /// AEAD_CHACHA20_POLY1305.
    ChaCha20Poly1305,
}

impl Suite {
    /// Bytes of a key, of the AEAD and of header protection alike.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Packets that one key may seal (the confidentiality limit, RFC 9001 §6.6).
    #[must_use]
    pub const fn seals_max(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 23,
            // More than there are packet numbers.
            Self::ChaCha20Poly1305 => u64::MAX,
        }
    }

    /// Packets of a connection that may fail to open (the integrity limit, RFC 9001 §6.6).
    #[must_use]
    pub const fn failures_max(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }
}

/// The AEAD key and IV of one key phase, as the host derives them (RFC 9001 §5.1, §6.1).
#[derive(Clone)]
pub struct PhaseKey {
    pub(super) suite: Suite,
    pub(super) key: Zeroizing<[u8; 32]>,
    pub(super) iv: Zeroizing<[u8; 12]>,
}

impl PhaseKey {
    /// From a key of the suite's length and an IV.
    ///
    /// # Errors
    /// The key has another length.
    pub fn new(suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Self, BadKeyLength> {
        let key = padded(suite, key)?;
        Ok(Self { suite, key, iv: Zeroizing::new(iv) })
    }
}

/// The key of header protection, which stays the same in all phases (RFC 9001 §6.1).
#[derive(Clone)]
pub struct HeaderProtectionKey {
    pub(super) suite: Suite,
    pub(super) key: Zeroizing<[u8; 32]>,
}

impl HeaderProtectionKey {
    /// From a key of the suite's length.
    ///
    /// # Errors
    /// The key has another length.
    pub fn new(suite: Suite, key: &[u8]) -> Result<Self, BadKeyLength> {
        let key = padded(suite, key)?;
        Ok(Self { suite, key })
    }
}

/// A key is not of its suite's length.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the key is not of its suite's length")]
pub struct BadKeyLength;

fn padded(suite: Suite, key: &[u8]) -> Result<Zeroizing<[u8; 32]>, BadKeyLength> {
    let mut padded = Zeroizing::new([0; 32]);
    match key.len() == suite.key_bytes() {
        true => padded[..key.len()].copy_from_slice(key),
        false => return Err(BadKeyLength),
    }
    Ok(padded)
}

/// No byte of a key.
impl core::fmt::Debug for PhaseKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PhaseKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// No byte of a key.
impl core::fmt::Debug for HeaderProtectionKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HeaderProtectionKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}
