// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets in: what comes to the port of PSP is opened, and becomes a native packet of SMT.

use alloc::vec::Vec;

use super::master_keys::MasterKeys;
use super::packet::OpenFailed;
use super::{PORT, UDP_BYTES};
use crate::big_endian::u16_at;
use crate::headers::{Headers, Transport};
use crate::segment_place;

/// The answer to a packet that has come to the port of PSP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// It was opened.
    Opened {
        /// The SPI under which it was.
        spi: u32,
    },
    /// It is no packet of PSP, of a version or a device key that the device does not have, or has
    /// no SMT in it. It goes up as it came, without a mark.
    Unknown,
    /// It is dropped: its ICV is wrong.
    NotAuthentic,
    /// It is dropped: the headers before PSP are wrong, or what is inside is no native packet that
    /// has left alone.
    Malformed,
}

/// Whether a packet with these headers is one for PSP.
pub(crate) fn is_for_psp(packet: &[u8], headers: &Headers) -> bool {
    headers.transport == Transport::Udp && u16_at(packet, headers.transport_at + 2) == PORT
}

/// Opens a packet that is one for PSP ([`is_for_psp`]). Unless it is [`Outcome::Opened`], its bytes
/// are worthless.
pub(crate) fn open(
    keys: &MasterKeys,
    packet: &mut Vec<u8>,
    headers: &Headers,
    smt_protocol: u8,
) -> Outcome {
    let psp_at = headers.transport_at + UDP_BYTES;
    if packet.get(psp_at) != Some(&smt_protocol) {
        return Outcome::Unknown;
    }
    // Bytes behind the IP packet, with which Ethernet pads it, are none of it.
    let length = headers.ip_length(packet);
    let udp_length = usize::from(u16_at(packet, headers.transport_at + 4));
    // The checksum is made anew, and would hide that the header was broken on its way.
    let is_whole = length <= packet.len()
        && headers.transport_at + udp_length == length
        && udp_length >= UDP_BYTES
        && headers.is_ip_checksum_right(packet);
    if !is_whole {
        return Outcome::Malformed;
    }
    packet.truncate(length);
    let opened = match keys.open(&mut packet[psp_at..]) {
        Ok(opened) => opened,
        Err(OpenFailed::Malformed | OpenFailed::NoKey) => return Outcome::Unknown,
        Err(OpenFailed::Forged) => return Outcome::NotAuthentic,
    };
    packet.truncate(psp_at + opened.payload.end);
    packet.drain(headers.transport_at..psp_at + opened.payload.start);
    packet[headers.ip.next_header_at()] = smt_protocol;
    headers.write_ip_length(packet);
    match is_alone(packet, smt_protocol) {
        true => Outcome::Opened { spi: opened.spi },
        false => Outcome::Malformed,
    }
}

/// Whether an opened packet is a native one that has left alone. The place of a packet in a segment
/// would be in its header of IP, which nobody has authenticated.
fn is_alone(packet: &[u8], smt_protocol: u8) -> bool {
    let headers = Headers::parse(packet, smt_protocol);
    headers.is_some_and(|headers| {
        headers.transport == Transport::Smt && !segment_place::is_marked(packet, &headers)
    })
}
