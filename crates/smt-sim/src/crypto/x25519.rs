// SPDX-License-Identifier: Apache-2.0 OR MIT
//! X25519 with private keys from the seed; the arithmetic is aws-lc's.

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use rustls::crypto::{ActiveKeyExchange, SecureRandom, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

use super::seeded_random::SeededRandom;

/// The group.
#[derive(Debug)]
pub(crate) struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut scalar = [0; 32];
        SeededRandom.fill(&mut scalar)?;
        let broken = |_| Error::General("aws-lc refuses a private key".to_owned());
        let private = PrivateKey::from_private_key(&X25519, &scalar).map_err(broken)?;
        let public = private
            .compute_public_key()
            .map_err(|_| Error::General("aws-lc computes no public key".to_owned()))?;
        Ok(Box::new(Started { public: public.as_ref().to_vec(), private }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Started {
    private: PrivateKey,
    public: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = UnparsedPublicKey::new(&X25519, peer);
        let bad = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        agreement::agree(&self.private, peer, bad, |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
