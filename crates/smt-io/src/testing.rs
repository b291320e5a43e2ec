// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carriers for tests that look at one batch at a time.

use crate::received::Received;
use smt_carrier::{Batch, Carrier, ReceiveError, SendError, Transmit, Wait};

/// A carrier whose batches are described beside their bytes.
pub(crate) trait Described: Carrier {
    fn send_bytes(&self, transmit: &Transmit, bytes: &[u8]) -> Result<(), SendError> {
        let batch = Batch::datagrams(transmit.path, transmit.segment_size, bytes);
        self.send(&batch.with_priority(transmit.priority))
    }

    /// The next batch, copied into `buffer`, which must be large enough; `None` if there is not
    /// just one.
    fn receive_into(
        &self,
        buffer: &mut [u8],
        wait: Wait,
    ) -> Result<Option<Received>, ReceiveError> {
        let mut received = None;
        let mut sink = |arrival: smt_carrier::Arrival<'_>| {
            buffer[..arrival.bytes.len()].copy_from_slice(arrival.bytes);
            received = Some(Received {
                path: arrival.path,
                length: arrival.bytes.len(),
                segment_size: arrival.segment_size,
                marks: arrival.marks,
            });
        };
        let count = self.receive(&mut sink, wait)?;
        Ok(received.filter(|_| count == 1))
    }
}

impl<C: Carrier + ?Sized> Described for C {}
