// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where entries are kept. Nothing here is trusted.

use std::collections::BTreeMap;

use smt_device_client::LogId;

use crate::entry::Entry;
use crate::error::A2mError;

/// Storage of entries.
pub trait Storage {
    /// Hands out all entries in the order in which they were appended.
    ///
    /// # Errors
    /// Those of the storage, and the first one of `each`.
    fn replay(&self, each: &mut dyn FnMut(Entry) -> Result<(), A2mError>) -> Result<(), A2mError>;

    /// Appends an entry. It may be lost until it is committed.
    ///
    /// # Errors
    /// Those of the storage.
    fn append(&mut self, entry: &Entry) -> Result<(), A2mError>;

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// Those of the storage.
    fn commit(&mut self) -> Result<(), A2mError>;

    /// Removes all entries of each log behind a sequence number, 0 for all of a log that `ends`
    /// does not have. They were appended last, after all that stay.
    ///
    /// # Errors
    /// [`A2mError::Misplaced`] if an entry that stays is behind one that goes; those of the
    /// storage.
    fn cut(&mut self, ends: &BTreeMap<LogId, u64>) -> Result<(), A2mError>;

    /// The entry of a log with a sequence number, or nothing.
    ///
    /// # Errors
    /// Those of the storage.
    fn read(&self, log: LogId, sequence: u64) -> Result<Option<Entry>, A2mError>;

    /// Lets go of all entries of a log before `head`.
    fn forget(&mut self, log: LogId, head: u64);
}

/// Storage in memory, which ends with its process.
#[derive(Debug, Default)]
pub struct Memory {
    logs: BTreeMap<LogId, BTreeMap<u64, Entry>>,
}

impl Memory {
    /// An entry, for a host that alters it.
    pub fn entry_mut(&mut self, log: LogId, sequence: u64) -> Option<&mut Entry> {
        self.logs.get_mut(&log)?.get_mut(&sequence)
    }
}

impl Storage for Memory {
    fn replay(&self, each: &mut dyn FnMut(Entry) -> Result<(), A2mError>) -> Result<(), A2mError> {
        self.logs.values().flat_map(BTreeMap::values).cloned().try_for_each(each)
    }

    fn append(&mut self, entry: &Entry) -> Result<(), A2mError> {
        let log = self.logs.entry(entry.log).or_default();
        log.insert(entry.statement.sequence, entry.clone());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), A2mError> {
        Ok(())
    }

    fn cut(&mut self, ends: &BTreeMap<LogId, u64>) -> Result<(), A2mError> {
        for (log, entries) in &mut self.logs {
            let end = ends.get(log).copied().unwrap_or_default();
            entries.retain(|sequence, _| *sequence <= end);
        }
        self.logs.retain(|_, entries| !entries.is_empty());
        Ok(())
    }

    fn read(&self, log: LogId, sequence: u64) -> Result<Option<Entry>, A2mError> {
        Ok(self.logs.get(&log).and_then(|log| log.get(&sequence)).cloned())
    }

    fn forget(&mut self, log: LogId, head: u64) {
        if let Some(log) = self.logs.get_mut(&log) {
            *log = log.split_off(&head);
        }
    }
}
