// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiving keys of a carrier that opens records in software, as a network card with
//! cryptography would do: it reads clear headers alone.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use smt_carrier::{KeyHandle, KeyStore, NoRoom, Opened, ReceivingFlow, ReceivingKey};
use smt_record::{Aead, AeadProvider, AwsLc, Suite};
use smt_wire::{Geometry, Packet, RECORD_HEADER_LEN, TAG_LEN, VERSION, parse};

/// A store that takes receiving keys alone, and opens records that lie whole in a datagram.
pub struct OpeningKeys {
    room: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    installed: BTreeMap<KeyHandle, Installed>,
    opened: u64,
}

struct Installed {
    aead: Box<dyn Aead>,
    epoch: u8,
    flow: ReceivingFlow,
}

impl OpeningKeys {
    /// Room for this many keys.
    pub fn new(room: usize) -> Self {
        Self { room, table: Mutex::default() }
    }

    /// Records that were opened.
    pub fn opened(&self) -> u64 {
        self.table().opened
    }

    /// Keys that are installed now.
    pub fn installed(&self) -> usize {
        self.table().installed.len()
    }

    /// Opens the records that lie whole in the first packet of a datagram, in place, and says
    /// which.
    pub fn open(&self, datagram: &mut [u8]) -> Vec<Opened> {
        let Ok((Packet::Data(data), _)) = parse(VERSION, datagram) else {
            return Vec::new();
        };
        let header = data.header;
        let start = data.payload.as_ptr() as usize - datagram.as_ptr() as usize;
        let end = u64::from(header.offset) + data.payload.len() as u64;
        let mut table = self.table();
        let of_packet =
            |key: &&Installed| key.flow.session == header.session.0 && key.epoch == header.epoch;
        let found = table.installed.iter().find(|(_, key)| of_packet(key));
        let Some((handle, key)) = found else {
            return Vec::new();
        };
        let geometry = Geometry::new(key.flow.first_record, key.flow.record);
        let geometry = geometry.expect("a geometry that the core has agreed");
        let mut opened = Vec::new();
        let first = geometry.record_at(header.offset);
        for index in first..geometry.records(header.message_length) {
            let place = geometry.record(header.message_length, index);
            if place.stream_start < header.offset {
                continue;
            }
            if u64::from(place.stream_start) + place.stream_len() as u64 > end {
                break;
            }
            let at = start + (place.stream_start - header.offset) as usize;
            let record = &mut datagram[at..at + place.stream_len()];
            let (aad, rest) = record.split_at_mut(RECORD_HEADER_LEN);
            let Some((body, tag)) = rest.split_last_chunk_mut::<TAG_LEN>() else {
                continue;
            };
            let number = header.id.0 << key.flow.index_bits | u64::from(index);
            let mut plaintext = vec![0; body.len()];
            if key.aead.open(number, aad, body, tag, &mut plaintext).is_err() {
                continue;
            }
            body.copy_from_slice(&plaintext);
            opened.push(Opened { at: at as u32, key: *handle, number });
        }
        table.opened += opened.len() as u64;
        opened
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for OpeningKeys {
    fn install(&self, _: u16, _: &[u8], _: [u8; 12]) -> Result<KeyHandle, NoRoom> {
        Err(NoRoom)
    }

    fn install_receiving(&self, key: &ReceivingKey<'_>) -> Result<KeyHandle, NoRoom> {
        let suite = Suite::from_code(key.suite).ok_or(NoRoom)?;
        let mut table = self.table();
        if table.installed.len() >= self.room {
            return Err(NoRoom);
        }
        let aead = AwsLc.aead(suite, key.key, *key.iv).map_err(|_| NoRoom)?;
        table.next += 1;
        let handle = KeyHandle(table.next);
        let installed = Installed { aead, epoch: key.epoch, flow: key.flow };
        table.installed.insert(handle, installed);
        Ok(handle)
    }

    fn remove(&self, key: KeyHandle) {
        self.table().installed.remove(&key);
    }
}
