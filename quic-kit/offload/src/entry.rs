// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One connection's place in the engine's table, which it may get, lose and get again.

use std::collections::VecDeque;

use bytes::BytesMut;
use smt_nic::quic::{
    AdmissionPolicy, Admitted, ConnectionId, Handle, IDS_OF_CONNECTION_MAX, NotAdmitted,
    QuicEngine, Removed,
};

use crate::link::Link;
use crate::mark::Marked;
use crate::notes::Unsealed;
use crate::sealing::{Unsealable, runs};

/// The entry, and what is known without one.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// `None`: all packets are quinn's.
    pub(crate) handle: Option<Handle>,
    /// The ids that the peer uses or may use, the oldest first. quinn does not tell which were
    /// retired.
    ids: VecDeque<ConnectionId>,
    /// The key phase that the engine opens packets of.
    generation: u64,
    /// The phase whose key the engine knows ahead.
    next: u64,
    /// The key phase that the engine seals in.
    transmit_generation: u64,
    /// Packets that the engine has left, and quinn has neither opened nor refused yet.
    left: u64,
    /// Those of them that did not open in the engine: they fail once more in quinn, and are one.
    failed: u64,
    /// Packets that did not open while there was no entry.
    failures: u64,
}

/// Packets of a buffer that were sealed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sealed {
    pub(crate) by_engine: u64,
    pub(crate) in_software: u64,
}

/// The news of a connection's keys since they were last asked.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) taken: u64,
    /// Packets that quinn has opened itself while there was an entry.
    pub(crate) opened: u64,
    /// Those of them that the engine could have opened.
    pub(crate) left: u64,
    /// Packets that quinn has opened itself while there was none.
    pub(crate) without_entry: u64,
    pub(crate) added: Vec<ConnectionId>,
    pub(crate) removed: Vec<ConnectionId>,
}

impl Entry {
    /// An id of this connection was issued, or seen: the oldest makes room, for peers retire ids in
    /// their order.
    pub(crate) fn add_id(&mut self, engine: &mut QuicEngine, id: ConnectionId, told: &mut Told) {
        if self.ids.contains(&id) {
            return;
        }
        if self.ids.len() == IDS_OF_CONNECTION_MAX
            && let Some(oldest) = self.ids.pop_front()
        {
            if let Some(handle) = self.handle {
                engine.remove_id(handle, &oldest);
            }
            told.removed.push(oldest);
        }
        self.ids.push_back(id);
        told.added.push(id);
        if let Some(handle) = self.handle {
            // Without room for it, packets with this id stay with quinn.
            let _ = engine.add_id(handle, id);
        }
    }

    /// The ids, for a device that forgets the connection.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ConnectionId> {
        self.ids.iter()
    }

    /// Asks for an entry. `None`: it has one, or its keys are not ready.
    pub(crate) fn admit(
        &mut self,
        engine: &mut QuicEngine,
        policy: &AdmissionPolicy,
        link: &Link,
    ) -> Option<Result<Admitted, NotAdmitted>> {
        if self.handle.is_some() {
            return None;
        }
        let mut notes = link.notes();
        let keys = notes.keys()?;
        let admitted = match engine.admit(policy, &keys, notes.bytes_seen) {
            Ok(admitted) => admitted,
            Err(refused) => return Some(Err(refused)),
        };
        // The keys have told this, and it is not told again.
        notes.opened.clear();
        notes.sealed = 0;
        notes.is_offloaded = true;
        drop(notes);
        let handle = admitted.connection;
        engine.count_failures(handle, std::mem::take(&mut self.failures));
        for id in &self.ids {
            let _ = engine.add_id(handle, *id);
        }
        self.handle = Some(handle);
        self.generation = keys.generation;
        self.transmit_generation = keys.generation;
        self.next = keys.generation + 1;
        (self.left, self.failed) = (0, 0);
        Some(Ok(admitted))
    }

    /// The engine has given up the entry: quinn goes on from what the engine has counted. Packets
    /// that quinn has left unsealed by now are sealed by the library.
    pub(crate) fn has_lost(&mut self, removed: &Removed, link: &Link) {
        let mut notes = link.notes();
        notes.is_offloaded = false;
        notes.largest = notes.largest.max(removed.largest);
        if notes.transmit_generation == self.transmit_generation {
            notes.sealed += removed.sealed;
        }
        self.failures = removed.failures;
        self.handle = None;
    }

    /// The engine has opened a packet of this phase. Returns whether it is a new one.
    pub(crate) fn has_moved(&mut self, generation: u64) -> bool {
        let is_new = generation > self.generation;
        self.generation = self.generation.max(generation);
        is_new
    }

    /// The engine has left a packet of this connection to quinn.
    pub(crate) fn has_left(&mut self, has_failed: bool) {
        self.left += 1;
        self.failed += u64::from(has_failed);
    }

    /// Tells the engine what quinn has opened, what has failed, which ids the peer uses, and the
    /// next key.
    pub(crate) fn tell(&mut self, engine: &mut QuicEngine, link: &Link) -> Told {
        let mut notes = link.notes();
        let mut told = Told { taken: std::mem::take(&mut notes.taken), ..Told::default() };
        let opened = std::mem::take(&mut notes.opened);
        let failures = std::mem::take(&mut notes.failures);
        for id in std::mem::take(&mut notes.ids) {
            self.add_id(engine, id, &mut told);
        }
        let Some(handle) = self.handle else {
            told.without_entry = opened.len() as u64;
            self.failures += failures;
            notes.trim(u64::MAX);
            return told;
        };
        told.opened = opened.len() as u64;
        told.left = told.opened.min(self.left);
        self.left = self.left.saturating_sub(told.opened + failures);
        for number in opened {
            engine.note_opened(handle, number);
        }
        engine.count_failures(handle, failures.saturating_sub(self.failed));
        self.failed = self.failed.saturating_sub(failures);
        if self.next <= self.generation {
            // quinn makes it when it has seen the update.
            let next = self.generation + 1;
            if let Some(phase) = notes.phase(next) {
                engine.set_next_key(handle, &phase.remote, next);
                self.next = next;
            }
        }
        if notes.forgotten.is_some_and(|of| of + 1 == self.generation) {
            notes.forgotten = None;
            engine.drop_previous_key(handle);
        }
        notes.trim(self.generation);
        told
    }

    /// Seals what quinn has left unsealed, by the engine if it has the entry and the key.
    pub(crate) fn seal(
        &mut self,
        engine: &mut QuicEngine,
        link: &Link,
        unsealed: &[Unsealed],
        (bytes, stride): (&mut [u8], usize),
    ) -> Result<Sealed, Unsealable> {
        let mut sealed = Sealed::default();
        for run in runs(&link.down, bytes, stride, unsealed)? {
            let generation = run.packets[0].generation;
            self.follow(engine, link, generation);
            let handle = self.handle;
            let handle = handle.filter(|_| self.transmit_generation == generation);
            let packets = run.packets.len() as u64;
            let by_engine = handle.map(|handle| run.seal(engine, handle, bytes));
            if by_engine.transpose()? == Some(true) {
                sealed.by_engine += packets;
            } else if run.seal_in_software(link, bytes) {
                sealed.in_software += packets;
                self.count_seals(engine, link, generation, packets);
            } else {
                return Err(Unsealable);
            }
        }
        Ok(sealed)
    }

    /// Packets that software has sealed count for their key, with an entry or without.
    fn count_seals(&self, engine: &mut QuicEngine, link: &Link, generation: u64, packets: u64) {
        let mut notes = link.notes();
        match self.handle {
            Some(handle) if self.transmit_generation == generation => {
                engine.count_seals(handle, packets);
            }
            None if notes.transmit_generation == generation => notes.sealed += packets,
            _ => {}
        }
    }

    /// quinn seals in a later phase: the engine does, too.
    fn follow(&mut self, engine: &mut QuicEngine, link: &Link, generation: u64) {
        let later = generation > self.transmit_generation;
        let Some(handle) = self.handle.filter(|_| later) else {
            return;
        };
        if let Some(phase) = link.notes().phase(generation) {
            engine.set_transmit_key(handle, &phase.local, generation);
            self.transmit_generation = generation;
        }
    }
}

/// Whether the library opens a packet to the same frames, under the same number and phase.
pub(crate) fn opens_alike(
    link: &Link,
    (datagram, id_length): (&[u8], usize),
    frames: &[u8],
    marked: Marked,
) -> bool {
    let notes = link.notes();
    let (Some(phase), Some(header)) = (notes.phase(marked.generation), &notes.header) else {
        return false;
    };
    let mut packet = datagram.to_vec();
    let number_at = 1 + id_length;
    header.remote_of_library.decrypt(number_at, &mut packet);
    let number_bytes = usize::from(packet[0] & 3) + 1;
    let mut payload = BytesMut::from(&packet[number_at + number_bytes..]);
    let header = &packet[..number_at + number_bytes];
    let library = &phase.remote_of_library;
    let opened = library.decrypt(marked.number, header, &mut payload);
    opened.is_ok() && *payload == *frames
}
