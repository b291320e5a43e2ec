// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in: associations by their SPI, in a table of a fixed size.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use thiserror::Error;

use super::cipher::Cipher;
use super::replay_window::{ReplayWindow, Stale};
use super::suite::EspSuite;
use super::{FIRST_SPI, HEADER, NO_NEXT, last_number, trailer};
use crate::big_endian::{u16_at, u32_at};
use crate::headers::{Headers, Transport};

/// Numbers of a replay window.
pub const WINDOW_WIDTHS: RangeInclusive<u32> = 32..=65_536;

/// An association for packets in, as the host hands it to the device.
#[derive(Clone, Copy)]
pub struct Association<'a> {
    /// This host's choice, 256 or more.
    pub spi: u32,
    /// The transform.
    pub suite: EspSuite,
    /// Key and salt.
    pub material: &'a [u8],
    /// Whether numbers have 64 bits.
    pub is_extended: bool,
    /// The first number that is taken: those before it count as seen.
    pub first_number: u64,
    /// The width of the replay window, in [`WINDOW_WIDTHS`].
    pub replay_window: u32,
}

/// The associations of a device for packets in.
#[derive(Clone, Debug)]
pub struct InboundTable {
    entries: BTreeMap<u32, Entry>,
    most: usize,
}

#[derive(Clone)]
struct Entry {
    cipher: Cipher,
    is_extended: bool,
    window: ReplayWindow,
    opened: u64,
}

/// The outcome of a packet of ESP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was opened: the bytes are those of the packet that was sealed.
    Opened {
        /// The SPI of its association.
        spi: u32,
        /// Its whole number.
        number: u64,
    },
    /// It was a dummy, which ends here (RFC 4303 §2.6).
    Dummy,
    /// The table has no association for it: it is as it came.
    Unknown,
    /// It is dropped.
    Refused(Refused),
}

/// Why a packet of an association is dropped (RFC 4303 §3.4.3, §3.4.4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Refused {
    /// It is too short, the checksum of its IPv4 header is wrong, or its trailer is not what a
    /// sender writes.
    Malformed,
    /// A packet of its number was opened before, or it is below the window.
    Replayed,
    /// It does not authenticate.
    NotAuthentic,
}

/// An association cannot be added.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum EspTableError {
    /// The device has no room: the association stays with the host's software.
    #[error("the device has no room for the association")]
    NoRoom,
    /// Another association has the SPI.
    #[error("the SPI is in use")]
    SpiInUse,
    /// The SPI is reserved.
    #[error("the SPI is reserved")]
    ReservedSpi,
    /// The keying material is not of the suite's length.
    #[error("the keying material is not of the suite's length")]
    BadKeyLength,
    /// The first number is none, or beyond the last.
    #[error("the first number is none of the association")]
    BadNumber,
    /// The width of the window is not in [`WINDOW_WIDTHS`].
    #[error("the device has no replay window of such a width")]
    BadWindow,
}

/// The state of an association that the device has no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RemovedAssociation {
    /// The highest number that was opened; 0 before the first.
    pub highest: u64,
    /// Packets that were opened.
    pub opened: u64,
}

impl InboundTable {
    /// A table of so many associations at most.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), most }
    }

    /// Adds an association.
    ///
    /// # Errors
    /// [`EspTableError`]; then nothing has changed.
    pub fn add(&mut self, association: &Association<'_>) -> Result<(), EspTableError> {
        if self.entries.contains_key(&association.spi) {
            return Err(EspTableError::SpiInUse);
        }
        if self.entries.len() >= self.most {
            return Err(EspTableError::NoRoom);
        }
        let entry = Entry::new(association)?;
        self.entries.insert(association.spi, entry);
        Ok(())
    }

    /// Removes an association. Its packets go up as they came from now on.
    pub fn remove(&mut self, spi: u32) -> Option<RemovedAssociation> {
        let entry = self.entries.remove(&spi)?;
        Some(RemovedAssociation { highest: entry.window.highest(), opened: entry.opened })
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many associations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Opens a packet of ESP in place, which begins with these headers. Bytes of a packet that is
    /// refused are worthless.
    pub fn open(&mut self, packet: &mut Vec<u8>, headers: &Headers) -> Outcome {
        if headers.transport != Transport::Esp {
            return Outcome::Unknown;
        }
        let spi = u32_at(packet, headers.transport_at);
        match self.entries.get_mut(&spi) {
            None => Outcome::Unknown,
            Some(entry) => match entry.open(packet, headers) {
                Ok((NO_NEXT, _)) => Outcome::Dummy,
                Ok((_, number)) => Outcome::Opened { spi, number },
                Err(why) => Outcome::Refused(why),
            },
        }
    }
}

impl Entry {
    fn new(of: &Association<'_>) -> Result<Self, EspTableError> {
        if of.spi < FIRST_SPI {
            return Err(EspTableError::ReservedSpi);
        }
        if !(1..=last_number(of.is_extended)).contains(&of.first_number) {
            return Err(EspTableError::BadNumber);
        }
        if !WINDOW_WIDTHS.contains(&of.replay_window) {
            return Err(EspTableError::BadWindow);
        }
        let cipher = Cipher::new(of.suite, of.material).ok_or(EspTableError::BadKeyLength)?;
        Ok(Self {
            cipher,
            is_extended: of.is_extended,
            window: ReplayWindow::new(of.replay_window, of.is_extended, of.first_number),
            opened: 0,
        })
    }

    /// Opens a packet: its next header and its number.
    fn open(&mut self, packet: &mut Vec<u8>, headers: &Headers) -> Result<(u8, u64), Refused> {
        let suite = self.cipher.suite();
        // Bytes behind the IP packet, with which Ethernet pads it, are none of it.
        let length = headers.ip_length(packet);
        let payload_at = headers.transport_at + HEADER + suite.iv_bytes();
        let text_end = length.checked_sub(suite.icv_bytes());
        let text_end = text_end.filter(|end| *end >= payload_at + trailer::TRAILER_MIN);
        let text_end = text_end.ok_or(Refused::Malformed)?;
        if length > packet.len() {
            return Err(Refused::Malformed);
        }
        packet.truncate(length);
        // The checksum is made anew, and would hide that the header was broken on its way.
        if !headers.is_ip_checksum_right(packet) {
            return Err(Refused::Malformed);
        }
        let number = self.number_of(packet, headers)?;
        let high = self.is_extended.then_some((number >> 32) as u32);
        let esp = &mut packet[headers.transport_at..];
        let opened = self.cipher.open(esp, high);
        opened.map_err(|_| Refused::NotAuthentic)?;
        self.window.take(number);
        let (payload, next_header) =
            trailer::read(&packet[payload_at..text_end]).ok_or(Refused::Malformed)?;
        let payload =
            without_traffic_padding(&packet[payload_at..payload_at + payload], next_header);
        packet.truncate(payload_at + payload);
        packet.drain(headers.transport_at..payload_at);
        packet[headers.ip.next_header_at()] = next_header;
        headers.write_ip_length(packet);
        self.opened += 1;
        Ok((next_header, number))
    }

    /// The whole number, if it may be opened.
    fn number_of(&self, packet: &[u8], headers: &Headers) -> Result<u64, Refused> {
        let low = u32_at(packet, headers.transport_at + 4);
        let number = self.window.restore(low);
        let fresh = number.and_then(|number| self.window.check(number).map(|()| number));
        fresh.map_err(|stale| match stale {
            Stale::Seen | Stale::BelowWindow => Refused::Replayed,
        })
    }
}

/// Bytes of a payload without what a sender has put behind a datagram to hide its length (RFC 4303
/// §2.7). Only UDP tells its own length.
fn without_traffic_padding(payload: &[u8], next_header: u8) -> usize {
    const UDP: u8 = 17;
    if next_header != UDP || payload.len() < 8 {
        return payload.len();
    }
    let own = usize::from(u16_at(payload, 4));
    match (8..payload.len()).contains(&own) {
        true => own,
        false => payload.len(),
    }
}

/// No byte of a key.
impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Entry")
            .field("highest", &self.window.highest())
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

/// No byte of a key.
impl core::fmt::Debug for Association<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Association")
            .field("spi", &self.spi)
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}
