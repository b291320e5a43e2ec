// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions by name, in bounded memory: the newest come first, and the oldest make room.

use std::collections::{BTreeMap, BTreeSet};

/// Sessions that may be resumed.
pub(super) struct Store<V> {
    /// By the order in which they came.
    entries: BTreeMap<u64, (Vec<u8>, Entry<V>)>,
    by_name: BTreeSet<(Vec<u8>, u64)>,
    next: u64,
    bytes: usize,
    bytes_max: usize,
    of_name_max: usize,
}

/// A session.
pub(super) struct Entry<V> {
    pub(super) value: V,
    /// The second since 1970 from which on it is not resumed.
    pub(super) until: u64,
    /// Bytes of memory, without those of the store itself.
    pub(super) bytes: usize,
}

/// Where and when a session is put.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) name: &'a [u8],
    pub(super) now: u64,
}

impl<V> Store<V> {
    /// A store of so many bytes, with at most so many sessions of a name.
    pub(super) const fn new(bytes_max: usize, of_name_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_name: BTreeSet::new(),
            next: 0,
            bytes: 0,
            bytes_max,
            of_name_max,
        }
    }

    /// Keeps a session. The oldest of the name, then the oldest of all make room; one that has
    /// ended, or is larger than the store, is not kept.
    pub(super) fn put(&mut self, place: Place<'_>, mut entry: Entry<V>) {
        let name = place.name;
        entry.bytes += 2 * name.len() + ENTRY_BYTES;
        if entry.until <= place.now || entry.bytes > self.bytes_max {
            return;
        }
        while self.of_name(name).count() >= self.of_name_max {
            let Some(oldest) = self.of_name(name).next() else {
                return;
            };
            self.remove(oldest);
        }
        while self.bytes + entry.bytes > self.bytes_max
            && let Some((&oldest, _)) = self.entries.first_key_value()
        {
            self.remove(oldest);
        }
        let number = self.next;
        self.next += 1;
        self.bytes += entry.bytes;
        self.by_name.insert((name.to_vec(), number));
        self.entries.insert(number, (name.to_vec(), entry));
    }

    /// Takes the newest session of a name that has not ended at `now`, and when it ends.
    pub(super) fn take(&mut self, name: &[u8], now: u64) -> Option<(V, u64)> {
        loop {
            let newest = self.of_name(name).next_back()?;
            let entry = self.remove(newest)?;
            if entry.until > now {
                return Some((entry.value, entry.until));
            }
        }
    }

    fn of_name(&self, name: &[u8]) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let (first, last) = ((name.to_vec(), 0), (name.to_vec(), u64::MAX));
        self.by_name.range(first..=last).map(|(_, number)| *number)
    }

    fn remove(&mut self, number: u64) -> Option<Entry<V>> {
        let (name, entry) = self.entries.remove(&number)?;
        self.by_name.remove(&(name, number));
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

/// Bytes of an entry beside its value and its names: nodes of both trees, and what a session has
/// beside what is counted.
const ENTRY_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000;

    fn put(store: &mut Store<u32>, name: &[u8], value: u32, until: u64) {
        let entry = Entry { value, until, bytes: 100 };
        store.put(Place { name, now: NOW }, entry);
    }

    #[test]
    fn the_newest_session_of_a_name_comes_first_and_once() {
        let mut store = Store::new(10_000, 8);
        put(&mut store, b"a", 1, 2_000);
        put(&mut store, b"a", 2, 2_001);
        put(&mut store, b"b", 3, 2_000);
        assert_eq!(store.take(b"a", NOW), Some((2, 2_001)));
        assert_eq!(store.take(b"a", NOW), Some((1, 2_000)));
        assert_eq!(store.take(b"a", NOW), None);
        assert_eq!(store.take(b"", NOW), None);
        assert_eq!(store.take(b"b", NOW), Some((3, 2_000)));
        assert_eq!((store.bytes, store.by_name.len()), (0, 0));
    }

    #[test]
    fn a_session_is_not_taken_from_its_end_on() {
        let mut store = Store::new(10_000, 8);
        put(&mut store, b"a", 1, NOW);
        assert!(store.entries.is_empty(), "it has ended");
        put(&mut store, b"a", 2, NOW + 10);
        put(&mut store, b"a", 3, NOW + 1);
        assert_eq!(store.take(b"a", NOW + 1), Some((2, NOW + 10)));
        put(&mut store, b"a", 4, NOW + 10);
        assert_eq!(store.take(b"a", NOW + 10), None);
        assert_eq!(store.bytes, 0);
    }

    #[test]
    fn the_oldest_make_room_and_memory_stays_bounded() {
        let mut store = Store::new(10_000, 4);
        for number in 0..1_000_u32 {
            put(&mut store, &number.to_be_bytes(), number, 2_000);
            assert!(store.bytes <= 10_000);
            assert_eq!(store.entries.len(), store.by_name.len());
        }
        // 100 bytes, twice a name of 4, and what an entry takes.
        assert_eq!(store.entries.len(), 10_000 / (108 + ENTRY_BYTES));
        assert!(store.take(&900_u32.to_be_bytes(), NOW).is_none());
        assert!(store.take(&999_u32.to_be_bytes(), NOW).is_some());
        let too_large = Entry { value: 7, until: 2_000, bytes: 10_000 };
        let before = store.entries.len();
        let place = Place { name: b"large", now: NOW };
        store.put(place, too_large);
        assert_eq!(store.entries.len(), before);
    }

    #[test]
    fn a_name_has_a_bounded_number_of_sessions() {
        let mut store = Store::new(100_000, 4);
        put(&mut store, b"other", 7, 2_000);
        for number in 0..100 {
            put(&mut store, b"a", number, 2_000);
        }
        let of_name: Vec<_> =
            std::iter::from_fn(|| store.take(b"a", NOW).map(|(value, _)| value)).collect();
        assert_eq!(of_name, [99, 98, 97, 96]);
        assert!(store.take(b"other", NOW).is_some());
    }
}
