// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of events that firmware keeps beside a TPM's registers (*TCG PC Client Platform Firmware
//! Profile*, section 10; Linux has it as `binary_bios_measurements`).
//!
//! The log is a host's word until it is replayed: whoever computes the registers that a TPM has
//! quoted has the digests that were measured, in their order. Types and texts of events are in no
//! register, so a host may change them.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::event_kind::EventKind;

/// The longest log that is taken.
pub const EVENT_LOG_LEN_MAX: usize = 1 << 17;
/// Registers that are replayed: 0 to 7, which quotes are over.
pub const REGISTERS: usize = 8;

/// Algorithms of a log at most. A TPM has a handful of banks.
const ALGORITHMS_MAX: usize = 16;
const SHA256: u16 = 0x000b;
/// The bytes by which the first event says that the others have digests of several algorithms.
const SIGNATURE: &[u8; 16] = b"Spec ID Event03\0";
/// The bytes of an event that says at which locality register 0 began.
const STARTUP: &[u8; 16] = b"StartupLocality\0";

/// Why bytes are no log.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EventLogError {
    /// There is none.
    #[error("there is no log of events")]
    Missing,
    /// The log is longer than any that is taken.
    #[error("the log has more than {EVENT_LOG_LEN_MAX} bytes")]
    TooLong,
    /// The log ends within an event, or a length leads out of it.
    #[error("the log is cut, or a length in it leads nowhere: event {0}")]
    Cut(usize),
    /// The first event is not that of a log with digests of several algorithms.
    #[error("the log does not begin as one with digests of several algorithms")]
    Head,
    /// An event has a digest of an algorithm that the first event does not name.
    #[error("an event has a digest of an algorithm that the log does not name: event {0}")]
    Algorithm(usize),
    /// An event has no digest of SHA-256, or two.
    #[error("an event does not have one digest of SHA-256: event {0}")]
    NoSha256(usize),
    /// The replay gives other registers than the quote.
    #[error("its replay gives other registers than the TPM has quoted")]
    OtherRegisters,
}

/// An event of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// The register that was extended.
    pub register: u32,
    /// The type, which is in no register.
    pub kind: EventKind,
    /// SHA-256 of what was measured.
    pub digest: [u8; 32],
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.register, self.kind, HEXLOWER.encode(&self.digest))
    }
}

/// A log that has been parsed, and not yet compared with any register.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventLog {
    events: Vec<Event>,
    /// The last byte of register 0 at its beginning.
    locality: u8,
}

impl EventLog {
    /// Parses the bytes of a log. Memory is bounded by their number.
    ///
    /// # Errors
    /// [`EventLogError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, EventLogError> {
        if bytes.is_empty() {
            return Err(EventLogError::Missing);
        }
        if bytes.len() > EVENT_LOG_LEN_MAX {
            return Err(EventLogError::TooLong);
        }
        let mut rest = Bytes(bytes);
        let algorithms = head(&mut rest).ok_or(EventLogError::Head)?;
        let mut log = Self { events: Vec::new(), locality: 0 };
        for number in 1.. {
            if rest.0.is_empty() {
                break;
            }
            log.take(&mut rest, &algorithms, number)?;
        }
        Ok(log)
    }

    /// The events that extended registers 0 to 7, in their order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The registers as this log leaves them.
    #[must_use]
    pub fn registers(&self) -> [[u8; 32]; REGISTERS] {
        let mut registers = [[0; 32]; REGISTERS];
        registers[0][31] = self.locality;
        for Event { register, digest, .. } in &self.events {
            if let Some(register) = registers.get_mut(*register as usize) {
                let extended = Sha256::new().chain_update(*register).chain_update(digest);
                *register = extended.finalize().into();
            }
        }
        registers
    }

    /// SHA-256 over those registers, which a quote has.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.registers().as_flattened()).into()
    }

    /// Whether this is the log behind a quote's digest of registers 0 to 7.
    ///
    /// # Errors
    /// [`EventLogError::OtherRegisters`].
    pub fn leads_to(&self, registers: &[u8; 32]) -> Result<(), EventLogError> {
        (self.digest() == *registers).then_some(()).ok_or(EventLogError::OtherRegisters)
    }

    /// Takes one event off the front.
    fn take(
        &mut self,
        rest: &mut Bytes<'_>,
        algorithms: &[Algorithm],
        number: usize,
    ) -> Result<(), EventLogError> {
        let cut = EventLogError::Cut(number);
        let register = rest.u32().ok_or(cut)?;
        let kind = EventKind(rest.u32().ok_or(cut)?);
        let count = rest.u32().ok_or(cut)?;
        let mut found = None;
        for _ in 0..count {
            let id = rest.u16().ok_or(cut)?;
            let algorithm = algorithms.iter().find(|it| it.id == id);
            let algorithm = algorithm.ok_or(EventLogError::Algorithm(number))?;
            let digest = rest.take(algorithm.length).ok_or(cut)?;
            if id == SHA256 && found.replace(digest).is_some() {
                return Err(EventLogError::NoSha256(number));
            }
        }
        let length = rest.u32().ok_or(cut)? as usize;
        let text = rest.take(length).ok_or(cut)?;
        if kind == EventKind::NO_ACTION {
            // It extends nothing.
            if let (0, Some([locality])) = (register, text.strip_prefix(STARTUP)) {
                self.locality = *locality;
            }
            return Ok(());
        }
        let digest = found.and_then(|digest| digest.try_into().ok());
        let digest = digest.ok_or(EventLogError::NoSha256(number))?;
        if (register as usize) < REGISTERS {
            self.events.push(Event { register, kind, digest });
        }
        Ok(())
    }
}

/// An algorithm of a log, and the bytes of its digests.
struct Algorithm {
    id: u16,
    length: usize,
}

/// The first event, in the older form: register, type, a digest of SHA-1, and a text that names
/// the algorithms of the others.
fn head(rest: &mut Bytes<'_>) -> Option<Vec<Algorithm>> {
    let _register = rest.u32()?;
    if EventKind(rest.u32()?) != EventKind::NO_ACTION {
        return None;
    }
    let _digest = rest.take(20)?;
    let length = rest.u32()? as usize;
    let mut text = Bytes(rest.take(length)?);
    let _class_and_version = (text.take(16)? == SIGNATURE).then(|| text.take(8))??;
    let count = text.u32()? as usize;
    if count > ALGORITHMS_MAX {
        return None;
    }
    let mut algorithms = Vec::with_capacity(count);
    for _ in 0..count {
        let (id, length) = (text.u16()?, usize::from(text.u16()?));
        let is_well = id != SHA256 || length == 32;
        algorithms.push(is_well.then_some(Algorithm { id, length })?);
    }
    let vendor = usize::from(text.take(1)?[0]);
    text.take(vendor)?;
    text.0.is_empty().then_some(algorithms)
}

/// Bytes that are taken off the front. Numbers are little-endian.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }
}
