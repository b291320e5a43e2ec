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
use std::sync::{Mutex, MutexGuard, PoisonError};

use smt_carrier::{
    Arrival, Batch, Capabilities, Carrier, HeaderCopy, KeyHandle, KeyStore, Layout, NoRoom,
    ReceiveError, SEGMENT_HEADER_BYTES, Sealing, SendError, TAG_BYTES, Wait,
};
use smt_record::{Aead, AeadProvider, AwsLc, Suite};

/// A carrier that copies headers and seals records, over one that does neither.
pub struct SealingCarrier<C> {
    inner: C,
    keys: Mutex<Keys>,
}

struct Keys {
    room: usize,
    next: u64,
    installed: BTreeMap<KeyHandle, Box<dyn Aead>>,
}

impl<C: Carrier> SealingCarrier<C> {
    /// Sends by `inner`, with a store of `room` keys.
    pub fn new(inner: C, room: usize) -> Self {
        Self {
            inner,
            keys: Mutex::new(Keys {
                room,
                next: 1,
                installed: BTreeMap::new(),
            }),
        }
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a batch with its records sealed.
    fn sealed(&self, batch: &Batch<'_>) -> Vec<u8> {
        let mut bytes = batch.bytes.to_vec();
        let keys = self.keys();
        for record in batch.unsealed {
            let key = keys.installed.get(&record.key);
            let key = key.expect("a key that was installed and not removed");
            let header = bytes[record.header()].to_vec();
            let body = record.body();
            let tag = body.end..body.end + TAG_BYTES;
            let sealed = key.seal(record.number, &header, &mut bytes[body]);
            bytes[tag].copy_from_slice(&sealed.expect("a library that always can"));
        }
        bytes
    }
}

impl<C: Carrier> KeyStore for SealingCarrier<C> {
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom> {
        let suite = Suite::from_code(suite).ok_or(NoRoom)?;
        let mut keys = self.keys();
        if keys.installed.len() >= keys.room || key.len() != suite.key_len() {
            return Err(NoRoom);
        }
        let aead = AwsLc.aead(suite, key, iv).map_err(|_| NoRoom)?;
        let handle = KeyHandle(keys.next);
        keys.next += 1;
        keys.installed.insert(handle, aead);
        Ok(handle)
    }

    fn remove(&self, key: KeyHandle) {
        self.keys().installed.remove(&key);
    }
}

impl<C: Carrier> Carrier for SealingCarrier<C> {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        batch.assert_valid(&self.capabilities());
        let bytes = self.sealed(batch);
        let (bytes, segment_size) = match batch.layout {
            Layout::Datagrams { segment_size } => (bytes, segment_size),
            Layout::Segmented {
                header,
                payload_max,
            } => (
                expanded(header, payload_max, &bytes),
                SEGMENT_HEADER_BYTES + payload_max,
            ),
        };
        self.inner.send(&Batch {
            layout: Layout::Datagrams { segment_size },
            bytes: &bytes,
            unsealed: &[],
            ..*batch
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
        inner
            .with_headers(HeaderCopy::Replicated)
            .with_seals(Sealing::WholeRecords)
    }

    fn keys(&self) -> Option<&dyn KeyStore> {
        Some(self)
    }
}

/// A stream, cut into datagrams: before each part a copy of the header with the part's offset.
fn expanded(header: &[u8; SEGMENT_HEADER_BYTES], payload_max: usize, stream: &[u8]) -> Vec<u8> {
    let (front, offset) = header.split_at(OFFSET);
    let offset = offset
        .iter()
        .fold(0_u32, |offset, byte| offset << 8 | u32::from(*byte));
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
