// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key pair behind a ticket's share. Its private key answers any number of clients until the
//! ticket is over, and never leaves the process that made it.
//!
//! Shares of clients, and both ephemeral ones, are those of TLS's groups (rustls makes them).

use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey, X25519};
use aws_lc_rs::kem::{AlgorithmId, Ciphertext, DecapsulationKey, ML_KEM_768};
use zeroize::Zeroizing;

use crate::tls::algorithms::Group;

/// A ticket's key pair.
pub(super) struct StaticKey {
    group: Group,
    curve: agreement::PrivateKey,
    kem: Option<DecapsulationKey<AlgorithmId>>,
    share: Vec<u8>,
}

/// The library could not make a key, or takes no such share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BadShare;

impl StaticKey {
    /// A fresh key pair.
    ///
    /// # Errors
    /// The library has no randomness.
    pub(super) fn generate(group: Group) -> Result<Self, BadShare> {
        let curve = match group {
            Group::P256 => &ECDH_P256,
            Group::X25519 | Group::X25519MlKem768 => &X25519,
        };
        let curve = agreement::PrivateKey::generate(curve).map_err(|_| BadShare)?;
        let kem = match group {
            Group::X25519MlKem768 => Some(DecapsulationKey::generate(&ML_KEM_768)),
            Group::P256 | Group::X25519 => None,
        };
        let kem = kem.transpose().map_err(|_| BadShare)?;
        let mut share = Vec::new();
        if let Some(kem) = &kem {
            let public = kem.encapsulation_key().and_then(|key| {
                let bytes = key.key_bytes()?;
                Ok(bytes.as_ref().to_vec())
            });
            share = public.map_err(|_| BadShare)?;
        }
        Self::of(group, curve, kem, share)
    }

    /// A key pair of these private keys, and what stands in the share before the curve's part.
    fn of(
        group: Group,
        curve: agreement::PrivateKey,
        kem: Option<DecapsulationKey<AlgorithmId>>,
        mut share: Vec<u8>,
    ) -> Result<Self, BadShare> {
        let public = curve.compute_public_key().map_err(|_| BadShare)?;
        share.extend_from_slice(public.as_ref());
        Ok(Self { group, curve, kem, share })
    }

    /// The public share, as a client's share of the group in TLS.
    pub(super) fn share(&self) -> &[u8] {
        &self.share
    }

    /// The secret with the peer whose share this is, as a server's share of the group in TLS.
    ///
    /// # Errors
    /// It is no share of the group.
    pub(super) fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, BadShare> {
        let mut secret = Zeroizing::new(Vec::with_capacity(64));
        let mut on_curve = peer;
        if let Some(kem) = &self.kem {
            let (ciphertext, rest) =
                peer.split_at_checked(ML_KEM_768_CIPHERTEXT).ok_or(BadShare)?;
            let shared = kem.decapsulate(Ciphertext::from(ciphertext));
            secret.extend_from_slice(shared.map_err(|_| BadShare)?.as_ref());
            on_curve = rest;
        }
        let algorithm = match self.group {
            Group::P256 => &ECDH_P256,
            Group::X25519 | Group::X25519MlKem768 => &X25519,
        };
        let peer = UnparsedPublicKey::new(algorithm, on_curve);
        agreement::agree(&self.curve, peer, BadShare, |shared| {
            secret.extend_from_slice(shared);
            Ok(())
        })?;
        Ok(secret)
    }
}

/// No byte of the private key.
impl std::fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticKey").field("group", &self.group).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl StaticKey {
    /// A key pair that is given: the curve's private key, and for the hybrid group ML-KEM's
    /// decapsulation key of 2,400 bytes.
    pub(super) fn given(group: Group, curve: &[u8], kem: Option<&[u8]>) -> Result<Self, BadShare> {
        let algorithm = match group {
            Group::P256 => &ECDH_P256,
            Group::X25519 | Group::X25519MlKem768 => &X25519,
        };
        let curve = agreement::PrivateKey::from_private_key(algorithm, curve);
        // The encapsulation key is a part of it (FIPS 203 §6.1).
        let public = kem.map_or_else(Vec::new, |bytes| bytes[1_152..2_336].to_vec());
        let kem = kem.map(|bytes| DecapsulationKey::new(&ML_KEM_768, bytes));
        let kem = kem.transpose().map_err(|_| BadShare)?;
        Self::of(group, curve.map_err(|_| BadShare)?, kem, public)
    }
}

/// FIPS 203, table 3.
const ML_KEM_768_CIPHERTEXT: usize = 1_088;

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [Group; 3] = [Group::P256, Group::X25519, Group::X25519MlKem768];

    #[test]
    fn a_client_by_tls_and_the_ticket_key_have_one_secret() {
        for group in GROUPS {
            let key = StaticKey::generate(group).unwrap();
            let client = group.kx_group().start_and_complete(key.share()).unwrap();
            let secret = key.agree(&client.pub_key).unwrap();
            assert_eq!(secret.as_slice(), client.secret.secret_bytes(), "{group:?}");
        }
    }

    #[test]
    fn shares_that_are_cut_or_of_low_order_are_refused() {
        for group in GROUPS {
            let key = StaticKey::generate(group).unwrap();
            let client = group.kx_group().start_and_complete(key.share()).unwrap();
            let cut = &client.pub_key[..client.pub_key.len() - 1];
            assert_eq!(key.agree(cut), Err(BadShare), "{group:?}");
            assert_eq!(key.agree(&[]), Err(BadShare), "{group:?}");
        }
        let key = StaticKey::generate(Group::X25519).unwrap();
        assert_eq!(key.agree(&[0; 32]), Err(BadShare));
    }
}
