// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records that messages which have begun have yet to seal: the rest of a key is for those.

/// An upper bound of the records that messages which have begun have yet to seal.
///
/// The records of a message are added when it begins, and those that it seals are not taken off.
/// All are counted anew when they seem to be too many, and not at every write: a peer may let an
/// epoch last, and a look through 20,000 messages takes 86 us.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BegunRecords {
    records: u32,
    /// Records left of the key when they were counted; [`u32::MAX`], which no key has, if that was
    /// another key.
    left: u32,
}

impl BegunRecords {
    pub(super) fn counted(records: u64, left: u64) -> Self {
        Self {
            records: records.try_into().unwrap_or(u32::MAX),
            left: left.try_into().unwrap_or(u32::MAX),
        }
    }

    /// Whether nothing was sealed since they were counted: then it is what they still need, unless
    /// some have ended.
    pub(super) fn was_counted_at(&self, left: u64) -> bool {
        u64::from(self.left) == left
    }

    /// Notes that there is another key.
    pub(super) fn key_changed(&mut self) {
        self.left = u32::MAX;
    }

    /// Adds a message of `records` records that begins.
    pub(super) fn add(&mut self, records: u32) {
        self.records = self.records.saturating_add(records);
    }

    /// Whether the rest of a key is enough for this many more records.
    pub(super) fn leaves(&self, left: u64, records: u32) -> bool {
        u64::from(self.records) + u64::from(records) <= left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_begins_counts_until_all_are_counted_anew() {
        let mut begun = BegunRecords::counted(90, 500);
        assert!(begun.leaves(500, 410) && !begun.leaves(500, 411));
        begun.add(10);
        assert!(begun.leaves(500, 400) && !begun.leaves(500, 401));
        assert!(begun.was_counted_at(500) && !begun.was_counted_at(499));
        begun.key_changed();
        assert!(!begun.was_counted_at(500));
    }
}
