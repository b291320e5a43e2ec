// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists of entries of one size, as bytes of a packet or as a slice to be sent.
//!
//! One type for both, so that a parsed list and one to be sent are the same struct. Reading copies
//! an entry at a time; nothing is allocated.

use core::fmt;
use core::iter::FusedIterator;

/// An entry of a list.
pub trait Entry: Sized + Copy {
    /// Bytes of an entry.
    const LEN: usize;

    /// Reads an entry.
    ///
    /// # Panics
    /// If `bytes` is shorter than `LEN`.
    fn read(bytes: &[u8]) -> Self;

    /// Writes an entry into the first `LEN` bytes of `out`, reserved bytes as zero.
    ///
    /// # Panics
    /// If `out` is shorter than `LEN`.
    fn write(&self, out: &mut [u8]);
}

/// A list of entries. Two lists are equal if their entries are.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Repr<'a, T>);

#[derive(Clone, Copy)]
enum Repr<'a, T> {
    /// A multiple of `T::LEN` bytes.
    Bytes(&'a [u8]),
    Entries(&'a [T]),
}

impl<'a, T: Entry> List<'a, T> {
    /// A list to be sent, in constants too.
    pub const fn from_entries(entries: &'a [T]) -> Self {
        Self(Repr::Entries(entries))
    }

    /// A view of bytes; `None` if they are not a whole number of entries.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(T::LEN).then_some(Self(Repr::Bytes(bytes)))
    }

    /// Entries.
    pub fn len(&self) -> usize {
        match self.0 {
            Repr::Bytes(bytes) => bytes.len() / T::LEN,
            Repr::Entries(entries) => entries.len(),
        }
    }

    /// Whether there is none. A parsed control packet has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, in order.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter(self.0)
    }

    /// Bytes on the wire.
    pub(crate) fn bytes_len(&self) -> usize {
        self.len() * T::LEN
    }

    /// Writes the entries one after the other.
    pub(crate) fn write(&self, out: &mut [u8]) {
        match self.0 {
            Repr::Bytes(bytes) => out[..bytes.len()].copy_from_slice(bytes),
            Repr::Entries(entries) => {
                for (entry, place) in entries.iter().zip(out.chunks_exact_mut(T::LEN)) {
                    entry.write(place);
                }
            }
        }
    }
}

impl<'a, T: Entry> From<&'a [T]> for List<'a, T> {
    fn from(entries: &'a [T]) -> Self {
        Self::from_entries(entries)
    }
}

impl<'a, T: Entry, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(entries: &'a [T; N]) -> Self {
        Self::from_entries(entries)
    }
}

impl<T: Entry + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Entry + Eq> Eq for List<'_, T> {}

impl<T: Entry + fmt::Debug> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Entry> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Entry> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// The entries of a [`List`].
#[derive(Clone)]
pub struct ListIter<'a, T>(Repr<'a, T>);

impl<T: Entry> Iterator for ListIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Repr::Bytes(bytes) => {
                let (entry, rest) = bytes.split_at_checked(T::LEN)?;
                *bytes = rest;
                Some(T::read(entry))
            }
            Repr::Entries(entries) => {
                let (entry, rest) = entries.split_first()?;
                *entries = rest;
                Some(*entry)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = List(self.0).len();
        (len, Some(len))
    }
}

impl<T: Entry> ExactSizeIterator for ListIter<'_, T> {}
impl<T: Entry> FusedIterator for ListIter<'_, T> {}

impl<T: Entry + fmt::Debug> fmt::Debug for ListIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        List(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageId;

    const IDS: [MessageId; 2] = [MessageId(1), MessageId(0x0203)];
    const BYTES: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3];

    mod from_bytes {
        use super::*;

        #[test]
        fn is_the_same_list_as_the_entries() {
            let parsed = List::<MessageId>::from_bytes(&BYTES).unwrap();
            assert_eq!(parsed, List::from(&IDS));
            assert_ne!(parsed, List::from(&IDS[..1]));
            assert_eq!(parsed.len(), 2);
        }

        #[test]
        fn part_of_an_entry_is_refused() {
            assert!(List::<MessageId>::from_bytes(&BYTES[..15]).is_none());
        }
    }

    mod iter {
        use super::*;

        #[test]
        fn knows_how_many_are_left() {
            let mut iter = List::<MessageId>::from_bytes(&BYTES).unwrap().iter();
            assert_eq!(iter.len(), 2);
            assert_eq!(iter.next(), Some(MessageId(1)));
            assert_eq!(iter.len(), 1);
            assert_eq!(iter.next(), Some(MessageId(0x0203)));
            assert_eq!(iter.next(), None);
        }
    }

    mod write {
        use super::*;

        #[test]
        fn both_forms_give_the_same_bytes() {
            for list in [List::from(&IDS), List::from_bytes(&BYTES).unwrap()] {
                let mut out = [0xFF; 16];
                list.write(&mut out);
                assert_eq!(out, BYTES);
            }
        }
    }
}
