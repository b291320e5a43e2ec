// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of one direction and one epoch (SPEC §7.3), and how they come from the secrets.
//!
//! A cipher's tables take some 600 bytes and are made from the secret in some microseconds: they are made when first
//! used, and given up while a session rests.
//!
//! Which epochs exist at a time is decided by [`crate::SealKeys`] and [`crate::OpenKeys`].

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::OnceCell;

use crate::aead::{Aead, AeadProvider};
use crate::key_log::KeyLogContext;
use crate::key_schedule::{DirectionSecrets, key_and_iv};
use crate::plaintext::PlaintextAead;
use crate::secret::Secret;
use crate::suite::Suite;

/// The keys of one epoch, without the secrets they come from.
pub(crate) struct EpochKeys {
    pub(crate) epoch: u32,
    data: OnceCell<Box<dyn Aead>>,
    control: OnceCell<Box<dyn Aead>>,
}

impl EpochKeys {
    /// Keys that are made when they are used.
    pub(crate) fn new(epoch: u32) -> Self {
        Self {
            epoch,
            data: OnceCell::new(),
            control: OnceCell::new(),
        }
    }

    /// The data key; `secrets` are this epoch's, unless it has been [`Self::complete`]d.
    pub(crate) fn data(&self, maker: &EpochMaker, secrets: &DirectionSecrets) -> &dyn Aead {
        &**self.data.get_or_init(|| maker.aead(&secrets.data))
    }

    /// The control key, in the same way.
    pub(crate) fn control(&self, maker: &EpochMaker, secrets: &DirectionSecrets) -> &dyn Aead {
        &**self.control.get_or_init(|| maker.aead(&secrets.control))
    }

    /// Makes both keys: this epoch's secrets are about to be deleted.
    pub(crate) fn complete(&self, maker: &EpochMaker, secrets: &DirectionSecrets) {
        self.data(maker, secrets);
        self.control(maker, secrets);
    }

    /// The data key alone.
    pub(crate) fn into_data(self, maker: &EpochMaker, secrets: &DirectionSecrets) -> Box<dyn Aead> {
        let make = || maker.aead(&secrets.data);
        self.data.into_inner().unwrap_or_else(make)
    }

    /// Gives up what can be made again from this epoch's secrets.
    pub(crate) fn rest(&mut self) {
        self.data.take();
        self.control.take();
    }
}

/// Makes the keys of one direction's epochs.
pub(crate) struct EpochMaker {
    pub(crate) suite: Suite,
    pub(crate) provider: Arc<dyn AeadProvider>,
    /// Hardly anybody has one: it takes no room in the others' sessions.
    pub(crate) log: Option<Box<KeyLogContext>>,
}

impl EpochMaker {
    pub(crate) fn log(&self, epoch: u32, secrets: &DirectionSecrets) {
        if let Some(log) = &self.log {
            log.log(self.suite, epoch, secrets);
        }
    }

    fn aead(&self, secret: &Secret) -> Box<dyn Aead> {
        if secret.is_plaintext() {
            return Box::new(PlaintextAead);
        }
        let (key, iv) = key_and_iv(self.suite, secret);
        self.provider
            .aead(self.suite, &key[..self.suite.key_len()], iv)
    }
}
