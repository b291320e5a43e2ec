// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 1-RTT keys that quinn gets: they leave out what the engine does, by the packet's mark.

use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use crate::built;
use crate::capture::{SharedHeaderKey, SharedPacketKey};
use crate::link::Link;
use crate::mark::{MARK_BYTES, Marked};
use crate::notes::Unsealed;

/// The packet key of one direction and key phase.
pub(crate) struct LinkedPacketKey {
    pub(crate) link: Arc<Link>,
    pub(crate) generation: u64,
    pub(crate) library: SharedPacketKey,
}

impl LinkedPacketKey {
    fn marked(&self, number: u64) -> Marked {
        Marked { generation: self.generation, number }
    }
}

impl PacketKey for LinkedPacketKey {
    /// Leaves the packet as it is, with a mark, if the engine seals.
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let mut notes = self.link.notes();
        notes.sends(self.generation, buf.len());
        if !notes.is_offloaded {
            notes.sealed += 1;
            drop(notes);
            return self.library.encrypt(packet, buf, header_len);
        }
        let is_first = notes.unsealed.is_empty();
        let number_bytes = usize::from(buf[0] & 3) + 1;
        notes.unsealed.push(Unsealed {
            number: packet,
            generation: self.generation,
            length: buf.len(),
            id_length: header_len - 1 - number_bytes,
        });
        drop(notes);
        let at = buf.len() - MARK_BYTES;
        buf[at..].copy_from_slice(&self.link.down.mark(self.marked(packet)));
        if is_first {
            self.link.has_unsealed();
        }
        built::note(&self.link);
    }

    /// Takes a packet with the mark of its number as opened; opens any other.
    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let bytes = header.len() + payload.len();
        if self.link.up.is_at_end(payload, self.marked(packet)) {
            payload.truncate(payload.len() - MARK_BYTES);
            let mut notes = self.link.notes();
            notes.taken += 1;
            notes.has_opened(self.generation, bytes);
            return Ok(());
        }
        let opened = self.library.decrypt(packet, header, payload);
        let mut notes = self.link.notes();
        match &opened {
            Ok(()) => {
                notes.has_opened(self.generation, bytes);
                notes.has_opened_itself(packet, header);
            }
            Err(_) => notes.failures += 1,
        }
        drop(notes);
        self.link.call();
        opened
    }

    fn tag_len(&self) -> usize {
        self.library.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.library.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.library.integrity_limit()
    }
}

/// quinn forgets the keys of the phase before some time after an update (RFC 9001 §6.5).
impl Drop for LinkedPacketKey {
    fn drop(&mut self) {
        let mut notes = self.link.notes();
        notes.forgotten = notes.forgotten.max(Some(self.generation));
        drop(notes);
        self.link.call();
    }
}

/// The header protection of one direction.
pub(crate) struct LinkedHeaderKey {
    pub(crate) link: Arc<Link>,
    pub(crate) library: SharedHeaderKey,
}

impl HeaderKey for LinkedHeaderKey {
    /// The engine has taken the protection off where the mark's number is the header's.
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let number = self.link.up.plausible_number(packet);
        if !number.is_some_and(|number| has_number(packet, pn_offset, number)) {
            self.library.decrypt(pn_offset, packet);
        }
    }

    /// Called for each packet behind [`LinkedPacketKey::encrypt`], which has left its mark if the
    /// engine is to protect it.
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let last = self.link.notes().unsealed.last().copied();
        let is_unsealed = last.is_some_and(|last| self.link.down.is_at_end(packet, last.marked()));
        if !is_unsealed {
            self.library.encrypt(pn_offset, packet);
        }
    }

    fn sample_size(&self) -> usize {
        self.library.sample_size()
    }
}

impl Unsealed {
    pub(crate) fn marked(&self) -> Marked {
        Marked { generation: self.generation, number: self.number }
    }
}

/// Whether the header without protection has the last bytes of this number.
fn has_number(packet: &[u8], pn_offset: usize, number: u64) -> bool {
    let number_bytes = usize::from(packet[0] & 3) + 1;
    let bytes = packet.get(pn_offset..pn_offset + number_bytes);
    bytes.is_some_and(|bytes| *bytes == number.to_be_bytes()[8 - number_bytes..])
}
