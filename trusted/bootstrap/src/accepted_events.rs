// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events that a vendor accepts in the log of a device's firmware.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use data_encoding::HEXLOWER;

use crate::event_kind::EventKind;
use crate::event_log::{EventLog, REGISTERS};

/// Why a log is refused that leads to the quoted registers.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// An event that the vendor does not accept.
    #[error("an event is not accepted: {0}")]
    Event(String),
    /// No event of a type that the vendor wants.
    #[error("register {0} has no event {1}, which you want")]
    Missing(u32, EventKind),
}

/// Why a text is no list of events.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptSyntaxError {
    /// A line is none of a list.
    #[error("line {0} is neither `REGISTER any` nor `REGISTER TYPE DIGEST`, with registers 0 to 7")]
    Line(usize),
    /// A register is not looked at, and has digests that it would have to have.
    #[error("register {0} has `any` and digests too: leave one of them out")]
    AnyAndDigests(u32),
    /// The text has no line of a list: a log without events would be accepted.
    #[error("no line says which events are accepted")]
    Empty,
}

/// Digests by register and type of event, and registers that are not looked at.
///
/// Each event must have one of the digests of its register and type, and each register and type
/// must have an event. How often and in which order events come is not looked at.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcceptedEvents {
    digests: BTreeMap<(u32, EventKind), BTreeSet<[u8; 32]>>,
    any: BTreeSet<u32>,
}

impl AcceptedEvents {
    /// Whether all events of a log are accepted, and none is missing.
    ///
    /// # Errors
    /// [`AcceptError`].
    pub fn judge(&self, log: &EventLog) -> Result<(), AcceptError> {
        let mut missing: BTreeSet<_> = self.digests.keys().copied().collect();
        for event in log.events() {
            let place = (event.register, event.kind);
            missing.remove(&place);
            let is_listed = self.digests.get(&place).is_some_and(|it| it.contains(&event.digest));
            if !is_listed && !self.any.contains(&event.register) {
                return Err(AcceptError::Event(event.to_string()));
            }
        }
        match missing.first() {
            Some((register, kind)) => Err(AcceptError::Missing(*register, *kind)),
            None => Ok(()),
        }
    }
}

impl FromStr for AcceptedEvents {
    type Err = AcceptSyntaxError;

    /// Takes lines of register, type and digest, as an event is printed, or of register and `any`.
    /// A line may be empty, or begin with `#`. There is at least one other line, and a register has
    /// lines of one form.
    fn from_str(text: &str) -> Result<Self, AcceptSyntaxError> {
        let mut accepted = Self { digests: BTreeMap::new(), any: BTreeSet::new() };
        for (number, line) in (1..).zip(text.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first().is_some_and(|word| !word.starts_with('#')) {
                accepted.add(&words).ok_or(AcceptSyntaxError::Line(number))?;
            }
        }
        if let Some((both, _)) = accepted.digests.keys().find(|it| accepted.any.contains(&it.0)) {
            return Err(AcceptSyntaxError::AnyAndDigests(*both));
        }
        let is_empty = accepted.digests.is_empty() && accepted.any.is_empty();
        if is_empty { Err(AcceptSyntaxError::Empty) } else { Ok(accepted) }
    }
}

impl AcceptedEvents {
    fn add(&mut self, words: &[&str]) -> Option<()> {
        let register = words.first()?.parse().ok()?;
        if register as usize >= REGISTERS {
            return None;
        }
        match words {
            [_, "any"] => {
                self.any.insert(register);
            }
            [_, kind, digest] => {
                let digest = HEXLOWER.decode(digest.as_bytes()).ok()?.try_into().ok()?;
                self.digests.entry((register, kind.parse().ok()?)).or_default().insert(digest);
            }
            _ => return None,
        }
        Some(())
    }
}
