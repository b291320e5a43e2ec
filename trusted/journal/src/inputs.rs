// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inputs of a state machine, each of which is on the disk before it is taken.

use std::collections::BTreeSet;

use crate::disk::Disk;
use crate::error::JournalError;
use crate::journal::Journal;

/// A hash of an input, by which copies of it are known.
pub type InputHash = [u8; 32];

/// Inputs that wait for the disk.
#[derive(Debug)]
pub struct Inputs<I, D> {
    journal: Journal<D>,
    waiting: Vec<I>,
    /// The hashes of those that wait: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<InputHash>,
}

impl<I, D: Disk> Inputs<I, D> {
    /// No input, and the log of those before.
    #[must_use]
    pub fn new(journal: Journal<D>) -> Self {
        Self { journal, waiting: Vec::new(), hashes: BTreeSet::new() }
    }

    /// Has an input wait, and its record with it. False if a copy of it waits already, or the log
    /// has no room for it before the next commit: it is lost as on a network.
    pub fn put(&mut self, hash: InputHash, record: &[u8], input: I) -> bool {
        let is_taken = self.journal.has_room(record.len()) && self.hashes.insert(hash);
        if is_taken {
            self.put_again(record, input);
        }
        is_taken
    }

    /// Has an input wait that may come more than once, such as time, and its short record with it.
    pub fn put_again(&mut self, record: &[u8], input: I) {
        self.journal.append(record);
        self.waiting.push(input);
    }

    /// Has an input wait of which the log needs nothing.
    pub fn put_without_record(&mut self, input: I) {
        self.waiting.push(input);
    }

    /// Appends a record of something else than an input, which is durable with the next commit.
    pub fn note(&mut self, record: &[u8]) {
        self.journal.append(record);
    }

    /// Whether no input waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes the inputs durable, and hands them out in order.
    ///
    /// # Errors
    /// Those of [`Journal::commit`]. Nothing may be taken then.
    pub fn commit(&mut self) -> Result<Vec<I>, JournalError> {
        self.journal.commit()?;
        Ok(self.take())
    }

    /// Hands out the inputs, durable or not.
    fn take(&mut self) -> Vec<I> {
        self.hashes.clear();
        std::mem::take(&mut self.waiting)
    }

    /// The inputs before they are durable, for searches that look for what follows from that.
    #[cfg(feature = "model")]
    pub fn take_before_commit(&mut self) -> Vec<I> {
        self.take()
    }

    /// The log.
    #[must_use]
    pub fn journal(&self) -> &Journal<D> {
        &self.journal
    }

    /// The log, for tests that make its disk fail.
    #[cfg(feature = "model")]
    pub fn journal_mut(&mut self) -> &mut Journal<D> {
        &mut self.journal
    }

    /// Gives the disk back, without what was not committed.
    #[must_use]
    pub fn into_disk(self) -> D {
        self.journal.into_disk()
    }
}

#[cfg(all(test, feature = "model"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::model::ModelDisk;

    fn inputs() -> Inputs<u8, ModelDisk> {
        Inputs::new(Journal::open(ModelDisk::default(), b"owner", |_| ()).unwrap())
    }

    #[test]
    fn inputs_are_handed_out_only_after_the_disk_has_them() {
        let mut inputs = inputs();
        assert!(inputs.put([1; 32], b"one", 1));
        inputs.put_without_record(2);
        inputs.put_again(b"tick", 3);
        inputs.journal_mut().disk_mut().fails_after = Some(0);
        assert!(inputs.commit().is_err());
        assert!(matches!(inputs.commit(), Err(JournalError::Stopped)));
        assert!(!inputs.is_empty());
    }

    #[test]
    fn records_of_inputs_are_in_the_log_once_and_in_order() {
        let mut inputs = inputs();
        assert!(inputs.put([1; 32], b"one", 1));
        assert!(!inputs.put([1; 32], b"one", 1), "it waits");
        inputs.put_without_record(2);
        inputs.put_again(b"tick", 3);
        assert_eq!(inputs.commit().unwrap(), [1, 2, 3]);
        assert!(inputs.put([1; 32], b"one", 4), "it waits no more");
        inputs.note(b"note");
        assert_eq!(inputs.commit().unwrap(), [4]);
        let mut records = Vec::new();
        Journal::open(inputs.into_disk(), b"owner", |it| records.push(it.to_vec())).unwrap();
        assert_eq!(records, [&b"one"[..], b"tick", b"one", b"note"]);
    }
}
