// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier that does in software what a network card with cryptography would do: it copies
//! headers and seals records.
//!
//! 1. A batch comes with plaintext records in it, and perhaps as one stream.
//! 2. The records are sealed in a copy of the bytes, each with its key in the store.
//! 3. The stream is cut; each part gets a copy of the header, with the part's own offset.
//! 4. Another carrier sends the datagrams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, HeaderCopy, KeyHandle, KeyStore, Layout, NoRoom,
    ReceiveError, SEGMENT_HEADER_BYTES, Sealing, SendError, Wait,
};
use smt_record::{Aead, AeadProvider, AwsLc, Suite};

/// A carrier that copies headers and seals records, over one that does neither.
pub struct SealingCarrier<C> {
    inner: C,
    keys: Arc<SealingKeys>,
}

/// The keys of a carrier that seals records.
pub struct SealingKeys {
    library: Arc<dyn AeadProvider>,
    room: usize,
    table: Mutex<KeyTable>,
}

#[derive(Default)]
struct KeyTable {
    next: u64,
    installed: BTreeMap<KeyHandle, Box<dyn Aead>>,
    /// Records that were sealed.
    sealed: u64,
}

impl<C: Carrier> SealingCarrier<C> {
    /// Sends by `inner`, with a store of `room` keys.
    pub fn new(inner: C, room: usize) -> Self {
        let keys = Arc::new(SealingKeys::new(Arc::new(AwsLc), room));
        Self { inner, keys }
    }

    /// The keys.
    pub fn sealing_keys(&self) -> &Arc<SealingKeys> {
        &self.keys
    }
}

impl SealingKeys {
    /// Room for this many keys, for the ciphers of `library`.
    pub fn new(library: Arc<dyn AeadProvider>, room: usize) -> Self {
        Self { library, room, table: Mutex::default() }
    }

    /// Records that were sealed.
    pub fn sealed(&self) -> u64 {
        self.table().sealed
    }

    /// Keys that are installed now.
    pub fn installed(&self) -> usize {
        self.table().installed.len()
    }

    /// The datagrams of a batch, one behind the other, and the size of each but the last. `None` if
    /// the batch names a key that was removed.
    pub fn datagrams(&self, batch: &Batch<'_>) -> Option<(Vec<u8>, usize)> {
        let bytes = self.seal(batch)?;
        Some(match batch.layout {
            Layout::Datagrams { segment_size } => (bytes, segment_size),
            Layout::Segmented { header, payload_max } => {
                (expanded(header, payload_max, &bytes), SEGMENT_HEADER_BYTES + payload_max)
            }
        })
    }

    /// The bytes of a batch with its records sealed.
    fn seal(&self, batch: &Batch<'_>) -> Option<Vec<u8>> {
        let mut bytes = batch.bytes.to_vec();
        let mut table = self.table();
        for record in batch.unsealed {
            let key = table.installed.get(&record.key)?;
            let place = &mut bytes[record.record()];
            let (header, rest) = place.split_at_mut(record.header().len());
            let (plaintext, tag) = rest.split_at_mut(record.body().len());
            let sealed = key.seal(record.number, header, plaintext);
            tag.copy_from_slice(&sealed.expect("a library that always can"));
            table.sealed += 1;
        }
        Some(bytes)
    }

    fn table(&self) -> MutexGuard<'_, KeyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for SealingKeys {
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom> {
        let suite = Suite::from_code(suite).ok_or(NoRoom)?;
        let mut table = self.table();
        if table.installed.len() >= self.room || key.len() != suite.key_len() {
            return Err(NoRoom);
        }
        let aead = self.library.aead(suite, key, iv).map_err(|_| NoRoom)?;
        table.next += 1;
        let handle = KeyHandle(table.next);
        table.installed.insert(handle, aead);
        Ok(handle)
    }

    fn remove(&self, key: KeyHandle) {
        self.table().installed.remove(&key);
    }
}

impl<C: Carrier> Carrier for SealingCarrier<C> {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        batch.assert_valid(&self.capabilities());
        let Some((bytes, segment_size)) = self.keys.datagrams(batch) else {
            return Ok(());
        };
        let sent = self.inner.send(&Batch {
            layout: Layout::Datagrams { segment_size },
            bytes: &bytes,
            unsealed: &[],
            ..*batch
        });
        sent.map_err(|error| match error {
            // The batch leaves again as a whole: receivers drop repetitions.
            SendError::WouldBlock { .. } => SendError::WouldBlock { bytes_sent: 0 },
            error => error,
        })
    }

    fn receive(
        &self,
        sink: &mut dyn FnMut(Arrival<'_>),
        wait: Wait,
    ) -> Result<usize, ReceiveError> {
        self.inner.receive(sink, wait)
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        inner.with_headers(HeaderCopy::Replicated).with_seals(Sealing::WholeRecords)
    }

    fn keys(&self) -> Option<Arc<dyn KeyStore>> {
        Some(Arc::<SealingKeys>::clone(&self.keys))
    }
}

/// A stream, cut into datagrams: before each part a copy of the header with the part's offset.
fn expanded(header: &[u8; SEGMENT_HEADER_BYTES], payload_max: usize, stream: &[u8]) -> Vec<u8> {
    let (front, offset) = header.split_at(OFFSET);
    let offset = offset.iter().fold(0_u32, |offset, byte| offset << 8 | u32::from(*byte));
    let mut bytes = Vec::new();
    for (number, part) in stream.chunks(payload_max).enumerate() {
        let distance = (number * payload_max) as u32;
        bytes.extend_from_slice(front);
        bytes.extend_from_slice(&offset.wrapping_add(distance).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Where the offset is in the header: its last four bytes.
const OFFSET: usize = SEGMENT_HEADER_BYTES - 4;

#[cfg(test)]
mod tests;
