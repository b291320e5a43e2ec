// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a device.

use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, Header, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN, Start,
    StreamId,
};

use crate::error::DeviceError;
use crate::statement::{End, LogId, Statement};

/// The number under which a device knows a group's secret. The host names secrets, and never sees
/// one. 0 is the device's own, which no other device has.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SecretNumber(pub u32);

/// A message and the attestation that it came with.
#[derive(Clone, Copy, Debug)]
pub struct Claimed<'m> {
    /// The attestation, which may be anything.
    pub attestation: Attestation,
    /// The message.
    pub message: &'m [u8],
}

/// A trusted device as its host uses it: the operations of the attestation kernel, wherever it
/// runs. [`smt_attestation::Stream`] says what each means.
pub trait Device {
    /// The device and its start.
    fn own(&self) -> Start;

    /// The public key of its signatures.
    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN];

    /// Opens the device's stream of a group, under a secret that the device has.
    ///
    /// # Errors
    /// [`DeviceError::UnknownSecret`], [`DeviceError::Misuse`], those of the way to the device.
    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError>;

    /// Attests a message under the stream's next counter.
    ///
    /// # Errors
    /// [`DeviceError::UnknownStream`], [`DeviceError::Misuse`], those of the way to the device.
    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError>;

    /// Attests messages in their order. A device in another process works on them as a batch.
    ///
    /// # Errors
    /// Those of [`Device::attest`]. Some of the messages may be attested then.
    fn attest_all(
        &mut self,
        stream: StreamId,
        messages: &[&[u8]],
    ) -> Result<Vec<Attestation>, DeviceError> {
        messages.iter().map(|message| self.attest(stream, message)).collect()
    }

    /// Takes a message if it is the next of its sender.
    ///
    /// # Errors
    /// [`DeviceError::Refused`], [`DeviceError::UnknownStream`], those of the way to the device.
    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError>;

    /// Whether a device of the group has attested a message. Changes nothing.
    ///
    /// # Errors
    /// Those of [`Device::accept`].
    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError>;

    /// Checks messages, each by itself. A device in another process works on them as a batch.
    ///
    /// # Errors
    /// Those of the way to the device. A message that is refused has its error in its place.
    fn check_all(
        &self,
        stream: StreamId,
        all: &[Claimed<'_>],
    ) -> Result<Vec<Result<Header, DeviceError>>, DeviceError> {
        Ok(all.iter().map(|it| self.check(stream, &it.attestation, it.message)).collect())
    }

    /// Signs one of the device's own last attested messages, for those who have no key.
    ///
    /// # Errors
    /// Those of [`Device::attest`].
    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError>;

    /// One of the device's last attestations again.
    ///
    /// # Errors
    /// Those of [`Device::attest`].
    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError>;

    /// The counter that the stream has given last, or nothing if it is not open.
    ///
    /// # Errors
    /// Those of the way to the device.
    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError>;

    /// Where a peer's stream stands, or nothing if there is no such peer.
    ///
    /// # Errors
    /// [`DeviceError::UnknownStream`], those of the way to the device.
    fn position(&self, stream: StreamId, device: DeviceId)
    -> Result<Option<Position>, DeviceError>;

    /// Votes for the new epoch of a peer that has restarted, and tells it the epoch of `about`.
    ///
    /// # Errors
    /// Those of [`Device::attest`].
    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError>;

    /// Admits a peer in its new epoch, on the votes of a quorum.
    ///
    /// # Errors
    /// Those of [`Device::accept`].
    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError>;

    /// Learns after a restart where a peer's stream stands, on the votes of a quorum.
    ///
    /// # Errors
    /// Those of [`Device::accept`].
    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError>;
}

/// A device that remembers where append-only logs end, also after it has started again. It attests
/// no two entries of one log under one sequence number that it seals or signs
/// ([`crate::Logs`] says by which rules).
pub trait AppendOnly: Device {
    /// The sealed end of a log by its place, from 0; nothing behind the last one.
    ///
    /// # Errors
    /// [`DeviceError::Log`], those of the way to the device.
    fn log_at(&self, place: u32) -> Result<Option<(LogId, End)>, DeviceError>;

    /// Opens the stream of a log, unless it is open. Its group is the device alone, formed in epoch
    /// 1 whatever the epoch is now: entries of all epochs have one key.
    ///
    /// # Errors
    /// [`DeviceError::Log`], [`DeviceError::Misuse`], those of the way to the device.
    fn open_log(&mut self, log: LogId) -> Result<(), DeviceError>;

    /// Attests the next entry of a log whose stream is open.
    ///
    /// # Errors
    /// [`DeviceError::Log`], [`DeviceError::Misuse`], [`DeviceError::UnknownStream`], those of the
    /// way to the device.
    fn append(&mut self, log: LogId, entry: &Statement) -> Result<Attestation, DeviceError>;

    /// Attests entries in their order. A device in another process works on them as a batch.
    ///
    /// # Errors
    /// Those of [`AppendOnly::append`]. The first entries may be appended then.
    fn append_all(
        &mut self,
        log: LogId,
        entries: &[Statement],
    ) -> Result<Vec<Attestation>, DeviceError> {
        entries.iter().map(|entry| self.append(log, entry)).collect()
    }

    /// Forgets all entries that were appended and not sealed.
    ///
    /// # Errors
    /// [`DeviceError::Log`], those of the way to the device.
    fn discard(&mut self) -> Result<(), DeviceError>;

    /// Seals logs up to their last entries, which are named: the device remembers them for ever
    /// when this returns.
    ///
    /// # Errors
    /// [`DeviceError::Log`], those of the way to the device.
    fn seal(&mut self, ends: &[(LogId, End)]) -> Result<(), DeviceError>;

    /// Signs the last entry of a log that is sealed up to it, for those who have no key.
    ///
    /// # Errors
    /// [`DeviceError::Log`], [`DeviceError::Misuse`], those of the way to the device.
    fn sign_end(&self, log: LogId) -> Result<[u8; SIGNATURE_LEN], DeviceError>;
}
