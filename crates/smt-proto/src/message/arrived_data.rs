// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A DATA packet as it arrives, with the records in it that the carrier says it has opened.
//!
//! Nothing in the packet is to be believed before a record of it opens. The carrier's word is
//! another matter: it comes from this host's device, and is held against this side's own keys and
//! numbers where the record is taken (`incoming`).

use alloc::vec::Vec;

use smt_carrier::Opened;
use smt_wire::{Data, DataHeader};

/// A DATA packet of a session.
#[derive(Clone, Copy)]
pub(crate) struct ArrivedData<'a> {
    pub(crate) header: DataHeader,
    pub(crate) payload: &'a [u8],
    pub(crate) opened: OpenedRecords<'a>,
}

impl<'a> ArrivedData<'a> {
    /// A packet in bytes of which the carrier has opened these.
    pub(crate) fn new(data: &Data<'a>, packet: OpenedRecords<'a>) -> Self {
        Self { header: data.header, payload: data.payload, opened: packet.behind(DataHeader::LEN) }
    }
}

/// The records that the carrier has opened, as seen from a place in the bytes of their arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenedRecords<'a> {
    records: &'a [Opened],
    from: usize,
}

impl<'a> OpenedRecords<'a> {
    /// Records whose places count from here.
    pub(crate) fn new(records: &'a [Opened]) -> Self {
        Self { records, from: 0 }
    }

    /// The same, seen from so many bytes behind.
    pub(crate) fn behind(self, bytes: usize) -> Self {
        Self { from: self.from + bytes, ..self }
    }

    /// The opened record that begins at this place.
    pub(crate) fn at(&self, place: usize) -> Option<Opened> {
        let at = self.from + place;
        let mut records = self.records.iter();
        records.find(|opened| opened.at as usize == at).copied()
    }

    /// Those of the first bytes, with places that count from here.
    pub(crate) fn of_first(&self, bytes: usize) -> Vec<Opened> {
        let place = |opened: &Opened| (opened.at as usize).checked_sub(self.from);
        let inside = |opened: &&Opened| place(opened).is_some_and(|at| at < bytes);
        let moved = |opened: &Opened| Opened { at: opened.at - self.from as u32, ..*opened };
        self.records.iter().filter(inside).map(moved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_carrier::KeyHandle;

    fn opened(at: u32) -> Opened {
        Opened { at, key: KeyHandle(1), number: u64::from(at) }
    }

    #[test]
    fn a_record_is_found_from_each_place_before_it() {
        let records = [opened(40), opened(70)];
        let seen = OpenedRecords::new(&records).behind(36);
        assert_eq!(seen.at(4), Some(opened(40)));
        assert_eq!(seen.behind(4).at(30), Some(opened(70)));
        assert_eq!(seen.at(5), None);
    }

    #[test]
    fn a_part_has_its_own_records_alone() {
        let records = [opened(40), opened(70), opened(100)];
        let part = OpenedRecords::new(&records).behind(60).of_first(40);
        let places: Vec<u32> = part.iter().map(|opened| opened.at).collect();
        assert_eq!(places, [10]);
        assert_eq!(part[0].number, 70);
    }
}
