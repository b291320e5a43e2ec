// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving keys of a session: the current epoch, the previous one until the peer says that
//! it is done, and the next one as soon as a packet claims it.
//!
//! 1. The epoch byte of a packet selects a candidate; it proves nothing.
//! 2. The caller opens with it and says so: [`OpenKeys::opened`] makes the next epoch current,
//!    [`OpenKeys::failed`] counts towards the integrity limit of the candidate.
//! 3. EPOCH_DONE drops the previous epoch ([`OpenKeys::finish`]).
//! 4. A carrier that opens records gets a data key when something has opened under it here, and
//!    loses it with the epoch ([`OpenKeys::open_at_carrier`]). A record that it has opened is taken
//!    if it names the key of its epoch ([`OpenKeys::is_carriers`]).
//!
//! Next keys are derived at most once and only when nothing older than the current epoch is open
//! (SPEC §7.3), so forged epoch bytes cost one derivation per epoch. Old secrets are deleted when
//! an epoch becomes current. The 10 minutes of SPEC §7.3 are the caller's to measure.

use alloc::boxed::Box;
use core::fmt;

use smt_carrier::{KeyHandle, ReceivingFlow};

use crate::aead::{Aead, NoKey};
use crate::cipher::CipherMaker;
use crate::crypto_provider::CryptoProvider;
use crate::epoch::EpochKeys;
use crate::key_limits::KeyLimits;
use crate::key_log::KeyLogContext;
use crate::key_schedule::DirectionSecrets;
use crate::suite::Suite;

/// Keys for records and control packets of the peer.
pub struct OpenKeys {
    maker: CipherMaker,
    /// Failed openings of a key after which the peer is asked for an update.
    failed_opens: u64,
    /// Failed openings of a key after which it opens nothing more.
    integrity_limit: u64,
    /// Secrets of the current epoch.
    secrets: DirectionSecrets,
    current: Candidate,
    /// In a box, as hardly any session has one at a time.
    previous: Option<Box<Candidate>>,
    /// Derived, but nothing has opened under it yet.
    next: Option<Box<Next>>,
    /// The epoch that was handed out last: the one that [`Self::failed`] is about.
    tried: u32,
    /// The peer was asked for an update of the current epoch.
    asked: bool,
    /// The flow for a carrier that opens records.
    carrier_flow: Option<Box<ReceivingFlow>>,
}

/// The next epoch.
struct Next {
    secrets: DirectionSecrets,
    candidate: Candidate,
}

struct Candidate {
    keys: EpochKeys,
    /// Failed openings under either key of this epoch.
    failed: u64,
    /// Failed openings that the carrier may have had under the data key, and does not tell: as many
    /// as it counts by itself, for each time that it was given the key.
    reserved: u64,
}

impl Candidate {
    fn new(keys: EpochKeys) -> Self {
        Self { keys, failed: 0, reserved: 0 }
    }

    /// Failed openings that count towards the integrity limit.
    fn failures(&self) -> u64 {
        self.failed.saturating_add(self.reserved)
    }
}

impl OpenKeys {
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
            current: Candidate::new(EpochKeys::new(0)),
            maker,
            failed_opens: limits.failed_opens,
            integrity_limit: suite.integrity_limit(),
            secrets,
            previous: None,
            next: None,
            tried: 0,
            asked: false,
            carrier_flow: None,
        }
    }

    /// Takes records without a seal of their own, in a session whose packets are sealed (SPEC
    /// §15.4). Control packets are opened as ever. The caller takes no record but from a packet
    /// that its own carrier has opened, under an association that it gave to this peer.
    #[must_use]
    pub fn leave_records_to_packets(mut self) -> Self {
        self.maker.records_in_packets = true;
        self
    }

    /// Gives the keys of this flow to the carrier, if its store takes any. The carrier counts
    /// [`CARRIER_FAILURES_MAX`] wrong tags by itself each time that it gets a key: so many fewer
    /// are left here.
    pub fn open_at_carrier(&mut self, flow: ReceivingFlow) {
        let takes_keys = self.maker.crypto.key_store().is_some() && !self.maker.records_in_packets;
        self.carrier_flow = takes_keys.then(|| Box::new(flow));
    }

    /// The epoch that an epoch byte names, if the carrier has its data key by this handle.
    pub fn is_carriers(&mut self, epoch_byte: u8, handle: KeyHandle) -> Option<u32> {
        let (keys, ..) = self.candidate(epoch_byte)?;
        (keys.handle() == Some(handle)).then_some(keys.epoch)
    }

    /// Gives the carrier the data key of the current epoch, under which something has opened. A
    /// session that rests takes its key back, and the carrier counts from nothing when it gets the
    /// key again: that ends when half of the integrity limit is gone, and the other half is left
    /// for openings here.
    fn offer(&mut self) {
        let Some(flow) = self.carrier_flow.as_deref() else {
            return;
        };
        let failures = self.current.failures();
        let Candidate { keys, reserved, .. } = &mut self.current;
        if keys.handle().is_some() {
            return;
        }
        if failures.saturating_add(CARRIER_FAILURES_MAX) > self.integrity_limit / 2 {
            return;
        }
        keys.offer_receiving(&self.maker, &self.secrets, *flow);
        if keys.handle().is_some() {
            *reserved += CARRIER_FAILURES_MAX;
        }
    }

    /// Epoch and data key that an epoch byte can mean.
    ///
    /// # Errors
    /// [`NoKey::NoSuchEpoch`] if the byte is neither the current, the previous nor the next
    /// epoch's, or if that key has reached its integrity limit; [`NoKey::Unavailable`].
    pub fn data(&mut self, epoch_byte: u8) -> Result<(u32, &dyn Aead), NoKey> {
        let candidate = self.candidate(epoch_byte);
        let (keys, maker, secrets) = candidate.ok_or(NoKey::NoSuchEpoch)?;
        Ok((keys.epoch, keys.data(maker, secrets)?))
    }

    /// As [`Self::data`], for control packets.
    ///
    /// # Errors
    /// As for [`Self::data`].
    pub fn control(&mut self, epoch_byte: u8) -> Result<(u32, &dyn Aead), NoKey> {
        let candidate = self.candidate(epoch_byte);
        let (keys, maker, secrets) = candidate.ok_or(NoKey::NoSuchEpoch)?;
        Ok((keys.epoch, keys.control(maker, secrets)?))
    }

    /// Something of `epoch` has opened. If that was the next epoch it is now the current one,
    /// and the answer is true.
    pub fn opened(&mut self, epoch: u32) -> bool {
        let is_next = |next: &mut Box<Next>| next.candidate.keys.epoch == epoch;
        let Some(mut next) = self.next.take_if(is_next) else {
            if epoch == self.current.keys.epoch {
                self.offer();
            }
            return false;
        };
        self.maker.log(epoch, &next.secrets);
        self.current.keys.complete(&self.maker, &self.secrets);
        // The old secrets take the new ones' place and are cleared there: a value moved out of a
        // box leaves its bytes behind.
        core::mem::swap(&mut self.secrets, &mut next.secrets);
        core::mem::swap(&mut self.current, &mut next.candidate);
        let nobody = Candidate::new(EpochKeys::new(epoch));
        self.previous = Some(Box::new(core::mem::replace(&mut next.candidate, nobody)));
        self.asked = false;
        self.offer();
        true
    }

    /// Something was forged under the key that was handed out last. An opening that could not be
    /// tried is not told here.
    pub fn failed(&mut self) {
        let tried = self.tried;
        for candidate in self.candidates_mut() {
            if candidate.keys.epoch == tried {
                candidate.failed += 1;
            }
        }
    }

    /// The epoch to name in KEY_UPDATE_REQUEST, if failed openings demand one; once per epoch.
    pub fn take_update_request(&mut self) -> Option<u32> {
        // Forged records of the next epoch wear its keys out before they are used: their sender
        // moves to that epoch, and is asked again.
        let next = self.next.as_ref().map_or(0, |next| next.candidate.failed);
        if self.asked || self.current.failed.max(next) < self.failed_opens {
            return None;
        }
        self.asked = true;
        Some(self.current.keys.epoch)
    }

    /// The peer says EPOCH_DONE: drops the keys of `epoch` and before. True if they are gone, now
    /// or already, so that EPOCH_ACK is the answer; false for an epoch that is not over.
    pub fn finish(&mut self, epoch: u32) -> bool {
        if epoch >= self.current.keys.epoch {
            return false;
        }
        self.previous.take_if(|previous| previous.keys.epoch <= epoch);
        true
    }

    /// The current epoch.
    pub fn epoch(&self) -> u32 {
        self.current.keys.epoch
    }

    /// The previous epoch, until it is done.
    pub fn previous(&self) -> Option<u32> {
        self.previous.as_ref().map(|previous| previous.keys.epoch)
    }

    fn candidates_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        let previous = self.previous.as_deref_mut();
        let next = self.next.as_mut().map(|next| &mut next.candidate);
        let candidates = [Some(&mut self.current), previous, next];
        candidates.into_iter().flatten()
    }

    /// The keys that an epoch byte names, and the maker and secrets of its ciphers. The keys of the
    /// previous epoch have been derived already.
    fn candidate(
        &mut self,
        epoch_byte: u8,
    ) -> Option<(&EpochKeys, &CipherMaker, &DirectionSecrets)> {
        let current = self.current.keys.epoch;
        let is_named = |epoch: &u32| epoch.to_le_bytes()[0] == epoch_byte;
        if is_named(&current) {
            self.tried = current;
            let is_usable = self.current.failures() < self.integrity_limit;
            return is_usable.then_some((&self.current.keys, &self.maker, &self.secrets));
        }
        let others = [self.previous(), self.next_epoch()];
        let epoch = others.into_iter().flatten().find(is_named)?;
        self.tried = epoch;
        if epoch > current {
            self.make_next(epoch);
        }
        let (candidate, secrets) = match epoch < current {
            true => (self.previous.as_deref()?, &self.secrets),
            false => self.next.as_ref().map(|next| (&next.candidate, &next.secrets))?,
        };
        let is_usable = candidate.failures() < self.integrity_limit;
        is_usable.then_some((&candidate.keys, &self.maker, secrets))
    }

    /// The epoch that may begin now.
    fn next_epoch(&self) -> Option<u32> {
        if self.previous.is_some() {
            return None;
        }
        self.current.keys.epoch.checked_add(1)
    }

    fn make_next(&mut self, epoch: u32) {
        self.next.get_or_insert_with(|| {
            let CipherMaker { suite, crypto, .. } = &self.maker;
            Box::new(Next {
                secrets: self.secrets.next_epoch(crypto.hash(), *suite),
                candidate: Candidate::new(EpochKeys::new(epoch)),
            })
        });
    }

    /// Whether ciphers take memory beside their keys: some 600 bytes each.
    pub fn has_ciphers(&self) -> bool {
        let previous = self.previous.as_deref();
        let next = self.next.as_ref().map(|next| &next.candidate);
        let candidates = [Some(&self.current), previous, next];
        let mut candidates = candidates.into_iter().flatten();
        candidates.any(|candidate| candidate.keys.has_ciphers())
    }

    /// Gives up that memory until a cipher is used again, which then takes a fraction of a
    /// microsecond more.
    pub fn drop_ciphers(&mut self) {
        self.candidates_mut().for_each(|candidate| candidate.keys.drop_ciphers());
    }

    /// As [`Self::drop_ciphers`], with the keys, which some microseconds make again; but those of
    /// the previous epoch.
    pub fn hibernate(&mut self) {
        self.drop_ciphers();
        self.current.keys.hibernate();
        // The next epoch itself stays: its failed openings count.
        if let Some(next) = &mut self.next {
            next.candidate.keys.hibernate();
        }
    }
}

/// Epochs and counts, no key.
impl fmt::Debug for OpenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenKeys")
            .field("suite", &self.maker.suite)
            .field("epoch", &self.epoch())
            .field("previous", &self.previous())
            .field("failed", &self.current.failed)
            .finish_non_exhaustive()
    }
}

/// Wrong tags that a carrier counts under a key by itself, each time that it is given the key. It
/// then opens nothing more by it.
pub const CARRIER_FAILURES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests;
