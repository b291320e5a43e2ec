// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The QUIC engine: packets with short headers are opened and sealed by the keys of connections
//! that the host has handed to the device (NiQUIC §3; RFC 9001).
//!
//! The host keeps handshakes, streams, congestion control and packet numbers.
//!
//! 1. The host adds a connection with its keys ([`QuicEngine::add`]), and its ids
//!    ([`QuicEngine::add_id`]), which come and go while it runs.
//! 2. [`QuicEngine::receive`] opens a packet in place, or leaves it as it came.
//! 3. [`QuicEngine::seal`] seals packets that the host has built, by the connection's handle.
//! 4. Key updates: the host names the key of the next phase ahead ([`QuicEngine::set_next_key`]);
//!    the peer's first packet of it makes it the present one, and the host hears of it by the
//!    packet's generation.
//!
//! The length of a connection id is not on the wire: it is one for a device, as for a port (RFC
//! 9000 §5.1). [`QuicEngine::admit`] decides which connections are worth an entry. [`reordering`]
//! puts opened packets back into order. Not here: the host's driver.

mod admission;
mod connection;
mod header_key;
mod id_table;
mod number_window;
mod packet_key;
mod packet_number;
mod receive;
mod recency;
pub mod reordering;
mod suite;
mod transmit;

use alloc::vec::Vec;

use thiserror::Error;

use self::connection::Connection;
use self::id_table::{IdTable, NotAdded};
use self::recency::Recency;

pub use self::admission::{AdmissionPolicy, Admitted, NotAdmitted, Removed};
pub use self::connection::{BYTES_OF_A_CONNECTION, ConnectionKeys, IDS_OF_CONNECTION_MAX};
pub use self::id_table::{BYTES_OF_AN_ID, ConnectionId, ID_BYTES_MAX};
pub use self::number_window::Freshness;
pub use self::receive::{Opened, Received, Untouched};
pub use self::suite::{BadKeyLength, HeaderProtectionKey, PhaseKey, Suite};
pub use self::transmit::{Batch, NotSealed};

/// The bounds of the engine's memory, fixed when it begins.
#[derive(Clone, Copy, Debug)]
pub struct QuicConfig {
    /// Connections.
    pub connections_max: u32,
    /// Places for their ids. A table that is fuller than nine tenths may refuse one.
    pub id_places: usize,
    /// Bytes of each connection id that this host gives its peers: 1 to 20.
    pub id_length: u8,
    /// A random key of the table of ids, so that no peer can choose ids that collide.
    pub hash_key: [u8; 16],
}

/// The engine with its connections.
#[derive(Debug)]
pub struct QuicEngine {
    ids: IdTable,
    connections: Connections,
    id_length: usize,
    counters: QuicCounters,
}

/// A connection of the device. One that was removed is never meant by a later handle.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Handle {
    index: u32,
    /// How often the place was used before.
    life: u32,
}

impl Handle {
    /// Whether the place can be used again.
    fn has_next_life(self) -> bool {
        self.life < u32::MAX
    }
}

/// Counters since the engine began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuicCounters {
    /// Packets opened.
    pub opened: u64,
    /// Packets opened whose number had been taken.
    pub duplicates: u64,
    /// Packets of a connection that did not open.
    pub not_opened: u64,
    /// Packets that were left to the host for another reason.
    pub untouched: u64,
    /// Packets sealed.
    pub sealed: u64,
}

/// An entry cannot be made.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum QuicTableError {
    /// The device has no room: the connection stays with the host's software.
    #[error("the device has no room for it")]
    NoRoom,
    /// Another connection, or this one, has the id.
    #[error("the id is in use")]
    IdInUse,
    /// The id is not of the device's length.
    #[error("the id is not of the length that the device was told")]
    BadIdLength,
    /// There is no such connection, or none any more.
    #[error("the device has no such connection")]
    UnknownConnection,
}

impl QuicEngine {
    /// An engine without connections.
    ///
    /// # Errors
    /// [`QuicTableError::BadIdLength`]: connections without ids are the host's.
    pub fn new(config: &QuicConfig) -> Result<Self, QuicTableError> {
        let id_length = usize::from(config.id_length);
        if !(1..=ID_BYTES_MAX).contains(&id_length) {
            return Err(QuicTableError::BadIdLength);
        }
        Ok(Self {
            ids: IdTable::new(config.id_places, config.hash_key),
            connections: Connections::new(config.connections_max),
            id_length,
            counters: QuicCounters::default(),
        })
    }

    /// Adds a connection, without ids yet.
    ///
    /// # Errors
    /// [`QuicTableError::NoRoom`].
    pub fn add(&mut self, keys: &ConnectionKeys) -> Result<Handle, QuicTableError> {
        // Before the work of the keys' schedules.
        if !self.connections.has_room() {
            return Err(QuicTableError::NoRoom);
        }
        let connection = Connection::new(keys);
        self.connections.add(connection).ok_or(QuicTableError::NoRoom)
    }

    /// Removes a connection, its keys and its ids. Packets of it are left to the host from now on.
    /// Returns what the device knew of it, if it had it.
    pub fn remove(&mut self, connection: Handle) -> Option<Removed> {
        let removed = self.connections.remove(connection)?;
        for id in removed.ids.iter().flatten() {
            self.ids.remove(id);
        }
        Some(removed.summary())
    }

    /// Opens packets with this id by the connection's keys.
    ///
    /// # Errors
    /// [`QuicTableError`]; then nothing has changed.
    pub fn add_id(&mut self, connection: Handle, id: ConnectionId) -> Result<(), QuicTableError> {
        if id.bytes().len() != self.id_length {
            return Err(QuicTableError::BadIdLength);
        }
        let entry = self.connections.get_mut(connection);
        let ids = &mut entry.ok_or(QuicTableError::UnknownConnection)?.ids;
        let place = ids.iter_mut().find(|place| place.is_none());
        let place = place.ok_or(QuicTableError::NoRoom)?;
        self.ids.add(id, connection).map_err(|error| match error {
            NotAdded::InUse => QuicTableError::IdInUse,
            NotAdded::NoRoom => QuicTableError::NoRoom,
        })?;
        *place = Some(id);
        Ok(())
    }

    /// The connection has this id no more. Returns whether it had it.
    pub fn remove_id(&mut self, connection: Handle, id: &ConnectionId) -> bool {
        let entry = self.connections.get_mut(connection);
        let place = entry.and_then(|of| of.ids.iter_mut().find(|of| of.as_ref() == Some(id)));
        let Some(place) = place else {
            return false;
        };
        *place = None;
        self.ids.remove(id)
    }

    /// Names the key by which the peer will seal after its next update. Returns whether it is the
    /// next one: a generation that is over by now changes nothing.
    pub fn set_next_key(&mut self, connection: Handle, key: &PhaseKey, generation: u64) -> bool {
        let entry = self.connections.get_mut(connection);
        entry.is_some_and(|of| of.receive.set_next(key, generation))
    }

    /// Forgets the key of the phase before the present one. The host does so some time after an
    /// update (RFC 9001 §6.5).
    pub fn drop_previous_key(&mut self, connection: Handle) {
        if let Some(connection) = self.connections.get_mut(connection) {
            connection.receive.drop_previous();
        }
    }

    /// Seals by this key from now on. Returns whether it is one of a later phase, of a connection
    /// that is there.
    pub fn set_transmit_key(
        &mut self,
        connection: Handle,
        key: &PhaseKey,
        generation: u64,
    ) -> bool {
        let entry = self.connections.get_mut(connection);
        entry.is_some_and(|of| of.transmit.replace(key, generation))
    }

    /// Counts packets of the connection that the host's software could not open: one limit holds
    /// for both (RFC 9001 §6.6).
    pub fn count_failures(&mut self, connection: Handle, failures: u64) {
        if let Some(connection) = self.connections.get_mut(connection) {
            connection.count_failures(failures);
        }
    }

    /// Counts packets that the host's software has sealed by the present key: one limit holds for
    /// both (RFC 9001 §6.6).
    pub fn count_seals(&mut self, connection: Handle, packets: u64) {
        if let Some(connection) = self.connections.get_mut(connection) {
            connection.transmit.left = connection.transmit.left.saturating_sub(packets);
        }
    }

    /// The host's software has opened a packet of this number: a repetition of it is told, and
    /// later numbers are restored from it.
    pub fn note_opened(&mut self, connection: Handle, number: u64) {
        if let Some(connection) = self.connections.get_mut(connection) {
            connection.numbers.take(number);
        }
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> QuicCounters {
        self.counters
    }

    /// Connections, and ids of them all.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.connections.count(), self.ids.len())
    }
}

impl QuicCounters {
    fn count(&mut self, received: &Received) {
        match received {
            Received::Opened(opened) => {
                self.opened += 1;
                self.duplicates += u64::from(opened.freshness == Freshness::Duplicate);
            }
            Received::Untouched(Untouched::NotOpened) => self.not_opened += 1,
            Received::Untouched(_) => self.untouched += 1,
        }
    }
}

/// Connections by their handles; places of removed ones are used again.
#[derive(Debug)]
struct Connections {
    /// Each with the number of its lives.
    places: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
    recency: Recency,
    most: u32,
}

impl Connections {
    fn new(most: u32) -> Self {
        Self { places: Vec::new(), free: Vec::new(), recency: Recency::default(), most }
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty() || self.places.len() < self.most as usize
    }

    fn add(&mut self, connection: Connection) -> Option<Handle> {
        if let Some(index) = self.free.pop() {
            let (life, place) = self.places.get_mut(index as usize)?;
            *place = Some(connection);
            self.recency.add(index);
            return Some(Handle { index, life: *life });
        }
        let index = u32::try_from(self.places.len()).ok()?;
        if !self.has_room() {
            return None;
        }
        self.places.push((0, Some(connection)));
        self.recency.add(index);
        Some(Handle { index, life: 0 })
    }

    fn remove(&mut self, handle: Handle) -> Option<Connection> {
        let (life, place) = self.places.get_mut(handle.index as usize)?;
        let removed = place.take_if(|_| *life == handle.life)?;
        self.recency.remove(handle.index);
        // A place whose lives are used up is not used again.
        if let Some(next) = life.checked_add(1) {
            *life = next;
            self.free.push(handle.index);
        }
        Some(removed)
    }

    fn get_mut(&mut self, handle: Handle) -> Option<&mut Connection> {
        let (life, place) = self.places.get_mut(handle.index as usize)?;
        place.as_mut().filter(|_| *life == handle.life)
    }

    /// A packet of a connection that is there.
    fn touch(&mut self, handle: Handle) {
        self.recency.touch(handle.index);
    }

    /// The connection that was used least recently, and the packets of others since.
    fn oldest(&self) -> Option<(Handle, u64)> {
        let (index, packets) = self.recency.oldest()?;
        let (life, _) = self.places.get(index as usize)?;
        let handle = Handle { index, life: *life };
        Some((handle, packets))
    }

    fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
