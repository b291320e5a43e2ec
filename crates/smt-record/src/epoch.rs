// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of one direction and one epoch (SPEC §7.3).
//!
//! Which epochs exist at a time is decided by [`crate::SealKeys`] and [`crate::OpenKeys`]; how a
//! cipher comes from its secret, and when, by [`crate::cipher`].

use smt_carrier::{KeyHandle, ReceivingFlow};

use crate::aead::{Aead, Unavailable};
use crate::cipher::{CipherMaker, LazyCipher};
use crate::key_schedule::DirectionSecrets;

/// The keys of one epoch, without the secrets they come from.
pub(crate) struct EpochKeys {
    pub(crate) epoch: u32,
    data: LazyCipher,
    control: LazyCipher,
}

impl EpochKeys {
    /// Keys that are made when they are used.
    pub(crate) fn new(epoch: u32) -> Self {
        Self { epoch, data: LazyCipher::default(), control: LazyCipher::default() }
    }

    /// The data key; `secrets` are this epoch's, unless it has been [`Self::complete`]d.
    pub(crate) fn data(
        &self,
        maker: &CipherMaker,
        secrets: &DirectionSecrets,
    ) -> Result<&dyn Aead, Unavailable> {
        self.data.of_records(maker, secrets)
    }

    /// The carrier's handle of the data key, in the same way; `None` if the carrier has none.
    pub(crate) fn carrier_key(
        &self,
        maker: &CipherMaker,
        secrets: &DirectionSecrets,
    ) -> Option<KeyHandle> {
        self.data.carrier_key(maker, &secrets.data)
    }

    /// Gives the carrier the data key for receiving, in the same way.
    pub(crate) fn offer_receiving(
        &self,
        maker: &CipherMaker,
        secrets: &DirectionSecrets,
        flow: ReceivingFlow,
    ) {
        let [epoch, ..] = self.epoch.to_le_bytes();
        self.data.receiving_key(maker, &secrets.data, flow, epoch);
    }

    /// The carrier's handle of the data key, if the carrier has it.
    pub(crate) fn handle(&self) -> Option<KeyHandle> {
        self.data.handle()
    }

    /// The control key, in the same way.
    pub(crate) fn control(
        &self,
        maker: &CipherMaker,
        secrets: &DirectionSecrets,
    ) -> Result<&dyn Aead, Unavailable> {
        self.control.aead(maker, &secrets.control)
    }

    /// Makes both keys: this epoch's secrets are about to be deleted.
    pub(crate) fn complete(&self, maker: &CipherMaker, secrets: &DirectionSecrets) {
        self.data.derive(maker, &secrets.data);
        self.control.derive(maker, &secrets.control);
    }

    /// The data key alone, completed.
    pub(crate) fn into_data(self, maker: &CipherMaker, secrets: &DirectionSecrets) -> LazyCipher {
        self.data.derive(maker, &secrets.data);
        self.data
    }

    /// Whether a cipher's tables take memory.
    pub(crate) fn has_ciphers(&self) -> bool {
        self.data.has_ciphers() || self.control.has_ciphers()
    }

    /// Gives up the ciphers' tables, and keeps their keys.
    pub(crate) fn drop_ciphers(&mut self) {
        self.data.drop_ciphers();
        self.control.drop_ciphers();
    }

    /// Gives up all that can be made again from this epoch's secrets.
    pub(crate) fn hibernate(&mut self) {
        self.data.hibernate();
        self.control.hibernate();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto_provider::CryptoProvider;
    use crate::key_schedule::Side;
    use crate::suite::Suite;
    use crate::testing::secrets;

    const SUITE: Suite = Suite::Aes128Gcm;

    fn maker() -> CipherMaker {
        CipherMaker {
            suite: SUITE,
            crypto: CryptoProvider::aws_lc(),
            log: None,
            records_in_packets: false,
        }
    }

    /// Tags of nothing: they tell keys apart.
    fn tags(keys: &EpochKeys, secrets: &DirectionSecrets) -> [[u8; 16]; 2] {
        let (data, control) =
            (keys.data(&maker(), secrets).unwrap(), keys.control(&maker(), secrets).unwrap());
        [data, control].map(|aead| aead.seal(1, b"", &mut []).unwrap())
    }

    #[test]
    fn an_epoch_with_one_cipher_has_ciphers() {
        let secrets = secrets(SUITE, Side::Client);
        let [mut data, mut control] = [0; 2].map(EpochKeys::new);
        assert!(data.data(&maker(), &secrets).is_ok());
        assert!(control.control(&maker(), &secrets).is_ok());
        for keys in [&mut data, &mut control] {
            assert!(keys.has_ciphers());
            keys.drop_ciphers();
            assert!(!keys.has_ciphers());
        }
    }

    #[test]
    fn hibernation_drops_the_keys_and_dropping_ciphers_keeps_them() {
        let [client, server] = [Side::Client, Side::Server].map(|side| secrets(SUITE, side));
        let mut keys = EpochKeys::new(0);
        let tags_of_client = tags(&keys, &client);
        keys.drop_ciphers();
        assert_eq!(tags(&keys, &server), tags_of_client);
        keys.hibernate();
        assert_eq!(tags(&keys, &server), tags(&EpochKeys::new(0), &server));
        assert_ne!(tags(&keys, &server), tags_of_client);
    }
}
