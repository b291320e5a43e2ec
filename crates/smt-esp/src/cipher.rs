// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sealing and opening of ESP's bytes in place: SPI, number, IV, payload and trailer, ICV.

use aes::Aes128;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use ccm::aead::AeadInOut;
use ccm::consts::{U8, U11};
use ccm::{Ccm, KeyInit};
use zeroize::Zeroizing;

use crate::suite::{KeyMaterial, Suite};

/// SPI and the lower 32 bits of the number.
pub(crate) const ESP_HEADER_LEN: usize = 8;
const IV_LEN: usize = 8;
const HMAC_ICV_LEN: usize = 16;

/// RFC 4309 §4: an 11-byte nonce of salt and IV.
type Aes128Ccm8 = Ccm<Aes128, U8, U11>;

/// The packet has not authenticated, or the library has refused it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CipherFailed;

/// Keys that are ready for use. The libraries clear their memory when they are dropped.
pub(crate) enum Cipher {
    Gcm {
        key: Box<LessSafeKey>,
        salt: Zeroizing<[u8; 4]>,
    },
    Ccm {
        key: Box<Aes128Ccm8>,
        salt: Zeroizing<[u8; 3]>,
    },
    NullHmac {
        key: Box<hmac::Key>,
    },
    #[cfg(feature = "unstable-clear")]
    Clear,
}

impl Cipher {
    pub(crate) fn new(material: &KeyMaterial) -> Self {
        match material.suite() {
            Suite::Aes128Gcm16 => gcm(&AES_128_GCM, material),
            Suite::Aes256Gcm16 => gcm(&AES_256_GCM, material),
            Suite::Aes128Ccm8 => Self::Ccm { key: Box::new(ccm(material)), salt: salt(material) },
            Suite::NullHmacSha256 => {
                Self::NullHmac { key: Box::new(hmac::Key::new(hmac::HMAC_SHA256, material.key())) }
            }
            #[cfg(feature = "unstable-clear")]
            Suite::Clear => Self::Clear,
        }
    }

    /// Encrypts what is between IV and ICV and writes the ICV. `high` has the upper 32 bits of an
    /// extended number. The IV is in the packet already.
    pub(crate) fn seal(&self, esp: &mut [u8], high: Option<u32>) -> Result<(), CipherFailed> {
        match self {
            Self::Gcm { key, salt } => {
                let aad = AdditionalData::new(esp, high)?;
                let nonce = Nonce::assume_unique_for_key(nonce(&salt[..], esp)?);
                let (body, icv) = body_and_icv(esp, 16)?;
                let tag = key
                    .seal_in_place_separate_tag(nonce, Aad::from(aad.bytes()), body)
                    .map_err(|_| CipherFailed)?;
                icv.copy_from_slice(tag.as_ref());
            }
            Self::Ccm { key, salt } => {
                let aad = AdditionalData::new(esp, high)?;
                let nonce: [u8; 11] = nonce(&salt[..], esp)?;
                let (body, icv) = body_and_icv(esp, 8)?;
                let tag = key
                    .encrypt_inout_detached(&nonce.into(), aad.bytes(), body.into())
                    .map_err(|_| CipherFailed)?;
                icv.copy_from_slice(&tag);
            }
            Self::NullHmac { key } => {
                let (text, icv) = esp.split_last_chunk_mut().ok_or(CipherFailed)?;
                *icv = hmac_icv(key, text, high);
            }
            #[cfg(feature = "unstable-clear")]
            Self::Clear => {}
        }
        Ok(())
    }

    /// Decrypts what is between IV and ICV, if the ICV is right. Otherwise the bytes there are
    /// worthless.
    pub(crate) fn open(&self, esp: &mut [u8], high: Option<u32>) -> Result<(), CipherFailed> {
        match self {
            Self::Gcm { key, salt } => {
                let aad = AdditionalData::new(esp, high)?;
                let nonce = Nonce::assume_unique_for_key(nonce(&salt[..], esp)?);
                let sealed = esp.get_mut(ESP_HEADER_LEN + IV_LEN..);
                key.open_in_place(nonce, Aad::from(aad.bytes()), sealed.ok_or(CipherFailed)?)
                    .map_err(|_| CipherFailed)?;
            }
            Self::Ccm { key, salt } => {
                let aad = AdditionalData::new(esp, high)?;
                let nonce: [u8; 11] = nonce(&salt[..], esp)?;
                let (body, icv) = body_and_icv(esp, 8)?;
                let icv = (&*icv).try_into().map_err(|_| CipherFailed)?;
                key.decrypt_inout_detached(&nonce.into(), aad.bytes(), body.into(), icv)
                    .map_err(|_| CipherFailed)?;
            }
            Self::NullHmac { key } => {
                let (text, icv) = esp.split_last_chunk::<HMAC_ICV_LEN>().ok_or(CipherFailed)?;
                verify_slices_are_equal(icv, &hmac_icv(key, text, high))
                    .map_err(|_| CipherFailed)?;
            }
            #[cfg(feature = "unstable-clear")]
            Self::Clear => {}
        }
        Ok(())
    }
}

fn gcm(algorithm: &'static Algorithm, material: &KeyMaterial) -> Cipher {
    let key = UnboundKey::new(algorithm, material.key());
    Cipher::Gcm {
        key: Box::new(LessSafeKey::new(key.expect("keying material is as long as its suite says"))),
        salt: salt(material),
    }
}

fn ccm(material: &KeyMaterial) -> Aes128Ccm8 {
    Aes128Ccm8::new_from_slice(material.key())
        .expect("keying material is as long as its suite says")
}

fn salt<const LENGTH: usize>(material: &KeyMaterial) -> Zeroizing<[u8; LENGTH]> {
    let mut salt = Zeroizing::new([0; LENGTH]);
    salt.copy_from_slice(material.salt());
    salt
}

/// The salt, and behind it the IV (RFC 4106 §4, RFC 4309 §4).
fn nonce<const LENGTH: usize>(salt: &[u8], esp: &[u8]) -> Result<[u8; LENGTH], CipherFailed> {
    let iv = esp.get(ESP_HEADER_LEN..ESP_HEADER_LEN + IV_LEN);
    let mut nonce = [0; LENGTH];
    let (salt_part, iv_part) = nonce.split_at_mut(LENGTH - IV_LEN);
    salt_part.copy_from_slice(salt);
    iv_part.copy_from_slice(iv.ok_or(CipherFailed)?);
    Ok(nonce)
}

fn body_and_icv(esp: &mut [u8], icv_len: usize) -> Result<(&mut [u8], &mut [u8]), CipherFailed> {
    let body = esp.get_mut(ESP_HEADER_LEN + IV_LEN..).ok_or(CipherFailed)?;
    let body_len = body.len().checked_sub(icv_len).ok_or(CipherFailed)?;
    Ok(body.split_at_mut(body_len))
}

/// SPI and number, with all its 64 bits if it is extended (RFC 4106 §5, RFC 4309 §5).
struct AdditionalData {
    bytes: [u8; 12],
    length: usize,
}

impl AdditionalData {
    fn new(esp: &[u8], high: Option<u32>) -> Result<Self, CipherFailed> {
        let header: &[u8; ESP_HEADER_LEN] = esp.first_chunk().ok_or(CipherFailed)?;
        let (spi, low) = header.split_at(4);
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(spi);
        let length = if let Some(high) = high {
            bytes[4..8].copy_from_slice(&high.to_be_bytes());
            bytes[8..].copy_from_slice(low);
            12
        } else {
            bytes[4..8].copy_from_slice(low);
            8
        };
        Ok(Self { bytes, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The upper 32 bits of an extended number stand behind the packet (RFC 4303 §2.2.1).
fn hmac_icv(key: &hmac::Key, text: &[u8], high: Option<u32>) -> [u8; HMAC_ICV_LEN] {
    let mut context = hmac::Context::with_key(key);
    context.update(text);
    if let Some(high) = high {
        context.update(&high.to_be_bytes());
    }
    let tag = context.sign();
    let icv = tag.as_ref().first_chunk();
    *icv.expect("HMAC-SHA-256 has 32 bytes")
}

#[cfg(test)]
mod vectors;
