// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of one direction and one epoch (SPEC §7.3).
//!
//! Which epochs exist at a time is decided by [`crate::SealKeys`] and [`crate::OpenKeys`]; how a cipher comes from its
//! secret, and when, by [`crate::cipher`].

use crate::aead::Aead;
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
        Self {
            epoch,
            data: LazyCipher::default(),
            control: LazyCipher::default(),
        }
    }

    /// The data key; `secrets` are this epoch's, unless it has been [`Self::complete`]d.
    pub(crate) fn data(&self, maker: &CipherMaker, secrets: &DirectionSecrets) -> &dyn Aead {
        self.data.aead(maker, &secrets.data)
    }

    /// The control key, in the same way.
    pub(crate) fn control(&self, maker: &CipherMaker, secrets: &DirectionSecrets) -> &dyn Aead {
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
    pub(crate) fn is_warm(&self) -> bool {
        self.data.is_warm() || self.control.is_warm()
    }

    /// Gives up the ciphers' tables, and keeps their keys.
    pub(crate) fn cool(&mut self) {
        self.data.cool();
        self.control.cool();
    }

    /// Gives up all that can be made again from this epoch's secrets.
    pub(crate) fn rest(&mut self) {
        self.data.rest();
        self.control.rest();
    }
}
