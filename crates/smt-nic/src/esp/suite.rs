// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transforms of ESP that the device has.

/// A transform, and its code in a context block.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u16)]
pub enum EspSuite {
    /// AES-GCM with 128 bits and an ICV of 16 bytes (RFC 4106).
    Aes128Gcm16 = 1,
    /// AES-GCM with 256 bits and an ICV of 16 bytes (RFC 4106).
    Aes256Gcm16 = 2,
    /// AES-CCM with 128 bits and an ICV of 8 bytes (RFC 4309).
    Aes128Ccm8 = 3,
    /// No encryption (RFC 2410), with HMAC-SHA-256-128 (RFC 4868).
    NullHmacSha256 = 4,
}

impl EspSuite {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Aes128Gcm16, Self::Aes256Gcm16, Self::Aes128Ccm8, Self::NullHmacSha256];

    /// The suite of a code.
    #[must_use]
    pub fn of_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| *suite as u16 == code)
    }

    /// Bytes of the key.
    pub(super) const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes128Ccm8 => 16,
            Self::Aes256Gcm16 | Self::NullHmacSha256 => 32,
        }
    }

    /// Bytes of the salt, which is behind the key (RFC 4106 §8.1, RFC 4309 §7.1).
    pub(super) const fn salt_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm16 | Self::Aes256Gcm16 => 4,
            Self::Aes128Ccm8 => 3,
            Self::NullHmacSha256 => 0,
        }
    }

    /// Bytes of key and salt.
    #[must_use]
    pub const fn key_material_bytes(self) -> usize {
        self.key_bytes() + self.salt_bytes()
    }

    /// Bytes of the IV in each packet.
    #[must_use]
    pub const fn iv_bytes(self) -> usize {
        match self {
            Self::NullHmacSha256 => 0,
            _ => 8,
        }
    }

    /// Bytes of the ICV at the end of each packet.
    #[must_use]
    pub const fn icv_bytes(self) -> usize {
        match self {
            Self::Aes128Ccm8 => 8,
            _ => 16,
        }
    }
}
