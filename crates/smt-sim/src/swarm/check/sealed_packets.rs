// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packets that NICs have sealed (PSP), judged by what leaves hosts: no two have one IV under
//! one association, and no record without a seal of its own leaves outside of them (SPEC §15.4).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use smt_proto::Time;
use smt_wire::{DataHeader, PacketType, RECORD_HEADER_LEN, TAG_LEN};

use super::{Checker, Failure};
use crate::net::network::Tap;
use crate::net::packet::{HostId, Packet, Protocol, packets_of};

/// Watches all packets that leave.
#[derive(Debug)]
pub(crate) struct SealedPackets {
    /// Hosts whose devices give no SPI twice.
    lasting: BTreeSet<HostId>,
    /// IVs by the receiver and its SPI: a device allocates each of them for one sender.
    used: BTreeSet<(HostId, [u8; SPI_BYTES], [u8; IV_BYTES])>,
    failure: Option<Failure>,
}

impl SealedPackets {
    /// The devices of these hosts give no SPI twice. The IVs of others are not judged.
    pub(crate) fn new(lasting: impl IntoIterator<Item = HostId>) -> Self {
        Self { lasting: lasting.into_iter().collect(), used: BTreeSet::new(), failure: None }
    }

    /// The failure that was found first.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn departed(&mut self, packet: &Packet) {
        let text = match packet.protocol {
            Protocol::Psp => self.repeated_iv(packet),
            Protocol::Smt => bare_record(packet),
            Protocol::Tcp => None,
        };
        if let Some(text) = text {
            let failure = Failure::new(Checker::Sealing, text);
            self.failure.get_or_insert(failure);
        }
    }

    fn repeated_iv(&mut self, packet: &Packet) -> Option<String> {
        let (to, header) = (packet.to, packet.bytes.get(SPI_AT..)?);
        let (spi, behind) = header.split_first_chunk()?;
        let iv = behind.first_chunk()?;
        let is_repeated = self.lasting.contains(&to) && !self.used.insert((to, *spi, *iv));
        is_repeated.then(|| {
            let from = packet.from;
            format!("{from:?} sent {to:?} two packets of IV {iv:x?} under SPI {spi:x?}")
        })
    }
}

/// A record without a seal that begins in a packet's DATA and ends there.
fn bare_record(packet: &Packet) -> Option<String> {
    let data = packets_of(&packet.bytes).filter(|(of, _)| *of == PacketType::Data);
    let mut payloads = data.filter_map(|(_, bytes)| bytes.get(DataHeader::LEN..));
    let is_bare = payloads.any(|payload| {
        // A packet in the middle of a record has anything here.
        let is_record = payload.starts_with(&RECORD_BEGINS);
        let length = payload.get(RECORD_LENGTH_AT..RECORD_HEADER_LEN);
        let length = length.and_then(|length| length.try_into().ok());
        let end = RECORD_HEADER_LEN + length.map_or(0, |length| u16::from_be_bytes(length).into());
        let tag = payload.get(end.saturating_sub(TAG_LEN)..end);
        is_record && tag == Some(&[0; TAG_LEN])
    });
    let (from, to) = (packet.from, packet.to);
    is_bare.then(|| format!("{from:?} sent {to:?} a record without a seal in a packet without one"))
}

/// Watches a network.
pub(crate) struct SealedPacketsTap(pub(crate) Rc<RefCell<SealedPackets>>);

impl Tap for SealedPacketsTap {
    fn departed(&mut self, _now: Time, packet: &Packet) {
        self.0.borrow_mut().departed(packet);
    }

    fn arrived(&mut self, _now: Time, _packet: &Packet) {}
}

/// Where the SPI is in the header of PSP, with the IV behind it.
const SPI_AT: usize = 4;
const SPI_BYTES: usize = 4;
const IV_BYTES: usize = 8;
/// The type and version of every record (SPEC §5.1).
const RECORD_BEGINS: [u8; 3] = [0x17, 3, 3];
const RECORD_LENGTH_AT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: Protocol, bytes: Vec<u8>) -> Packet {
        Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: bytes.into(),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol,
        }
    }

    fn sealed(spi: u8, iv: u8) -> Packet {
        let mut bytes = vec![0; 60];
        (bytes[7], bytes[15]) = (spi, iv);
        packet(Protocol::Psp, bytes)
    }

    #[test]
    fn an_iv_leaves_once_under_an_association() {
        let mut watch = SealedPackets::new([HostId(1)]);
        for (spi, iv) in [(1, 1), (1, 2), (2, 1)] {
            watch.departed(&sealed(spi, iv));
        }
        assert!(watch.failure().is_none());
        watch.departed(&sealed(1, 2));
        assert!(watch.failure().is_some());
    }

    #[test]
    fn ivs_of_hosts_whose_spis_come_again_are_not_judged() {
        let mut watch = SealedPackets::new([HostId(0)]);
        watch.departed(&sealed(1, 1));
        watch.departed(&sealed(1, 1));
        assert!(watch.failure().is_none());
    }

    /// A DATA packet with a record of 4 bytes and this tag.
    fn record(tag: [u8; TAG_LEN]) -> Packet {
        let mut bytes = vec![0; DataHeader::LEN];
        (bytes[0], bytes[1], bytes[4]) = (smt_wire::VERSION, PacketType::Data as u8, 0xB0);
        bytes[31] = 25;
        bytes.extend([0x17, 3, 3, 0, 20, 1, 2, 3, 4]);
        bytes.extend(tag);
        let length = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&length.to_be_bytes());
        packet(Protocol::Smt, bytes)
    }

    #[test]
    fn a_record_without_a_seal_leaves_in_sealed_packets_alone() {
        let mut watch = SealedPackets::new([]);
        watch.departed(&record([7; TAG_LEN]));
        assert!(watch.failure().is_none());
        watch.departed(&record([0; TAG_LEN]));
        assert!(watch.failure().is_some());
    }
}
