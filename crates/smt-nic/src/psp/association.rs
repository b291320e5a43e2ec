// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An association: an SPI of a receiving device, and the key that the device derives for it.

use core::fmt;

use aes::Aes256;
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use cmac::{Cmac, Mac};
use zeroize::Zeroize;

use super::master_keys::MasterKey;

/// The cipher of an association: PSP's versions that encrypt.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum PspVersion {
    /// Version 0: AES-GCM with keys of 128 bits.
    AesGcm128,
    /// Version 1: AES-GCM with keys of 256 bits.
    AesGcm256,
}

impl PspVersion {
    /// The version of a number in a packet or a context block.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::AesGcm128),
            1 => Some(Self::AesGcm256),
            _ => None,
        }
    }

    /// The number in a packet or a context block.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::AesGcm128 => 0,
            Self::AesGcm256 => 1,
        }
    }

    /// Bytes of a key.
    #[must_use]
    pub fn key_bytes(self) -> usize {
        match self {
            Self::AesGcm128 => 16,
            Self::AesGcm256 => 32,
        }
    }
}

/// An SPI with its key, which the receiving device has allocated and the sending one uses. Not
/// `Clone`: it has one sending context.
///
/// ```compile_fail,E0599
/// fn copy(association: &smt_nic::psp::Association) -> smt_nic::psp::DerivedKey {
///     association.key.clone()
/// }
/// ```
#[derive(Debug)]
pub struct Association {
    /// The SPI; its top bit names the device key.
    pub spi: u32,
    /// The cipher.
    pub version: PspVersion,
    /// The key.
    pub key: DerivedKey,
}

/// The key of an association. It is erased when it is dropped.
pub struct DerivedKey([u8; 32]);

impl DerivedKey {
    /// The key in these bytes, as a peer has told it; a shorter one has zeros behind.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes, with zeros behind a shorter one.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives it: AES-CMAC under the device key in counter mode (NIST SP 800-108), over a counter,
    /// the label "Pv0" or "Pv1", the SPI and the key's length in bits.
    pub(super) fn derive(master: &MasterKey, spi: u32, version: PspVersion) -> Self {
        let mut key = Self([0; 32]);
        let blocks = key.0[..version.key_bytes()].chunks_exact_mut(BLOCK);
        for (counter, place) in (1..).zip(blocks) {
            let mut input = [0; BLOCK];
            input[3] = counter;
            input[4..6].copy_from_slice(b"Pv");
            input[6] = b'0' + version.number();
            input[8..12].copy_from_slice(&spi.to_be_bytes());
            let bits = version.key_bytes() as u32 * 8;
            input[12..].copy_from_slice(&bits.to_be_bytes());
            let mac = <Cmac<Aes256> as KeyInit>::new(master.bytes().into());
            let mut made = mac.chain_update(input).finalize().into_bytes();
            place.copy_from_slice(&made);
            made.as_mut_slice().zeroize();
        }
        key
    }

    /// The cipher by this key.
    pub(super) fn cipher(&self, version: PspVersion) -> PspCipher {
        match version {
            PspVersion::AesGcm128 => {
                let key = self.0.first_chunk::<16>().expect("a key has 32 bytes");
                PspCipher::AesGcm128(Aes128Gcm::new(key.into()))
            }
            PspVersion::AesGcm256 => PspCipher::AesGcm256(Aes256Gcm::new((&self.0).into())),
        }
    }
}

impl Drop for DerivedKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// No byte of the key.
impl fmt::Debug for DerivedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedKey").finish_non_exhaustive()
    }
}

/// A cipher with its key.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "contexts are of one size in the device's memory")]
pub(super) enum PspCipher {
    AesGcm128(Aes128Gcm),
    AesGcm256(Aes256Gcm),
}

impl PspCipher {
    /// Encrypts in place, and returns the ICV. `None`: more than the cipher takes.
    pub(super) fn seal(&self, nonce: [u8; 12], clear: &[u8], text: &mut [u8]) -> Option<[u8; 16]> {
        let nonce = (&nonce).into();
        let sealed = match self {
            Self::AesGcm128(of) => of.encrypt_inout_detached(nonce, clear, text.into()),
            Self::AesGcm256(of) => of.encrypt_inout_detached(nonce, clear, text.into()),
        };
        sealed.ok().map(Into::into)
    }

    /// Decrypts in place. Whether the ICV was right: if not, the text is as it was.
    pub(super) fn open(
        &self,
        nonce: [u8; 12],
        clear: &[u8],
        text: &mut [u8],
        icv: &[u8; 16],
    ) -> bool {
        let nonce = (&nonce).into();
        let opened = match self {
            Self::AesGcm128(of) => of.decrypt_inout_detached(nonce, clear, text.into(), icv.into()),
            Self::AesGcm256(of) => of.decrypt_inout_detached(nonce, clear, text.into(), icv.into()),
        };
        opened.is_ok()
    }
}

/// Bytes of a block of AES.
const BLOCK: usize = 16;
