// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Algorithms of an association, and its keying material.

use zeroize::Zeroizing;

/// Encryption and integrity of an association.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Suite {
    /// AES-GCM with a 128-bit key and a 16-byte ICV (RFC 4106).
    Aes128Gcm16,
    /// AES-GCM with a 256-bit key and a 16-byte ICV (RFC 4106).
    Aes256Gcm16,
    /// AES-CCM with a 128-bit key and an 8-byte ICV (RFC 4309).
    Aes128Ccm8,
    /// No encryption (RFC 2410), with HMAC-SHA-256-128 (RFC 4868).
    NullHmacSha256,
    /// No encryption and no integrity, which RFC 4303 §1 forbids: for measurements of what
    /// protection costs.
    #[cfg(feature = "unstable-clear")]
    Clear,
}

impl Suite {
    /// All that protect.
    pub const ALL: [Self; 4] =
        [Self::Aes128Gcm16, Self::Aes256Gcm16, Self::Aes128Ccm8, Self::NullHmacSha256];

    /// Bytes of the cipher's key alone.
    pub(crate) const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Ccm8 => 16,
            Self::Aes256Gcm16 | Self::NullHmacSha256 => 32,
            #[cfg(feature = "unstable-clear")]
            Self::Clear => 32,
        }
    }

    /// Bytes of keying material: the key, and behind it the salt (RFC 4106 §8.1, RFC 4309 §7.1).
    #[must_use]
    pub const fn key_material_len(self) -> usize {
        match self {
            Self::Aes128Gcm16 => 20,
            Self::Aes256Gcm16 => 36,
            Self::Aes128Ccm8 => 19,
            Self::NullHmacSha256 => 32,
            // It names an association, and protects nothing.
            #[cfg(feature = "unstable-clear")]
            Self::Clear => 32,
        }
    }

    /// Bytes of the IV in each packet.
    #[must_use]
    pub const fn iv_len(self) -> usize {
        match self {
            Self::NullHmacSha256 => 0,
            #[cfg(feature = "unstable-clear")]
            Self::Clear => 0,
            _ => 8,
        }
    }

    /// Bytes of the ICV at the end of each packet.
    #[must_use]
    pub const fn icv_len(self) -> usize {
        match self {
            Self::Aes128Ccm8 => 8,
            #[cfg(feature = "unstable-clear")]
            Self::Clear => 0,
            _ => 16,
        }
    }
}

/// Keying material has another length than its suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{given} bytes of keying material, where the suite has {wanted}")]
pub struct KeyMaterialLength {
    /// Bytes that were given.
    pub given: usize,
    /// Bytes that the suite has.
    pub wanted: usize,
}

/// The keying material of one association in one direction; cleared from memory when dropped.
///
/// No other association may have the same (RFC 4106 §8: a key is fresh for each SA).
pub struct KeyMaterial {
    suite: Suite,
    bytes: Zeroizing<[u8; 36]>,
}

impl KeyMaterial {
    /// Copies keying material: the key, and behind it the suite's salt.
    ///
    /// # Errors
    /// If there are not [`Suite::key_material_len`] bytes.
    pub fn new(suite: Suite, material: &[u8]) -> Result<Self, KeyMaterialLength> {
        let wanted = suite.key_material_len();
        if material.len() != wanted {
            return Err(KeyMaterialLength { given: material.len(), wanted });
        }
        let mut bytes = Zeroizing::new([0; 36]);
        bytes[..wanted].copy_from_slice(material);
        Ok(Self { suite, bytes })
    }

    /// The suite that the keying material is for.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.suite.key_len()]
    }

    pub(crate) fn salt(&self) -> &[u8] {
        &self.bytes[self.suite.key_len()..self.suite.key_material_len()]
    }
}
