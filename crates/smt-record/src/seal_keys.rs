// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sending keys of a session: the current epoch, and the previous one until it is finished.
//!
//! ```text
//!               update()                finish_previous()
//!   { e }  ------------------>  { e, e+1 }  ------------->  { e+1 }
//!          wants_update() and                EPOCH_ACK{e}
//!          can_update()
//! ```
//! 1. Every first sealing of a record, and every control packet, is counted.
//! 2. From `update_at` on, or when the peer asks, an update is wanted; it can happen once the
//!    previous epoch is finished (SPEC §7.3). At the limit sealing stops.
//! 3. An update deletes the old secrets. The old data key stays for retransmissions.
//!
//! Numbers are not kept here: ids and control counters go on over epochs.

use alloc::boxed::Box;
use core::fmt;

use smt_carrier::KeyHandle;

use crate::aead::{Aead, NoKey, Unavailable};
use crate::cipher::{CipherMaker, LazyCipher};
use crate::crypto_provider::CryptoProvider;
use crate::epoch::EpochKeys;
use crate::key_limits::{KeyLimits, KeyUsedUp};
use crate::key_log::KeyLogContext;
use crate::key_schedule::DirectionSecrets;
use crate::suite::Suite;

/// Keys for records and control packets of this side.
pub struct SealKeys {
    maker: CipherMaker,
    limits: KeyLimits,
    /// Secrets of the current epoch only.
    secrets: DirectionSecrets,
    current: EpochKeys,
    /// Epoch and data key of records that may still be retransmitted. Control packets are never
    /// repeated as they were, so their old key goes at once.
    previous: Option<(u32, LazyCipher)>,
    /// Records first sealed under the current data key.
    records: u64,
    /// Control packets sealed under the current control key.
    controls: u64,
    /// The peer has asked for an update of the current epoch.
    update_requested: bool,
}

impl SealKeys {
    /// Keys of epoch 0, with the library aws-lc.
    #[cfg(feature = "aws-lc")]
    pub fn new(
        secrets: DirectionSecrets,
        suite: Suite,
        limits: KeyLimits,
        log: Option<KeyLogContext>,
    ) -> Self {
        Self::with_provider(secrets, suite, limits, log, CryptoProvider::aws_lc())
    }

    /// Keys of epoch 0, with the library of `crypto`.
    pub fn with_provider(
        secrets: DirectionSecrets,
        suite: Suite,
        limits: KeyLimits,
        log: Option<KeyLogContext>,
        crypto: CryptoProvider,
    ) -> Self {
        let maker =
            CipherMaker { suite, crypto, log: log.map(Box::new), records_in_packets: false };
        maker.log(0, &secrets);
        Self {
            current: EpochKeys::new(0),
            maker,
            limits,
            secrets,
            previous: None,
            records: 0,
            controls: 0,
            update_requested: false,
        }
    }

    /// Leaves records without a seal of their own, for a session whose packets are sealed (SPEC
    /// §15.4). Control packets are sealed as ever. The caller lets no record leave but in a sealed
    /// packet.
    #[must_use]
    pub fn leave_records_to_packets(mut self) -> Self {
        self.maker.records_in_packets = true;
        self
    }

    /// Moves to the next epoch. The caller then owes EPOCH_DONE for the old one, once nothing of
    /// it is outstanding.
    ///
    /// # Panics
    /// If not [`Self::can_update`].
    pub fn update(&mut self) {
        assert!(self.can_update(), "the epoch before {} is not finished", self.epoch());
        let next = EpochKeys::new(self.current.epoch + 1);
        let old = core::mem::replace(&mut self.current, next);
        self.previous = Some((old.epoch, old.into_data(&self.maker, &self.secrets)));
        let CipherMaker { suite, crypto, .. } = &self.maker;
        self.secrets = self.secrets.next_epoch(crypto.hash(), *suite);
        self.maker.log(self.current.epoch, &self.secrets);
        self.records = 0;
        self.controls = 0;
        self.update_requested = false;
    }

    /// Drops the previous epoch's key: the peer has answered EPOCH_ACK for it.
    pub fn finish_previous(&mut self) {
        self.previous = None;
    }

    /// The peer asks for an update of `epoch`; ignored unless that is the current one.
    pub fn request_update(&mut self, epoch: u32) {
        self.update_requested |= epoch == self.current.epoch;
    }

    /// Counts one record against the current data key.
    ///
    /// # Errors
    /// [`KeyUsedUp`]: nothing may be sealed before [`Self::update`].
    pub fn count_record(&mut self) -> Result<(), KeyUsedUp> {
        self.check_record()?;
        self.records += 1;
        Ok(())
    }

    /// Whether one more record may be sealed under the current data key, without counting it.
    pub(crate) fn check_record(&self) -> Result<(), KeyUsedUp> {
        check(self.records, self.limits.records, self.current.epoch)
    }

    /// Counts one control packet against the current control key.
    ///
    /// # Errors
    /// [`KeyUsedUp`]: nothing may be sealed before [`Self::update`].
    pub fn count_control(&mut self) -> Result<(), KeyUsedUp> {
        check(self.controls, self.limits.controls(), self.current.epoch)?;
        self.controls += 1;
        Ok(())
    }

    /// The current epoch.
    pub fn epoch(&self) -> u32 {
        self.current.epoch
    }

    /// The previous epoch, until it is finished.
    pub fn previous(&self) -> Option<u32> {
        self.previous.as_ref().map(|(epoch, _)| *epoch)
    }

    /// Whether the next epoch may begin: the previous one is finished (SPEC §7.3).
    pub fn can_update(&self) -> bool {
        self.previous.is_none() && self.current.epoch < u32::MAX
    }

    /// Whether a key's quota is nearly used, or the peer has asked.
    pub fn wants_update(&self) -> bool {
        self.update_requested || self.records.max(self.controls) >= self.limits.update_at
    }

    /// Records that may still be sealed under the current data key.
    pub fn records_left(&self) -> u64 {
        self.limits.records.saturating_sub(self.records)
    }

    /// Control packets sealed under the current control key.
    pub fn controls(&self) -> u64 {
        self.controls
    }

    /// The data key of an epoch: the current, or the previous until it is finished.
    ///
    /// # Errors
    /// [`NoKey`].
    pub fn data(&self, epoch: u32) -> Result<&dyn Aead, NoKey> {
        if epoch == self.current.epoch {
            return Ok(self.current.data(&self.maker, &self.secrets)?);
        }
        match &self.previous {
            Some((previous, cipher)) if *previous == epoch => {
                Ok(cipher.of_records(&self.maker, &self.secrets)?)
            }
            _ => Err(NoKey::NoSuchEpoch),
        }
    }

    /// The carrier's handle of the data key of an epoch. `None`: the carrier seals no records, does
    /// not take the key, or the epoch is over.
    pub(crate) fn carrier_key(&self, epoch: u32) -> Option<KeyHandle> {
        if epoch == self.current.epoch {
            return self.current.carrier_key(&self.maker, &self.secrets);
        }
        let (previous, cipher) = self.previous.as_ref()?;
        let is_previous = *previous == epoch;
        is_previous.then(|| cipher.carrier_key(&self.maker, &self.secrets.data)).flatten()
    }

    /// The current control key.
    ///
    /// # Errors
    /// [`Unavailable`]: the library could not make its cipher.
    pub fn control(&self) -> Result<&dyn Aead, Unavailable> {
        self.current.control(&self.maker, &self.secrets)
    }

    /// Whether ciphers take memory beside their keys: some 600 bytes each.
    pub fn has_ciphers(&self) -> bool {
        let previous = self.previous.as_ref();
        self.current.has_ciphers() || previous.is_some_and(|(_, cipher)| cipher.has_ciphers())
    }

    /// Gives up that memory until a cipher is used again, which then takes a fraction of a
    /// microsecond more.
    pub fn drop_ciphers(&mut self) {
        self.current.drop_ciphers();
        if let Some((_, cipher)) = &mut self.previous {
            cipher.drop_ciphers();
        }
    }

    /// As [`Self::drop_ciphers`], with the current epoch's keys, which some microseconds make
    /// again.
    pub fn hibernate(&mut self) {
        self.drop_ciphers();
        self.current.hibernate();
    }
}

/// Epochs and counts, no key.
impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealKeys")
            .field("suite", &self.maker.suite)
            .field("epoch", &self.epoch())
            .field("previous", &self.previous())
            .field("records", &self.records)
            .field("controls", &self.controls)
            .finish_non_exhaustive()
    }
}

fn check(sealed: u64, limit: u64, epoch: u32) -> Result<(), KeyUsedUp> {
    if sealed >= limit {
        return Err(KeyUsedUp { epoch, sealed });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
