// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outer header of tunnel mode (RFC 4301 §5.1.2, RFC 6040).

use std::net::IpAddr;

use crate::error::OpenError;
use crate::ip::{self, IPV4_HEADER_LEN, IPV6_HEADER_LEN, protocol};

/// The Don't Fragment bit of an outer IPv4 header (RFC 4301 §8.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DontFragment {
    /// The inner packet's; set for an inner IPv6 packet, which no router fragments.
    #[default]
    Copy,
    /// Always set.
    Set,
    /// Always clear.
    Clear,
}

/// The outer header of a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunnelHeader {
    /// The outer source.
    pub source: IpAddr,
    /// The outer destination, of the same version.
    pub destination: IpAddr,
    /// The outer DSCP, 0 to 63; the inner packet's if it is not set.
    pub dscp: Option<u8>,
    /// The outer Don't Fragment bit, of IPv4.
    pub dont_fragment: DontFragment,
    /// The outer TTL or hop limit.
    pub hop_limit: u8,
}

impl TunnelHeader {
    /// A header that copies DSCP and Don't Fragment, with 64 hops.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self { source, destination, dscp: None, dont_fragment: DontFragment::Copy, hop_limit: 64 }
    }

    pub(crate) const fn length(&self) -> usize {
        if self.source.is_ipv4() { IPV4_HEADER_LEN } else { IPV6_HEADER_LEN }
    }

    /// The outer header for an inner packet. The length is still to be set, and the protocol is
    /// ESP. `identification` is the IPv4 header's.
    ///
    /// # Panics
    /// If `out` is not [`Self::length`] bytes long.
    pub(crate) fn write(&self, out: &mut [u8], inner: Inner, identification: u16) {
        let traffic_class = self.dscp.map_or(inner.traffic_class, |dscp| {
            // RFC 6040 §4.1, normal mode: the outer ECN field is the inner one's.
            (dscp << 2) | (inner.traffic_class & ECN)
        });
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                out.fill(0);
                out[0] = 0x45;
                out[1] = traffic_class;
                out[4..6].copy_from_slice(&identification.to_be_bytes());
                out[6] = if self.is_unfragmented(inner) { 0x40 } else { 0 };
                out[8] = self.hop_limit;
                out[9] = protocol::ESP;
                out[12..16].copy_from_slice(&source.octets());
                out[16..].copy_from_slice(&destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                out.fill(0);
                out[0] = 0x60 | (traffic_class >> 4);
                out[1] = traffic_class << 4;
                out[6] = protocol::ESP;
                out[7] = self.hop_limit;
                out[8..24].copy_from_slice(&source.octets());
                out[24..].copy_from_slice(&destination.octets());
            }
            _ => unreachable!("both addresses are of one version: checked when it was added"),
        }
    }

    const fn is_unfragmented(&self, inner: Inner) -> bool {
        match self.dont_fragment {
            DontFragment::Copy => inner.dont_fragment,
            DontFragment::Set => true,
            DontFragment::Clear => false,
        }
    }
}

/// The fields that an outer header has from the inner one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    pub(crate) traffic_class: u8,
    pub(crate) dont_fragment: bool,
}

impl Inner {
    /// # Panics
    /// If `packet` has no whole header.
    pub(crate) fn of(packet: &[u8], traffic_class: u8) -> Self {
        Self { traffic_class, dont_fragment: packet[0] >> 4 == 6 || packet[6] & 0x40 != 0 }
    }
}

/// The two bits of ECN in a traffic class.
const ECN: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const ECT_1: u8 = 0b01;
const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;

/// Brings the congestion mark of an outer header into the inner one (RFC 6040 §4.2, which updates
/// RFC 4301 §5.1.2).
///
/// # Panics
/// If `packet` has no whole header.
pub(crate) fn carry_congestion(
    packet: &mut [u8],
    inner_class: u8,
    outer_class: u8,
) -> Result<(), OpenError> {
    let ecn = match (inner_class & ECN, outer_class & ECN) {
        (NOT_ECT, CE) => return Err(OpenError::Congestion),
        (ECT_0 | ECT_1, CE) => CE,
        (ECT_0, ECT_1) => ECT_1,
        _ => return Ok(()),
    };
    let class = (inner_class & !ECN) | ecn;
    if packet[0] >> 4 == 6 {
        packet[1] = (packet[1] & 0x0F) | (class << 4);
    } else {
        packet[1] = class;
        ip::set_v4_checksum(packet);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_reaches_the_inner_header_by_the_table_of_rfc_6040() {
        // Rows: inner Not-ECT, ECT(0), ECT(1), CE. Columns: the outer field, in the same order.
        let table = [
            [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None],
            [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)],
            [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)],
            [Some(CE), Some(CE), Some(CE), Some(CE)],
        ];
        let order = [NOT_ECT, ECT_0, ECT_1, CE];
        for (row, inner) in order.into_iter().enumerate() {
            for (column, outer) in order.into_iter().enumerate() {
                let class = (46 << 2) | inner;
                let mut v4 = [0; 20];
                v4[..2].copy_from_slice(&[0x45, class]);
                let mut v6 = [0; 40];
                v6[..2].copy_from_slice(&[0x60 | (class >> 4), (class << 4) | 0x0A]);
                let results = [
                    carry_congestion(&mut v4, class, outer).ok().map(|()| v4[1]),
                    carry_congestion(&mut v6, class, outer)
                        .ok()
                        .map(|()| (v6[0] << 4) | (v6[1] >> 4)),
                ];
                let expected = table[row][column].map(|ecn| (46 << 2) | ecn);
                assert_eq!(results, [expected; 2], "inner {inner:02b}, outer {outer:02b}");
                assert_eq!(v6[1] & 0x0F, 0x0A, "the flow label stays");
            }
        }
    }
}
