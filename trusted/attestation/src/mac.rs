// SPDX-License-Identifier: Apache-2.0 OR MIT
//! MACs of attestations, and the key of a group.
//!
//! The paper's transferable authentication wants one token for one message, even from a liar. A MAC
//! must therefore be collision-resistant for those who know its key, and must lose nothing when a
//! counter is used twice, which is what a rolled-back device does. HMAC-SHA-256 and keyed BLAKE3
//! are both. Poly1305-AES and GMAC are neither: one repeated nonce gives their key away.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::attestation::{HEADER_LEN, MAC_LEN};
use crate::stream::Group;

/// The algorithm of a stream's MACs. The number on the wire is covered by the MAC itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Algorithm {
    /// HMAC with SHA-256 (RFC 2104): number 1.
    HmacSha256 = 1,
    /// BLAKE3 in its keyed mode: number 2. Its chunks of 1 KiB are hashed side by side, so it is
    /// the faster one for messages of 16 KiB and more; where the processor has no instructions for
    /// SHA-256, for shorter ones too.
    #[cfg(feature = "blake3")]
    Blake3 = 2,
}

impl Algorithm {
    /// The algorithm of a number, if this build has it.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::HmacSha256),
            #[cfg(feature = "blake3")]
            2 => Some(Self::Blake3),
            _ => None,
        }
    }
}

/// The secret of a group, from which each of its configurations has a key of its own.
pub struct GroupSecret(Zeroizing<[u8; 32]>);

impl GroupSecret {
    /// Takes 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

/// The key of one group, stream and configuration. Wiped when dropped.
pub(crate) enum MacKey {
    /// The state after the key's block, which saves half the compressions of short messages.
    HmacSha256(Hmac<Sha256>),
    #[cfg(feature = "blake3")]
    Blake3(Zeroizing<[u8; 32]>),
}

impl MacKey {
    /// The key of `group`: HMAC-SHA-256 under the secret, over a label, algorithm, stream, quorum,
    /// the number of members, and each member's device and first epoch.
    ///
    /// A host that opens the stream with other members, another quorum or other epochs has another
    /// key. It can therefore not make a session with one peer pass for the group's stream.
    pub(crate) fn derive(secret: &GroupSecret, group: &Group<'_>) -> Self {
        let mut hmac = keyed(&secret.0);
        hmac.update(KEY_LABEL);
        hmac.update(&[group.algorithm as u8]);
        hmac.update(&group.stream.0.to_be_bytes());
        hmac.update(&group.quorum.to_be_bytes());
        hmac.update(&(group.members.len() as u64).to_be_bytes());
        for member in group.members {
            hmac.update(&member.device.0.to_be_bytes());
            hmac.update(&member.epoch.0.to_be_bytes());
        }
        let key = Zeroizing::new(<[u8; 32]>::from(hmac.finalize().into_bytes()));
        match group.algorithm {
            Algorithm::HmacSha256 => Self::HmacSha256(keyed(&key)),
            #[cfg(feature = "blake3")]
            Algorithm::Blake3 => Self::Blake3(key),
        }
    }

    /// The MAC over the domain, `header` and `message`. The header has a fixed size and the length
    /// of the message, so no two pairs have the same input.
    pub(crate) fn tag(&self, header: &[u8; HEADER_LEN], message: &[u8]) -> [u8; MAC_LEN] {
        match self {
            Self::HmacSha256(keyed) => {
                let mut hmac = keyed.clone();
                hmac.update(DOMAIN);
                hmac.update(header);
                hmac.update(message);
                hmac.finalize().into_bytes().into()
            }
            #[cfg(feature = "blake3")]
            Self::Blake3(key) => {
                let mut hasher = blake3::Hasher::new_keyed(key);
                hasher.update(DOMAIN).update(header).update(message);
                let tag = *hasher.finalize().as_bytes();
                zeroize::Zeroize::zeroize(&mut hasher);
                tag
            }
        }
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    // A key of any length fits HMAC.
    <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap_or_else(|_| unreachable!("32 bytes"))
}

/// The purpose of the MACs of messages: no other use of a key has these bytes first.
const DOMAIN: &[u8; 16] = b"SMT attest v1 \0\0";
const KEY_LABEL: &[u8; 16] = b"SMT group key v1";
