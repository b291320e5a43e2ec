// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A cipher, from its secret to its tables, each made when it is first needed.
//!
//! ```text
//!   secret  -- two HKDF expansions, some us -->  key and IV  -- tables, 0.2 us -->  AEAD
//!    49 B                                           44 B                            650 B
//!         <--------------- hibernate()-------------- <------------ drop_ciphers()-----
//! ```
//! A session in use keeps key and IV. Whether it keeps the tables too depends on how many others
//! are in use: beyond the second-level cache they cost as much to fetch as to make. A session that
//! rests has its secrets alone.
//!
//! Not here: which sessions cool or rest, and when (`smt-proto`).

use alloc::boxed::Box;
use core::cell::OnceCell;

use smt_carrier::{KeyHandle, ReceivingFlow, ReceivingKey};

use crate::aead::{Aead, Unavailable};
use crate::carrier_key::CarrierKey;
use crate::crypto_provider::CryptoProvider;
use crate::key_log::KeyLogContext;
use crate::key_schedule::{DerivedKey, DirectionSecrets};
use crate::plaintext::{PLAINTEXT, PlaintextAead};
use crate::secret::Secret;
use crate::suite::Suite;

/// One cipher, as far as it has been made.
#[derive(Default)]
pub(crate) struct LazyCipher {
    key: OnceCell<Box<CipherKey>>,
    aead: OnceCell<Box<dyn Aead>>,
}

/// Key and IV, and the same at the carrier.
struct CipherKey {
    derived: DerivedKey,
    /// Once the carrier was asked; `None` if it did not take the key.
    carrier: OnceCell<Option<CarrierKey>>,
}

impl LazyCipher {
    /// The cipher of `secret`, which is not needed once the key was derived.
    ///
    /// # Errors
    /// [`Unavailable`]: the library could not make it. It is made when it is asked for again.
    pub(crate) fn aead(
        &self,
        maker: &CipherMaker,
        secret: &Secret,
    ) -> Result<&dyn Aead, Unavailable> {
        if let Some(aead) = self.aead.get() {
            return Ok(&**aead);
        }
        let aead = self.make(maker, secret)?;
        Ok(&**self.aead.get_or_init(|| aead))
    }

    /// The cipher of records: the null cipher, if the packets around them are sealed.
    ///
    /// # Errors
    /// As [`Self::aead`].
    pub(crate) fn of_records(
        &self,
        maker: &CipherMaker,
        secrets: &DirectionSecrets,
    ) -> Result<&dyn Aead, Unavailable> {
        match maker.records_in_packets {
            true => Ok(&PLAINTEXT),
            false => self.aead(maker, &secrets.data),
        }
    }

    /// The carrier's handle of the key, if the carrier seals records and takes it. A carrier that
    /// does not take it is asked again only after [`Self::hibernate`].
    pub(crate) fn carrier_key(&self, maker: &CipherMaker, secret: &Secret) -> Option<KeyHandle> {
        let store = maker.crypto.key_store()?;
        if secret.is_plaintext() || maker.records_in_packets {
            return None;
        }
        let CipherKey { derived, carrier } = self.key(maker, secret);
        let install = || {
            let key = &derived.key[..maker.suite.key_len()];
            CarrierKey::install(store, maker.suite, key, *derived.iv)
        };
        let installed = carrier.get_or_init(install);
        installed.as_ref().map(|key| key.handle)
    }

    /// The same for a receiving key: the carrier opens records of this flow and epoch byte.
    pub(crate) fn receiving_key(
        &self,
        maker: &CipherMaker,
        secret: &Secret,
        flow: ReceivingFlow,
        epoch: u8,
    ) -> Option<KeyHandle> {
        let store = maker.crypto.key_store()?;
        if secret.is_plaintext() {
            return None;
        }
        let CipherKey { derived, carrier } = self.key(maker, secret);
        let install = || {
            let key = ReceivingKey {
                suite: maker.suite.code(),
                key: &derived.key[..maker.suite.key_len()],
                iv: &derived.iv,
                epoch,
                flow,
            };
            CarrierKey::install_receiving(store, &key)
        };
        let installed = carrier.get_or_init(install);
        installed.as_ref().map(|key| key.handle)
    }

    /// The carrier's handle of the key, if the carrier has the key.
    pub(crate) fn handle(&self) -> Option<KeyHandle> {
        let installed = self.key.get()?.carrier.get()?;
        installed.as_ref().map(|key| key.handle)
    }

    /// Makes the key: from here on the secret is not needed. A plaintext one has no key.
    pub(crate) fn derive(&self, maker: &CipherMaker, secret: &Secret) {
        if !secret.is_plaintext() {
            self.key(maker, secret);
        }
    }

    pub(crate) fn has_ciphers(&self) -> bool {
        self.aead.get().is_some()
    }

    /// Gives up the tables, and keeps the key.
    pub(crate) fn drop_ciphers(&mut self) {
        self.aead.take();
    }

    /// Gives up the key too.
    pub(crate) fn hibernate(&mut self) {
        self.aead.take();
        self.key.take();
    }

    fn make(&self, maker: &CipherMaker, secret: &Secret) -> Result<Box<dyn Aead>, Unavailable> {
        if secret.is_plaintext() {
            return Ok(Box::new(PlaintextAead));
        }
        let DerivedKey { key, iv } = &self.key(maker, secret).derived;
        let key = &key[..maker.suite.key_len()];
        maker.crypto.aead(maker.suite, key, **iv)
    }

    fn key(&self, maker: &CipherMaker, secret: &Secret) -> &CipherKey {
        let derive = || {
            Box::new(CipherKey {
                derived: DerivedKey::of(maker.crypto.hash(), maker.suite, secret),
                carrier: OnceCell::new(),
            })
        };
        self.key.get_or_init(derive)
    }
}

/// The parameters that the ciphers of one direction share.
pub(crate) struct CipherMaker {
    pub(crate) suite: Suite,
    pub(crate) crypto: CryptoProvider,
    /// Few users have one: it takes no room in the others' sessions.
    pub(crate) log: Option<Box<KeyLogContext>>,
    /// Records have no seal of their own: the packets around them are sealed (SPEC §15.4).
    pub(crate) records_in_packets: bool,
}

impl CipherMaker {
    pub(crate) fn log(&self, epoch: u32, secrets: &DirectionSecrets) {
        if let Some(log) = &self.log {
            log.log(self.suite, epoch, secrets);
        }
    }
}
