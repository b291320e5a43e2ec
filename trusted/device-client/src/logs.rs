// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Append-only logs as a device remembers them: where each one ends, and nothing else of it.
//!
//! 1. An entry is appended if it is the next one of its log: one after the last, over the last
//!    one's cumulative digest. The device knows the last one itself.
//! 2. Ends are sealed together, which [`Sealing`] makes durable before anybody relies on them.
//! 3. The last entry of a log is signed if the log is sealed up to it.
//! 4. Entries that were appended and never sealed can be discarded. The log then goes on from its
//!    sealed end.
//!
//! Each sealed end therefore continues the one before, and so do all entries that are signed,
//! whatever a host asks for and in whatever order. A sealing that fails may have become durable or
//! not, so that nothing is appended, sealed or signed after it until the device starts again.

use std::io;

use smt_attestation::Misuse;

use crate::error::{DeviceError, LogMisuse};
use crate::statement::{End, LogId, Statement};

/// Logs that a device remembers at most.
pub const LOGS_MAX: usize = 64;

/// A place where the ends of logs outlive the device's process.
pub trait Sealing {
    /// Makes the ends of all logs durable in the place of those before.
    ///
    /// # Errors
    /// It is not known whether they are durable. It is not called again then, and no log goes on
    /// until the device starts again. Clients learn no more than that: the device reports the cause
    /// to its operator.
    fn seal(&mut self, ends: &[(LogId, End)]) -> io::Result<()>;
}

/// The logs of a device.
pub struct Logs {
    logs: [Option<Log>; LOGS_MAX],
    /// Without one the logs end with the process.
    sealing: Option<Box<dyn Sealing + Send>>,
    is_stopped: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self { logs: [None; LOGS_MAX], sealing: None, is_stopped: false }
    }
}

#[derive(Clone, Copy)]
struct Log {
    id: LogId,
    sealed: End,
    appended: End,
    /// The last entry, if it was appended since the device's start.
    last: Option<Statement>,
}

impl Logs {
    /// Logs with the ends that were sealed last.
    ///
    /// # Errors
    /// [`Misuse::Full`] for more than [`LOGS_MAX`] logs.
    pub fn new(
        ends: &[(LogId, End)],
        sealing: Option<Box<dyn Sealing + Send>>,
    ) -> Result<Self, Misuse> {
        let mut all = Self { sealing, ..Self::default() };
        ends.iter().try_for_each(|(log, end)| all.restore(*log, *end))?;
        Ok(all)
    }

    /// Takes `end` for the sealed end of a log.
    ///
    /// # Errors
    /// [`Misuse::Full`].
    pub fn restore(&mut self, log: LogId, end: End) -> Result<(), Misuse> {
        let slot = self.slot(log)?;
        *slot = Some(Log { id: log, sealed: end, appended: end, last: None });
        Ok(())
    }

    /// The sealed end of a log by its place, from 0; nothing behind the last one.
    #[must_use]
    pub fn at(&self, place: u32) -> Option<(LogId, End)> {
        let known = self.logs.iter().flatten();
        known.map(|log| (log.id, log.sealed)).nth(place as usize)
    }

    /// Whether a statement is the next one of a log.
    ///
    /// # Errors
    /// [`LogMisuse::Stopped`], [`LogMisuse::NotNext`], [`Misuse::Full`].
    pub(crate) fn judge(&mut self, log: LogId, statement: &Statement) -> Result<(), DeviceError> {
        self.judge_running()?;
        let appended = self.slot(log)?.map_or_else(End::default, |it| it.appended);
        let is_next = appended.sequence.checked_add(1) == Some(statement.sequence)
            && statement.previous == appended.digest;
        if is_next { Ok(()) } else { Err(LogMisuse::NotNext.into()) }
    }

    /// Appends a statement that was judged and attested.
    pub(crate) fn push(&mut self, log: LogId, statement: &Statement) -> Result<(), DeviceError> {
        let slot = self.slot(log)?;
        let sealed = slot.map_or_else(End::default, |it| it.sealed);
        let (appended, last) = (statement.end(), Some(*statement));
        *slot = Some(Log { id: log, sealed, appended, last });
        Ok(())
    }

    /// Forgets what was appended and not sealed.
    ///
    /// # Errors
    /// [`LogMisuse::Stopped`].
    pub(crate) fn discard(&mut self) -> Result<(), DeviceError> {
        self.judge_running()?;
        for slot in &mut self.logs {
            match slot {
                Some(log) if log.sealed == End::default() => *slot = None,
                Some(log) if log.sealed != log.appended => {
                    *log = Log { appended: log.sealed, last: None, ..*log };
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Seals logs, each if its last entry is the one that is named. All are durable together.
    ///
    /// # Errors
    /// [`LogMisuse::Stopped`], [`LogMisuse::NotNext`].
    pub(crate) fn seal(&mut self, named: &[(LogId, End)]) -> Result<(), DeviceError> {
        self.judge_running()?;
        let mut after = self.logs;
        for (log, end) in named {
            let found = after.iter_mut().flatten().find(|it| it.id == *log);
            let found = found.filter(|it| it.appended == *end).ok_or(LogMisuse::NotNext)?;
            found.sealed = *end;
        }
        let ends_of = |logs: &[Option<Log>]| -> Vec<_> {
            let sealed = logs.iter().flatten().map(|it| (it.id, it.sealed));
            sealed.filter(|(_, end)| *end != End::default()).collect()
        };
        let ends = ends_of(&after);
        if ends == ends_of(&self.logs) {
            return Ok(());
        }
        if let Some(sealing) = &mut self.sealing {
            self.is_stopped = true;
            if sealing.seal(&ends).is_err() {
                return Err(LogMisuse::Stopped.into());
            }
            self.is_stopped = false;
        }
        self.logs = after;
        Ok(())
    }

    /// The last entry of a log that is sealed up to it.
    ///
    /// # Errors
    /// [`LogMisuse::Stopped`], [`LogMisuse::NotSealed`].
    pub(crate) fn sealed(&self, log: LogId) -> Result<Statement, DeviceError> {
        self.judge_running()?;
        let found = self.logs.iter().flatten().find(|it| it.id == log);
        let sealed = found.filter(|it| it.sealed == it.appended).and_then(|it| it.last);
        Ok(sealed.ok_or(LogMisuse::NotSealed)?)
    }

    fn judge_running(&self) -> Result<(), LogMisuse> {
        if self.is_stopped { Err(LogMisuse::Stopped) } else { Ok(()) }
    }

    /// The place of a log, or a free one.
    fn slot(&mut self, log: LogId) -> Result<&mut Option<Log>, Misuse> {
        let place = self.logs.iter().position(|slot| slot.is_some_and(|it| it.id == log));
        let place = place.or_else(|| self.logs.iter().position(Option::is_none));
        place.and_then(|place| self.logs.get_mut(place)).ok_or(Misuse::Full)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::statement::EntryKind;

    const LOG: LogId = LogId(3);

    fn next(end: End, text: u8) -> Statement {
        let (kind, sequence) = (EntryKind::Data, end.sequence + 1);
        Statement { kind, sequence, context_hash: [text; 32], previous: end.digest }
    }

    fn append(logs: &mut Logs, statement: &Statement) -> Result<(), DeviceError> {
        logs.judge(LOG, statement)?;
        logs.push(LOG, statement)
    }

    fn misuse<T>(result: Result<T, DeviceError>) -> LogMisuse {
        match result {
            Err(DeviceError::Log(misuse)) => misuse,
            _ => panic!("no misuse of logs"),
        }
    }

    #[test]
    fn a_log_takes_its_next_entry_alone() {
        let mut logs = Logs::default();
        let first = next(End::default(), 1);
        append(&mut logs, &first).unwrap();
        let second = next(first.end(), 2);
        let wrong =
            [first, Statement { sequence: 3, ..second }, Statement { previous: [9; 32], ..second }];
        for wrong in wrong {
            assert_eq!(misuse(append(&mut logs, &wrong)), LogMisuse::NotNext);
        }
        append(&mut logs, &second).unwrap();
    }

    #[test]
    fn an_entry_is_signed_only_once_its_log_is_sealed_up_to_it() {
        let mut logs = Logs::default();
        let first = next(End::default(), 1);
        append(&mut logs, &first).unwrap();
        assert_eq!(misuse(logs.sealed(LOG)), LogMisuse::NotSealed);
        let other = next(End::default(), 2);
        assert_eq!(misuse(logs.seal(&[(LOG, other.end())])), LogMisuse::NotNext);
        logs.seal(&[(LOG, first.end())]).unwrap();
        assert_eq!(logs.sealed(LOG).unwrap(), first);
        append(&mut logs, &next(first.end(), 2)).unwrap();
        assert_eq!(misuse(logs.sealed(LOG)), LogMisuse::NotSealed);
    }

    #[test]
    fn a_log_goes_on_from_its_sealed_end_when_the_rest_is_discarded() {
        let mut logs = Logs::default();
        let first = next(End::default(), 1);
        append(&mut logs, &first).unwrap();
        logs.seal(&[(LOG, first.end())]).unwrap();
        append(&mut logs, &next(first.end(), 2)).unwrap();
        logs.discard().unwrap();
        assert_eq!(logs.at(0), Some((LOG, first.end())));
        assert_eq!(misuse(append(&mut logs, &next(End::default(), 3))), LogMisuse::NotNext);
        append(&mut logs, &next(first.end(), 3)).unwrap();
    }

    struct Broken;

    impl Sealing for Broken {
        fn seal(&mut self, _: &[(LogId, End)]) -> io::Result<()> {
            Err(io::ErrorKind::Other.into())
        }
    }

    #[test]
    fn nothing_goes_on_after_a_sealing_that_failed() {
        let mut logs = Logs::new(&[], Some(Box::new(Broken))).unwrap();
        let first = next(End::default(), 1);
        append(&mut logs, &first).unwrap();
        assert_eq!(misuse(logs.seal(&[(LOG, first.end())])), LogMisuse::Stopped);
        assert_eq!(misuse(logs.seal(&[(LOG, first.end())])), LogMisuse::Stopped);
        assert_eq!(misuse(append(&mut logs, &next(first.end(), 2))), LogMisuse::Stopped);
        assert_eq!(misuse(logs.discard()), LogMisuse::Stopped);
        assert_eq!(misuse(logs.sealed(LOG)), LogMisuse::Stopped);
    }

    #[test]
    fn a_log_without_a_place_is_refused() {
        let mut logs = Logs::default();
        for log in 0..LOGS_MAX as u32 {
            logs.restore(LogId(log), next(End::default(), 1).end()).unwrap();
        }
        let refused = logs.judge(LogId(64), &next(End::default(), 1));
        assert!(matches!(refused, Err(DeviceError::Misuse(Misuse::Full))));
    }
}
