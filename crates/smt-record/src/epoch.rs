// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of one direction and one epoch (SPEC §7.3), and how they come from the secrets.
//!
//! Which epochs exist at a time is decided by [`crate::SealKeys`] and [`crate::OpenKeys`].

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::aead::{Aead, AeadProvider};
use crate::key_log::KeyLogContext;
use crate::key_schedule::{DirectionSecrets, key_and_iv};
use crate::plaintext::PlaintextAead;
use crate::secret::Secret;
use crate::suite::Suite;

/// The keys of one epoch, without the secrets they came from.
pub(crate) struct EpochKeys {
    pub(crate) epoch: u32,
    pub(crate) data: Box<dyn Aead>,
    pub(crate) control: Box<dyn Aead>,
}

/// Makes the keys of one direction's epochs.
pub(crate) struct EpochMaker {
    pub(crate) suite: Suite,
    pub(crate) provider: Arc<dyn AeadProvider>,
    pub(crate) log: Option<KeyLogContext>,
}

impl EpochMaker {
    pub(crate) fn keys(&self, epoch: u32, secrets: &DirectionSecrets) -> EpochKeys {
        EpochKeys {
            epoch,
            data: self.aead(&secrets.data),
            control: self.aead(&secrets.control),
        }
    }

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
