// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The notes of a connection's keys for its device.

use std::collections::VecDeque;

use smt_nic::quic::{ConnectionId, ConnectionKeys, HeaderProtectionKey, PhaseKey};

use crate::capture::{SharedHeaderKey, SharedPacketKey};

/// The notes.
#[derive(Default)]
pub(crate) struct Notes {
    /// The engine has an entry, and seals.
    pub(crate) is_offloaded: bool,
    /// The keys of the connection's header protection, once there are 1-RTT keys.
    pub(crate) header: Option<HeaderPair>,
    /// The keys of key phases, in their order.
    pub(crate) phases: VecDeque<Phase>,
    /// The latest phase of a packet that was opened, by quinn or for it.
    pub(crate) receive_generation: u64,
    /// The latest phase of a packet that was sealed, or left to be.
    pub(crate) transmit_generation: u64,
    /// The latest phase whose keys quinn has forgotten.
    pub(crate) forgotten: Option<u64>,
    /// Bytes of packets, in both directions.
    pub(crate) bytes_seen: u64,
    /// Packets that quinn has left unsealed.
    pub(crate) unsealed: Vec<Unsealed>,
    /// Packets that quinn has sealed by the present key, without an entry.
    pub(crate) sealed: u64,
    /// Numbers of packets that quinn has opened itself and the engine has not heard of.
    pub(crate) opened: Vec<u64>,
    /// The largest number of all that are known to have been opened.
    pub(crate) largest: Option<u64>,
    /// Ids of packets that quinn has opened itself: those that the peer uses now.
    pub(crate) ids: Vec<ConnectionId>,
    /// Packets that quinn has taken as opened by the engine.
    pub(crate) taken: u64,
    /// Packets that did not open in quinn.
    pub(crate) failures: u64,
}

/// The header protection of both directions: the bytes, and the library's keys.
pub(crate) struct HeaderPair {
    pub(crate) local: HeaderProtectionKey,
    pub(crate) remote: HeaderProtectionKey,
    pub(crate) local_of_library: SharedHeaderKey,
    pub(crate) remote_of_library: SharedHeaderKey,
}

/// The packet keys of a key phase.
pub(crate) struct Phase {
    /// Counted from 0.
    pub(crate) generation: u64,
    pub(crate) local: PhaseKey,
    pub(crate) remote: PhaseKey,
    pub(crate) local_of_library: SharedPacketKey,
    pub(crate) remote_of_library: SharedPacketKey,
}

/// A packet that quinn has left unsealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unsealed {
    pub(crate) number: u64,
    pub(crate) generation: u64,
    /// Bytes of the packet with its tag room.
    pub(crate) length: usize,
    /// Bytes of the peer's connection id in it.
    pub(crate) id_length: usize,
}

impl Notes {
    /// A packet of this phase leaves.
    pub(crate) fn sends(&mut self, generation: u64, bytes: usize) {
        self.bytes_seen += bytes as u64;
        if generation > self.transmit_generation {
            self.transmit_generation = generation;
            self.sealed = 0;
        }
    }

    /// A packet of this phase was opened.
    pub(crate) fn has_opened(&mut self, generation: u64, bytes: usize) {
        self.bytes_seen += bytes as u64;
        self.receive_generation = self.receive_generation.max(generation);
    }

    /// quinn has opened a packet itself, which had this number and header.
    pub(crate) fn has_opened_itself(&mut self, number: u64, header: &[u8]) {
        self.largest = self.largest.max(Some(number));
        self.opened.push(number);
        let number_bytes = header.first().map_or(0, |first| usize::from(first & 3) + 1);
        let id = header.get(1..header.len().saturating_sub(number_bytes));
        let id = id.and_then(ConnectionId::new);
        if let Some(id) = id.filter(|id| self.ids.last() != Some(id)) {
            self.ids.push(id);
        }
    }

    /// The keys of a phase, if quinn has them.
    pub(crate) fn phase(&self, generation: u64) -> Option<&Phase> {
        let mut phases = self.phases.iter();
        phases.find(|phase| phase.generation == generation)
    }

    /// The keys for a new entry. `None`: not now. The peer's id is known once quinn has opened a
    /// packet of it; and while one direction is in a later phase than the other, an entry would
    /// begin between two phases.
    pub(crate) fn keys(&self) -> Option<ConnectionKeys> {
        self.largest?;
        let generation = self.receive_generation;
        if self.transmit_generation != generation {
            return None;
        }
        let (present, next) = (self.phase(generation)?, self.phase(generation + 1)?);
        let header = self.header.as_ref()?;
        Some(ConnectionKeys {
            receive: present.remote.clone(),
            receive_next: Some(next.remote.clone()),
            receive_header: header.remote.clone(),
            transmit: present.local.clone(),
            transmit_header: header.local.clone(),
            generation,
            largest: self.largest,
            sealed: self.sealed,
        })
    }

    /// Forgets the keys of phases that neither quinn nor the engine, which opens packets of this
    /// one, needs.
    pub(crate) fn trim(&mut self, generation_of_engine: u64) {
        let receive = self.receive_generation.min(generation_of_engine);
        let oldest = receive.saturating_sub(1).min(self.transmit_generation);
        self.phases.retain(|phase| phase.generation >= oldest);
    }
}
