// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of the receive side that open whole packets before they are merged, and the hash that
//! chooses a packet's queue.

use alloc::vec::Vec;

use super::rss::Rss;
use super::unwrapped_by::UnwrappedBy;
use crate::Counters;
use crate::esp::{InboundTable, Outcome, Refused};
use crate::headers::{Headers, Transport};
use crate::psp::{DeviceKeys, inbound as psp};

/// The associations of ESP and the keys of PSP.
#[derive(Clone, Debug)]
pub(crate) struct Openers {
    rss: Rss,
    smt_protocol: u8,
    pub(crate) associations: InboundTable,
    pub(crate) psp: DeviceKeys,
    /// Where a packet is opened.
    opened: Vec<u8>,
}

/// The hash of a packet, and the packet as it goes on; `None` if it ends in the device.
pub(super) struct Unwrapped<'a> {
    pub(super) hash: u32,
    pub(super) packet: Option<BarePacket<'a>>,
}

/// A packet as it came, or as it was opened.
pub(super) struct BarePacket<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) headers: Option<Headers>,
    pub(super) association: Option<UnwrappedBy>,
}

impl Openers {
    pub(super) fn new(rss: Rss, smt_protocol: u8, associations_max: usize) -> Self {
        Self {
            rss,
            smt_protocol,
            associations: InboundTable::new(associations_max),
            psp: DeviceKeys::default(),
            opened: Vec::new(),
        }
    }

    /// Opens a packet, if it is of ESP or PSP.
    pub(super) fn open<'a>(
        &'a mut self,
        packet: &'a [u8],
        counters: &mut Counters,
    ) -> Unwrapped<'a> {
        let headers = Headers::parse(packet, self.smt_protocol);
        match headers {
            Some(sealed) if sealed.transport == Transport::Esp => {
                self.open_esp(packet, sealed, counters)
            }
            Some(sealed) if psp::is_for_psp(packet, &sealed) => {
                self.open_psp(packet, sealed, counters)
            }
            _ => self.as_it_came(packet, headers),
        }
    }

    /// The queue of a packet of ESP is by its SPI, opened or not.
    fn open_esp<'a>(
        &'a mut self,
        packet: &'a [u8],
        sealed: Headers,
        counters: &mut Counters,
    ) -> Unwrapped<'a> {
        let hash = self.rss.hash(packet, &sealed);
        self.opened.clear();
        self.opened.extend_from_slice(packet);
        let outcome = self.associations.open(&mut self.opened, &sealed);
        counters.count_esp(outcome);
        match outcome {
            Outcome::Opened { spi, .. } => {
                let association = UnwrappedBy::Esp(spi);
                Unwrapped { hash, ..self.opened(association) }
            }
            Outcome::Unknown => self.as_it_came(packet, Some(sealed)),
            Outcome::Dummy | Outcome::Refused(_) => Unwrapped { hash, packet: None },
        }
    }

    /// The queue of an opened packet of PSP is that of the packet inside.
    fn open_psp<'a>(
        &'a mut self,
        packet: &'a [u8],
        sealed: Headers,
        counters: &mut Counters,
    ) -> Unwrapped<'a> {
        let Some(keys) = self.psp.get() else {
            return self.as_it_came(packet, Some(sealed));
        };
        self.opened.clear();
        self.opened.extend_from_slice(packet);
        let outcome = psp::open(keys, &mut self.opened, &sealed, self.smt_protocol);
        counters.count_psp(outcome);
        match outcome {
            psp::Outcome::Opened { spi } => self.opened(UnwrappedBy::Psp(spi)),
            psp::Outcome::Unknown => self.as_it_came(packet, Some(sealed)),
            psp::Outcome::NotAuthentic | psp::Outcome::Malformed => {
                Unwrapped { hash: self.rss.hash(packet, &sealed), packet: None }
            }
        }
    }

    /// The packet that was opened last.
    fn opened(&self, association: UnwrappedBy) -> Unwrapped<'_> {
        let headers = Headers::parse(&self.opened, self.smt_protocol);
        let opened = self.as_it_came(&self.opened, headers);
        Unwrapped {
            packet: opened
                .packet
                .map(|packet| BarePacket { association: Some(association), ..packet }),
            ..opened
        }
    }

    fn as_it_came<'a>(&self, packet: &'a [u8], headers: Option<Headers>) -> Unwrapped<'a> {
        Unwrapped {
            hash: headers.map_or(0, |headers| self.rss.hash(packet, &headers)),
            packet: Some(BarePacket { bytes: packet, headers, association: None }),
        }
    }
}

impl Counters {
    fn count_esp(&mut self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Opened { .. } | Outcome::Dummy => &mut self.esp_opened,
            Outcome::Unknown => &mut self.esp_unknown,
            Outcome::Refused(Refused::Replayed) => &mut self.esp_replayed,
            Outcome::Refused(Refused::NotAuthentic) => &mut self.esp_not_authentic,
            Outcome::Refused(Refused::Malformed) => &mut self.esp_malformed,
        };
        *counter += 1;
    }

    fn count_psp(&mut self, outcome: psp::Outcome) {
        let counter = match outcome {
            psp::Outcome::Opened { .. } => &mut self.psp_opened,
            psp::Outcome::Unknown => &mut self.psp_unknown,
            psp::Outcome::NotAuthentic => &mut self.psp_not_authentic,
            psp::Outcome::Malformed => &mut self.psp_malformed,
        };
        *counter += 1;
    }
}
