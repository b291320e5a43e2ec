// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine with the connections of one host: packets in and out, and the table kept in step.
//!
//! It has no sockets, clock or connections of quinn's: [`crate::driver`] turns it with quinn-proto,
//! and [`crate::socket`] puts it below an endpoint of quinn, which does not know of it.
//!
//! A connection gets its entry once quinn has opened a packet of it: then its keys are there, and
//! the id that its peer uses is known by that packet's header, as every later id is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kit_process::{Doing, Failure};
use smt_nic::quic::{
    self, AdmissionPolicy, ConnectionId, Opened, QuicConfig, QuicEngine, Received, Untouched,
};

use crate::entry::{Entry, Told, opens_alike};
use crate::link::{Link, Links};
use crate::mark::{MARK_BYTES, Marked};
use crate::notes::Unsealed;
use crate::sealing::Unsealable;

/// The settings of a device.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Connections that the engine has room for. 0: all stay in software.
    pub connections_max: u32,
    /// Which of them get an entry.
    pub policy: AdmissionPolicy,
    /// Each packet that the engine opens is opened by the library too, and the bytes are compared.
    pub is_compared: bool,
}

/// The counts of a device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OffloadCounts {
    /// Packets with a short header and a known id of a connection that was offloaded when they
    /// came.
    pub eligible: u64,
    /// Those that the engine has opened.
    pub opened: u64,
    /// Packets that quinn has taken as opened: it drops some that were opened, as repetitions.
    pub taken: u64,
    /// Packets that quinn has opened itself, of offloaded connections: those behind long headers,
    /// the first of each id, those that came before the entry, and [`Self::left_to_software`].
    pub opened_in_software: u64,
    /// Eligible packets that the engine has left, and quinn has opened.
    pub left_to_software: u64,
    /// Packets that quinn has opened itself, of connections that had no entry.
    pub opened_without_entry: u64,
    /// Packets that the engine has sealed.
    pub sealed: u64,
    /// Packets that the engine would not seal, and the library did.
    pub sealed_in_software: u64,
    /// Packets that were compared with what the library opens.
    pub compared: u64,
    /// Packets whose bytes or numbers differed.
    pub different: u64,
    /// Buffers that were dropped since a packet would have left in the clear.
    pub dropped: u64,
    /// Key phases that the engine has followed the peer into.
    pub updates: u64,
    /// Ids that connections were known by.
    pub ids: u64,
    /// Entries made.
    pub admitted: u64,
    /// Requests for an entry that the engine has refused. A connection asks again with each packet
    /// that quinn opens.
    pub refused: u64,
    /// Entries that made room for others.
    pub evicted: u64,
}

/// The engine and the entries of its connections.
#[derive(Debug)]
pub struct Device {
    engine: QuicEngine,
    links: Links,
    config: DeviceConfig,
    entries: BTreeMap<u64, Entry>,
    /// Connections by the ids that are known of them.
    by_id: HashMap<ConnectionId, u64>,
    by_handle: HashMap<quic::Handle, u64>,
    counts: OffloadCounts,
}

impl Device {
    /// A device without connections.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(config: DeviceConfig) -> Result<Self, Failure> {
        let what = "beginning the engine";
        let mut hash_key = [0; 16];
        getrandom::fill(&mut hash_key).doing(what)?;
        let connections_max = config.connections_max;
        let engine = QuicEngine::new(&QuicConfig {
            connections_max,
            id_places: connections_max.max(1) as usize * 2 * quic::IDS_OF_CONNECTION_MAX,
            id_length: ID_LENGTH as u8,
            hash_key,
        });
        Ok(Self {
            engine: engine.doing(what)?,
            links: Links::default(),
            config,
            entries: BTreeMap::new(),
            by_id: HashMap::new(),
            by_handle: HashMap::new(),
            counts: OffloadCounts::default(),
        })
    }

    /// The links of its connections, for their sessions.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Takes a datagram: one of an offloaded connection is opened in place, with a mark that tells
    /// quinn. Any other stays as it came.
    pub fn receive(&mut self, datagram: &mut [u8]) {
        let Some((key, link)) = self.owner(datagram) else {
            return;
        };
        self.counts.eligible += 1;
        let before = self.config.is_compared.then(|| datagram.to_vec());
        match self.engine.receive(datagram) {
            Received::Opened(opened) => {
                self.counts.opened += 1;
                self.mark((key, &*link), datagram, before.as_deref(), &opened);
            }
            Received::Untouched(why) => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    entry.has_left(why == Untouched::NotOpened);
                }
            }
        }
    }

    /// The connection of a packet with a short header, if the engine has it.
    fn owner(&self, datagram: &[u8]) -> Option<(u64, Arc<Link>)> {
        let is_short = datagram.first()? & 0x80 == 0;
        let id = datagram.get(1..1 + ID_LENGTH).filter(|_| is_short)?;
        let key = *self.by_id.get(&ConnectionId::new(id)?)?;
        self.entries.get(&key).filter(|of| of.handle.is_some())?;
        Some((key, self.links.find(key)?))
    }

    fn mark(
        &mut self,
        (key, link): (u64, &Link),
        datagram: &mut [u8],
        before: Option<&[u8]>,
        opened: &Opened,
    ) {
        let moved = self.entries.get_mut(&key);
        let moved = moved.is_some_and(|of| of.has_moved(opened.generation));
        self.counts.updates += u64::from(moved);
        let marked = Marked { generation: opened.generation, number: opened.number };
        if let Some(before) = before {
            let frames = &datagram[opened.payload.clone()];
            self.counts.compared += 1;
            let same = opens_alike(link, (before, ID_LENGTH), frames, marked);
            self.counts.different += u64::from(!same);
        }
        let end = opened.payload.end;
        datagram[end..end + MARK_BYTES].copy_from_slice(&link.up.mark(marked));
    }

    /// Seals the packets of a buffer that quinn has left unsealed.
    pub(crate) fn seal(
        &mut self,
        link: &Link,
        unsealed: &[Unsealed],
        buffer: (&mut [u8], usize),
    ) -> Result<(), Unsealable> {
        if unsealed.is_empty() {
            return Ok(());
        }
        let entry = self.entries.entry(link.key).or_default();
        match entry.seal(&mut self.engine, link, unsealed, buffer) {
            Ok(sealed) => {
                self.counts.sealed += sealed.by_engine;
                self.counts.sealed_in_software += sealed.in_software;
                Ok(())
            }
            Err(misplaced) => {
                self.counts.dropped += 1;
                Err(misplaced)
            }
        }
    }

    /// Brings the table up to date with what links have called about.
    pub fn tend(&mut self) {
        for key in self.links.take_called() {
            match self.links.find(key) {
                Some(link) => {
                    link.is_heard();
                    self.tend_to(&link);
                }
                None => self.forget(key),
            }
        }
    }

    fn tend_to(&mut self, link: &Link) {
        let entry = self.entries.entry(link.key).or_default();
        let told = entry.tell(&mut self.engine, link);
        self.note(link.key, &told);
        let Some(entry) = self.entries.get_mut(&link.key) else {
            return;
        };
        match entry.admit(&mut self.engine, &self.config.policy, link) {
            Some(Ok(admitted)) => {
                self.counts.admitted += 1;
                self.by_handle.insert(admitted.connection, link.key);
                if let Some((handle, removed)) = admitted.evicted {
                    self.evict(handle, &removed);
                }
            }
            Some(Err(_)) => self.counts.refused += 1,
            None => {}
        }
    }

    fn evict(&mut self, handle: quic::Handle, removed: &quic::Removed) {
        self.counts.evicted += 1;
        let Some(key) = self.by_handle.remove(&handle) else {
            return;
        };
        if let (Some(entry), Some(link)) = (self.entries.get_mut(&key), self.links.find(key)) {
            entry.has_lost(removed, &link);
        }
    }

    fn note(&mut self, key: u64, told: &Told) {
        self.counts.taken += told.taken;
        self.counts.opened_in_software += told.opened;
        self.counts.left_to_software += told.left;
        self.counts.opened_without_entry += told.without_entry;
        self.counts.ids += told.added.len() as u64;
        for id in &told.removed {
            if self.by_id.get(id) == Some(&key) {
                self.by_id.remove(id);
            }
        }
        self.by_id.extend(told.added.iter().map(|id| (*id, key)));
    }

    /// quinn has issued an id for a connection, which is known before the peer uses it.
    pub(crate) fn add_id(&mut self, link: &Link, id: ConnectionId) {
        let mut told = Told::default();
        let entry = self.entries.entry(link.key).or_default();
        entry.add_id(&mut self.engine, id, &mut told);
        self.note(link.key, &told);
    }

    fn forget(&mut self, key: u64) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        if let Some(handle) = entry.handle {
            self.engine.remove(handle);
            self.by_handle.remove(&handle);
        }
        for id in entry.ids() {
            if self.by_id.get(id) == Some(&key) {
                self.by_id.remove(id);
            }
        }
    }

    /// The counts up to now. Links do not call for what quinn has taken: it is looked up here.
    #[must_use]
    pub fn counts(&mut self) -> OffloadCounts {
        self.tend();
        for link in self.entries.keys().filter_map(|key| self.links.find(*key)) {
            self.counts.taken += std::mem::take(&mut link.notes().taken);
        }
        self.counts.taken += self.links.take_taken();
        self.counts
    }

    /// Connections, and their ids, that the engine has.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        self.engine.sizes()
    }
}

/// Bytes of the ids that this host issues: the length of quinn's own.
pub const ID_LENGTH: usize = 8;
