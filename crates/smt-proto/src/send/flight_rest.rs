// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams of a handshake's flight that leave in further batches, since the carrier takes fewer
//! at once.
//!
//! A flight is written whole, and at most one is cut at a time: its rest leaves before anything
//! else is written.

use alloc::vec::Vec;

use smt_carrier::{Path, Transmit};

use super::batch::{BatchLimits, DatagramBatch};
use super::buffer::TransmitBuffer;

/// The rest of a flight.
#[derive(Debug)]
pub(crate) struct FlightRest {
    path: Path,
    segment_size: usize,
    bytes: Vec<u8>,
    /// Bytes that have left.
    left: usize,
}

impl FlightRest {
    /// Takes the datagrams off a batch with a flight that are beyond these limits.
    pub(crate) fn cut_off(
        path: Path,
        limits: BatchLimits,
        batch: &mut DatagramBatch<'_>,
    ) -> Option<Self> {
        let segment_size = batch.segment_size();
        let most = bytes_most(limits, segment_size);
        let bytes = batch.bytes.get(most..)?.to_vec();
        batch.bytes.truncate(most);
        (!bytes.is_empty()).then_some(Self { path, segment_size, bytes, left: 0 })
    }

    /// Writes the next of the datagrams, as many as these limits permit.
    pub(crate) fn write(&mut self, limits: BatchLimits, buffer: &mut TransmitBuffer) -> Transmit {
        let rest = self.bytes.get(self.left..).unwrap_or_default();
        let count = rest.len().min(bytes_most(limits, self.segment_size));
        buffer.clear();
        buffer.append(rest.get(..count).unwrap_or_default());
        self.left += count;
        Transmit::new(self.path, self.segment_size.min(count))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left >= self.bytes.len()
    }
}

/// Bytes of the datagrams of this size that leave together.
fn bytes_most(limits: BatchLimits, segment_size: usize) -> usize {
    let by_bytes = limits.bytes / segment_size.max(1);
    by_bytes.clamp(1, limits.segments.max(1)) * segment_size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_leaves_in_batches_that_the_carrier_takes() {
        let limits = |segments, bytes| BatchLimits { segments, bytes, cuts_streams: false };
        for (limits, counts) in [
            (limits(2, 65_507), &[2, 2, 1][..]),
            (limits(1, 65_507), &[1; 5]),
            (limits(64, 3_700), &[3, 2]),
            (limits(64, 10), &[1; 5]),
            (limits(64, 65_507), &[5]),
        ] {
            let mut bytes = TransmitBuffer::default();
            let mut batch = DatagramBatch::new(&mut bytes, limits);
            for byte in 1..=5 {
                let length = if byte == 5 { 700 } else { 1_200 };
                batch.bytes.grow(length).fill(byte);
                batch.close_datagram(length);
            }
            let path = Path::to("192.0.2.7:9".parse().unwrap());
            let mut rest = FlightRest::cut_off(path, limits, &mut batch);
            let mut left: Vec<Vec<u8>> = vec![bytes.to_vec()];
            while let Some(flight) = rest.as_mut().filter(|rest| !rest.is_empty()) {
                let transmit = flight.write(limits, &mut bytes);
                assert!(transmit.segment_size <= 1_200);
                left.push(bytes.to_vec());
            }
            let found: Vec<_> = left.iter().map(|batch| batch.chunks(1_200).len()).collect();
            assert_eq!(found, counts, "{limits:?}");
            let whole = left.concat();
            assert_eq!(whole.len(), 4 * 1_200 + 700);
            assert!(whole.is_sorted());
        }
    }
}
