// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log of a node, as far back as a witness may ask for it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use smt_replica::Digest;

use crate::entry::Entry;

/// A tamper-evident log.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Log {
    /// The index of the entry before those that are kept.
    forgotten: u64,
    entries: VecDeque<Entry>,
    /// The digest of the last entry.
    head: Digest,
}

impl Log {
    pub(crate) fn last(&self) -> u64 {
        self.forgotten + self.entries.len() as u64
    }

    pub(crate) fn head(&self) -> Digest {
        self.head
    }

    /// Appends an entry, of which `retained` are kept.
    pub(crate) fn push(&mut self, entry: Entry, digest: Digest, retained: usize) {
        self.entries.push_back(entry);
        self.head = digest;
        let surplus = self.entries.len().saturating_sub(retained);
        self.forget(self.forgotten + surplus as u64);
    }

    /// Entries behind an index, at most so many; none if the first of them is not kept.
    pub(crate) fn after(&self, index: u64, most: usize) -> Vec<Entry> {
        let Some(skipped) = index.checked_sub(self.forgotten) else {
            return Vec::new();
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.entries.iter().skip(skipped).take(most).cloned().collect()
    }

    /// Forgets entries up to an index.
    pub(crate) fn forget(&mut self, index: u64) {
        while self.forgotten < index && self.entries.pop_front().is_some() {
            self.forgotten += 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Input;

    fn entry(number: u8) -> Entry {
        Entry { input: Input::Local(vec![number]), sent: Vec::new(), signature: [[0; 32]; 2] }
    }

    #[test]
    fn a_log_keeps_its_last_entries_and_gives_none_with_a_gap() {
        let mut log = Log::default();
        (1..=10).for_each(|it| log.push(entry(it), [it; 32], 6));
        assert_eq!((log.last(), log.kept(), log.head()), (10, 6, [10; 32]));
        assert_eq!(log.after(4, 2), [entry(5), entry(6)]);
        assert_eq!(log.after(3, 2), []);
        assert_eq!(log.after(10, 2), []);
        assert_eq!(log.after(u64::MAX, 2), []);
        log.forget(8);
        assert_eq!((log.last(), log.kept()), (10, 2));
        assert_eq!(log.after(8, 9), [entry(9), entry(10)]);
        log.forget(u64::MAX);
        assert_eq!((log.last(), log.kept()), (10, 0));
        log.push(entry(11), [11; 32], 6);
        assert_eq!(log.after(10, 9), [entry(11)]);
    }
}
