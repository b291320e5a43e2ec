// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections by their ids: a cuckoo hash table of a fixed size.
//!
//! An id may lie in one of two buckets of four places; one that finds both full moves another one
//! to its other bucket. A packet thus costs two reads at most, whatever the table holds. Buckets
//! are chosen by a keyed hash (SipHash-2-4): who does not know the key cannot choose ids that
//! collide.

use alloc::vec::Vec;
use core::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::Handle;

/// Bytes of the longest connection id (RFC 9000 §17.2).
pub const ID_BYTES_MAX: usize = 20;

/// A connection id, with its length.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct ConnectionId {
    length: u8,
    bytes: [u8; ID_BYTES_MAX],
}

impl ConnectionId {
    /// `None` if there are more than [`ID_BYTES_MAX`] bytes.
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; ID_BYTES_MAX];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        let length = u8::try_from(id.len()).ok()?;
        Some(Self { length, bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct IdTable {
    buckets: Vec<[Option<(ConnectionId, Handle)>; PLACES]>,
    hash_key: [u8; 16],
    count: usize,
}

/// An id that cannot be added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NotAdded {
    InUse,
    NoRoom,
}

impl IdTable {
    /// A table of at least so many places, a power of two of buckets.
    pub(super) fn new(places: usize, hash_key: [u8; 16]) -> Self {
        let buckets = places.div_ceil(PLACES).next_power_of_two().max(2);
        Self { buckets: alloc::vec![[None; PLACES]; buckets], hash_key, count: 0 }
    }

    pub(super) fn get(&self, id: &ConnectionId) -> Option<Handle> {
        let places = self.buckets_of(id).into_iter();
        let mut entries = places.flat_map(|bucket| self.buckets[bucket].iter().flatten());
        entries.find(|(of, _)| of == id).map(|(_, handle)| *handle)
    }

    /// Adds an id. One that finds no room leaves the table as it was.
    pub(super) fn add(&mut self, id: ConnectionId, handle: Handle) -> Result<(), NotAdded> {
        if self.get(&id).is_some() {
            return Err(NotAdded::InUse);
        }
        let mut moves = [(0, 0); MOVES_MAX];
        let mut carried = (id, handle);
        for step in 0..MOVES_MAX {
            let [one, other] = self.buckets_of(&carried.0);
            if self.put(one, carried) || self.put(other, carried) {
                self.count += 1;
                return Ok(());
            }
            // The one that has to move: in the bucket where the carried one did not come from.
            let bucket = match step {
                0 => one,
                _ if moves[step - 1].0 == one => other,
                _ => one,
            };
            let place = step % PLACES;
            let moved = self.buckets[bucket][place].replace(carried);
            moves[step] = (bucket, place);
            carried = moved.unwrap_or(carried);
        }
        for (bucket, place) in moves.into_iter().rev() {
            carried = self.buckets[bucket][place].replace(carried).unwrap_or(carried);
        }
        Err(NotAdded::NoRoom)
    }

    /// Whether there was such an id.
    pub(super) fn remove(&mut self, id: &ConnectionId) -> bool {
        for bucket in self.buckets_of(id) {
            let mut places = self.buckets[bucket].iter_mut();
            let place = places.find(|place| place.is_some_and(|(of, _)| of == *id));
            if let Some(place) = place {
                *place = None;
                self.count -= 1;
                return true;
            }
        }
        false
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn put(&mut self, bucket: usize, entry: (ConnectionId, Handle)) -> bool {
        let free = self.buckets[bucket].iter_mut().find(|place| place.is_none());
        free.map(|place| *place = Some(entry)).is_some()
    }

    fn buckets_of(&self, id: &ConnectionId) -> [usize; 2] {
        let mut hasher = SipHasher24::new_with_key(&self.hash_key);
        hasher.write(id.bytes());
        let hash = hasher.finish();
        let mask = self.buckets.len() - 1;
        let one = hash as usize & mask;
        // The second is never the first.
        let distance = (hash >> 32) as usize | 1;
        [one, (one + distance) & mask]
    }
}

/// Places of a bucket.
const PLACES: usize = 4;
/// Ids that may move for a new one. At 95 % of the places few new ids need more.
const MOVES_MAX: usize = 64;

/// Bytes of the device's memory for one place of the table.
pub const BYTES_OF_AN_ID: usize = size_of::<Option<(ConnectionId, Handle)>>();

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn id(number: u32) -> ConnectionId {
        ConnectionId::new(&number.to_be_bytes()).unwrap()
    }

    fn handle(number: u32) -> Handle {
        Handle { index: number, life: 0 }
    }

    #[test]
    fn nine_tenths_of_the_places_take_ids_and_all_are_found() {
        let mut table = IdTable::new(4_096, [7; 16]);
        for number in 0..3_686 {
            assert_eq!(table.add(id(number), handle(number)), Ok(()), "{number}");
        }
        for number in 0..3_686 {
            assert_eq!(table.get(&id(number)), Some(handle(number)));
        }
        assert_eq!(table.get(&id(9_999)), None);
    }

    #[test]
    fn an_id_that_finds_no_room_displaces_none() {
        let mut table = IdTable::new(64, [3; 16]);
        let mut taken = Vec::new();
        for number in 0..200 {
            match table.add(id(number), handle(number)) {
                Ok(()) => taken.push(number),
                Err(error) => assert_eq!(error, NotAdded::NoRoom),
            }
            for taken in &taken {
                assert_eq!(table.get(&id(*taken)), Some(handle(*taken)));
            }
        }
        assert_eq!(table.len(), taken.len());
        assert!((50..=64).contains(&taken.len()), "{}", taken.len());
    }

    #[test]
    fn ids_that_differ_in_length_alone_are_two() {
        let mut table = IdTable::new(16, [1; 16]);
        let (short, long) = (ConnectionId::new(&[1]).unwrap(), ConnectionId::new(&[1, 0]).unwrap());
        table.add(short, handle(1)).unwrap();
        table.add(long, handle(2)).unwrap();
        assert_eq!(table.add(short, handle(3)), Err(NotAdded::InUse));
        assert!(table.remove(&short) && !table.remove(&short));
        assert_eq!((table.get(&short), table.get(&long)), (None, Some(handle(2))));
        assert!(ConnectionId::new(&[0; 21]).is_none());
    }
}
