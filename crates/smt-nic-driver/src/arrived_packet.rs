// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet that the device has handed over, and the records in it that the device has opened.

use std::ops::Deref;

use smt_carrier::{KeyHandle, Opened};
use smt_nic::receive::queue::OpenedPlaces;
use smt_nic::tls::receive::OPENINGS_MAX;

/// A packet from a receive queue, from its IP header on.
#[derive(Debug)]
pub struct ArrivedPacket<'a> {
    /// The bytes. Records that were opened have their plaintext in them.
    pub bytes: &'a mut [u8],
    /// The records that were opened, if any.
    pub opened: Option<OpenedPacket>,
    /// The SPI of the association of PSP under which the device has opened all of it.
    pub spi: Option<u32>,
}

/// The records of a packet that the device has opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenedPacket {
    key: KeyHandle,
    places: OpenedPlaces,
}

impl OpenedPacket {
    pub(crate) fn new(key: KeyHandle, places: OpenedPlaces) -> Self {
        Self { key, places }
    }

    /// The records, by their places in the datagram that begins at this place of the packet.
    #[must_use]
    pub fn records(&self, datagram_at: usize) -> OpenedRecords {
        let OpenedPlaces { number, first, second, .. } = self.places;
        let mut records = OpenedRecords::none(self.key);
        for (place, number) in [Some(first), second].into_iter().flatten().zip(number..) {
            if let Some(at) = usize::from(place).checked_sub(datagram_at) {
                records.push(at as u32, number);
            }
        }
        records
    }
}

/// The records of a datagram that the device has opened. They take no memory of their own: each
/// arrival has some.
#[derive(Clone, Copy, Debug)]
pub struct OpenedRecords {
    records: [Opened; OPENINGS_MAX],
    count: usize,
}

impl OpenedRecords {
    fn none(key: KeyHandle) -> Self {
        let none = Opened { at: 0, key, number: 0 };
        Self { records: [none; OPENINGS_MAX], count: 0 }
    }

    /// Appends a record, of which there are no more than places in a completion.
    fn push(&mut self, at: u32, number: u64) {
        let place = &mut self.records[self.count];
        (place.at, place.number) = (at, number);
        self.count += 1;
    }
}

/// The records, in the order in which they lie in the datagram.
impl Deref for OpenedRecords {
    type Target = [Opened];

    fn deref(&self) -> &[Opened] {
        &self.records[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_nic::descriptor::ContextId;

    /// A type that owns memory on the heap is not `Copy`.
    fn without_heap<T: Copy>(value: T) -> T {
        value
    }

    #[test]
    fn records_of_an_arrival_take_no_heap_and_lie_in_its_datagram() {
        let records = |first, second, at| {
            let places = OpenedPlaces { context: ContextId(1), number: 70, first, second };
            let records = without_heap(OpenedPacket::new(KeyHandle(3), places).records(at));
            let told = records.iter().map(|of| (of.at, of.key.0, of.number));
            told.collect::<Vec<_>>()
        };
        assert_eq!(records(64, Some(800), 28), [(36, 3, 70), (772, 3, 71)]);
        assert_eq!(records(64, None, 28), [(36, 3, 70)]);
        assert_eq!(records(20, Some(800), 28), [(772, 3, 71)], "before the datagram");
    }
}
