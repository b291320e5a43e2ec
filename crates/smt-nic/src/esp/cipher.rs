// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The transforms, ready to use, over ESP's bytes: SPI, number, IV, payload with trailer, ICV.

use aes::Aes128;
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use ccm::Ccm;
use ccm::consts::{U8, U11};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::HEADER;
use super::suite::EspSuite;

/// AES-CCM with a nonce of salt and IV, 11 bytes (RFC 4309 §4).
type Aes128Ccm8 = Ccm<Aes128, U8, U11>;

/// A transform with its key and salt.
#[derive(Clone)]
pub(super) struct Cipher {
    suite: EspSuite,
    key: Key,
    salt: Zeroizing<[u8; 4]>,
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "contexts are of one size in the device's memory")]
enum Key {
    Aes128Gcm(Aes128Gcm),
    Aes256Gcm(Aes256Gcm),
    Aes128Ccm8(Aes128Ccm8),
    NullHmac(Zeroizing<[u8; 32]>),
}

/// A packet that does not authenticate, or is too short or too long for the transform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CipherFailed;

impl Cipher {
    /// `None` if there are not as many bytes of keying material as the suite has.
    pub(super) fn new(suite: EspSuite, material: &[u8]) -> Option<Self> {
        if material.len() != suite.key_material_bytes() {
            return None;
        }
        let (key, salt_part) = material.split_at(suite.key_bytes());
        let mut salt = Zeroizing::new([0; 4]);
        salt[..salt_part.len()].copy_from_slice(salt_part);
        let key = match suite {
            EspSuite::Aes128Gcm16 => Key::Aes128Gcm(Aes128Gcm::new_from_slice(key).ok()?),
            EspSuite::Aes256Gcm16 => Key::Aes256Gcm(Aes256Gcm::new_from_slice(key).ok()?),
            EspSuite::Aes128Ccm8 => Key::Aes128Ccm8(Aes128Ccm8::new_from_slice(key).ok()?),
            EspSuite::NullHmacSha256 => Key::NullHmac(Zeroizing::new(key.try_into().ok()?)),
        };
        Some(Self { suite, key, salt })
    }

    pub(super) fn suite(&self) -> EspSuite {
        self.suite
    }

    /// Seals ESP's bytes in place; the ICV takes the last ones. `high` is the upper half of an
    /// extended number.
    pub(super) fn seal(&self, esp: &mut [u8], high: Option<u32>) -> Result<(), CipherFailed> {
        let additional = Additional::of(esp, high).ok_or(CipherFailed)?;
        let Parts { iv, body, icv } = self.parts(esp).ok_or(CipherFailed)?;
        match &self.key {
            Key::Aes128Gcm(key) => {
                let nonce = self.nonce::<12>(iv).into();
                let made = key.encrypt_inout_detached(&nonce, additional.bytes(), body.into());
                icv.copy_from_slice(&made.map_err(|_| CipherFailed)?);
            }
            Key::Aes256Gcm(key) => {
                let nonce = self.nonce::<12>(iv).into();
                let made = key.encrypt_inout_detached(&nonce, additional.bytes(), body.into());
                icv.copy_from_slice(&made.map_err(|_| CipherFailed)?);
            }
            Key::Aes128Ccm8(key) => {
                let nonce = self.nonce::<11>(iv).into();
                let made = key.encrypt_inout_detached(&nonce, additional.bytes(), body.into());
                icv.copy_from_slice(&made.map_err(|_| CipherFailed)?);
            }
            Key::NullHmac(key) => {
                let bytes = esp.len() - self.suite.icv_bytes();
                let (text, icv) = esp.split_at_mut(bytes);
                let made = authenticator(key, text, high)?.finalize().into_bytes();
                icv.copy_from_slice(&made[..icv.len()]);
            }
        }
        Ok(())
    }

    /// Opens ESP's bytes in place. Those of a packet that does not authenticate are worthless
    /// afterwards.
    pub(super) fn open(&self, esp: &mut [u8], high: Option<u32>) -> Result<(), CipherFailed> {
        let additional = Additional::of(esp, high).ok_or(CipherFailed)?;
        let Parts { iv, body, icv } = self.parts(esp).ok_or(CipherFailed)?;
        let opened = match &self.key {
            Key::Aes128Gcm(key) => {
                let nonce = self.nonce::<12>(iv).into();
                let icv = (&*icv).try_into().map_err(|_| CipherFailed)?;
                key.decrypt_inout_detached(&nonce, additional.bytes(), body.into(), icv)
            }
            Key::Aes256Gcm(key) => {
                let nonce = self.nonce::<12>(iv).into();
                let icv = (&*icv).try_into().map_err(|_| CipherFailed)?;
                key.decrypt_inout_detached(&nonce, additional.bytes(), body.into(), icv)
            }
            Key::Aes128Ccm8(key) => {
                let nonce = self.nonce::<11>(iv).into();
                let icv = (&*icv).try_into().map_err(|_| CipherFailed)?;
                key.decrypt_inout_detached(&nonce, additional.bytes(), body.into(), icv)
            }
            Key::NullHmac(key) => {
                let bytes = esp.len() - self.suite.icv_bytes();
                let (text, icv) = esp.split_at(bytes);
                let authenticator = authenticator(key, text, high)?;
                return authenticator.verify_truncated_left(icv).map_err(|_| CipherFailed);
            }
        };
        opened.map_err(|_| CipherFailed)
    }

    /// `None` if the bytes are too few for header, IV and ICV.
    fn parts<'a>(&self, esp: &'a mut [u8]) -> Option<Parts<'a>> {
        let body_at = HEADER + self.suite.iv_bytes();
        let icv_at = esp.len().checked_sub(self.suite.icv_bytes())?;
        let (front, icv) = esp.split_at_mut(icv_at);
        let (front, body) = front.split_at_mut_checked(body_at)?;
        let iv = &front[HEADER..];
        Some(Parts { iv, body, icv })
    }

    /// The salt, and behind it the IV (RFC 4106 §4, RFC 4309 §4).
    fn nonce<const BYTES: usize>(&self, iv: &[u8]) -> [u8; BYTES] {
        let mut nonce = [0; BYTES];
        let (salt, counted) = nonce.split_at_mut(self.suite.salt_bytes());
        salt.copy_from_slice(&self.salt[..salt.len()]);
        counted.copy_from_slice(iv);
        nonce
    }
}

struct Parts<'a> {
    iv: &'a [u8],
    body: &'a mut [u8],
    icv: &'a mut [u8],
}

/// The additional data of an AEAD: SPI, and the whole number (RFC 4106 §5, RFC 4309 §5).
struct Additional([u8; 12], usize);

impl Additional {
    fn of(esp: &[u8], high: Option<u32>) -> Option<Self> {
        let header = esp.first_chunk::<HEADER>()?;
        let mut bytes = [0; 12];
        let Some(high) = high else {
            bytes[..HEADER].copy_from_slice(header);
            return Some(Self(bytes, HEADER));
        };
        bytes[..4].copy_from_slice(&header[..4]);
        bytes[4..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&header[4..]);
        Some(Self(bytes, 12))
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// HMAC over ESP's bytes, and behind them the upper half of an extended number (RFC 4303 §2.2.1).
fn authenticator(
    key: &[u8; 32],
    text: &[u8],
    high: Option<u32>,
) -> Result<Hmac<Sha256>, CipherFailed> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| CipherFailed)?;
    mac.update(text);
    if let Some(high) = high {
        mac.update(&high.to_be_bytes());
    }
    Ok(mac)
}
