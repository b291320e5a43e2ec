// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames without a datagram that could be SMT's: how many, and why.
//!
//! A frame that cannot be read may have had packets of SMT: it is never told as if it had none.

use std::collections::BTreeMap;
use std::fmt;

/// Why a frame was passed over.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reason {
    /// A link type that is not read here.
    LinkType(u32),
    /// Neither IP nor a header in front of it that is read here.
    EtherType(u16),
    /// PPP of something else than IP.
    PppProtocol(u16),
    /// IP of another protocol.
    IpProtocol(u8),
    /// A fragment of an IP packet.
    Fragment,
    /// A header is cut short, or contradicts itself.
    BadHeader,
}

impl Reason {
    /// Whether the frame may have had a datagram of SMT, for all that is known.
    fn is_unread(self) -> bool {
        match self {
            Self::LinkType(_) | Self::BadHeader => true,
            Self::EtherType(number) => ether_type(number).is_none(),
            // Those from 0x8000 on control the link.
            Self::PppProtocol(number) => number < 0x8000,
            Self::IpProtocol(_) | Self::Fragment => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::LinkType(number) => {
                write!(f, "link type {number}")?;
                link_type(number)
            }
            Self::EtherType(number) => {
                write!(f, "EtherType 0x{number:04x}")?;
                ether_type(number)
            }
            Self::PppProtocol(number) => return write!(f, "PPP protocol 0x{number:04x}"),
            Self::IpProtocol(number) => {
                write!(f, "IP protocol {number}")?;
                ip_protocol(number)
            }
            Self::Fragment => return f.write_str("fragments of IP"),
            Self::BadHeader => return f.write_str("headers cut short or malformed"),
        };
        name.map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}

/// The frames of a capture that were passed over, by reason. As text: `31 of link type 147 (USER0),
/// 2 of fragments of IP`, the commonest reason first, and nothing without frames.
#[derive(Debug, Default)]
pub struct PassedOver(BTreeMap<Reason, u64>);

impl PassedOver {
    /// Whether there are any.
    pub fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Frames that may have had datagrams of SMT.
    pub(crate) fn unread(&self) -> u64 {
        self.0.iter().filter(|(reason, _)| reason.is_unread()).map(|(_, count)| count).sum()
    }

    /// The reasons with their frames, the commonest first.
    pub(crate) fn by_count(&self) -> Vec<(Reason, u64)> {
        let mut rows: Vec<_> = self.0.iter().map(|(reason, count)| (*reason, *count)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rows
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.by_count();
        let others: u64 = rows.iter().skip(REASONS_TOLD_MAX).map(|(_, count)| count).sum();
        let mut told: Vec<String> = rows
            .iter()
            .take(REASONS_TOLD_MAX)
            .map(|(reason, count)| format!("{count} of {reason}"))
            .collect();
        told.extend((others > 0).then(|| format!("{others} for other reasons")));
        f.write_str(&told.join(", "))
    }
}

/// A line needs no more.
const REASONS_TOLD_MAX: usize = 8;

/// Names of <https://www.tcpdump.org/linktypes.html> that captures of networks have.
fn link_type(number: u32) -> Option<&'static str> {
    Some(match number {
        6 => "IEEE 802.5",
        105 => "IEEE 802.11",
        127 => "IEEE 802.11 with radiotap",
        147 => "USER0",
        189 | 220 => "USB",
        195 => "IEEE 802.15.4",
        201 => "Bluetooth",
        247 => "InfiniBand",
        253 => "netlink",
        _ => return None,
    })
}

/// Names of protocols in which there is no IP.
fn ether_type(number: u16) -> Option<&'static str> {
    Some(match number {
        0..0x0600 => "a length: IEEE 802.3",
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8863 => "PPPoE discovery",
        0x888E => "EAPOL",
        0x88CC => "LLDP",
        0x88F7 => "PTP",
        0x8906 => "FCoE",
        0x8915 => "RoCE",
        _ => return None,
    })
}

fn ip_protocol(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "ICMP",
        2 => "IGMP",
        4 => "a tunnel of IPv4, not read",
        6 => "TCP",
        41 => "a tunnel of IPv6, not read",
        47 => "GRE, not read",
        50 => "ESP",
        51 => "AH, not read",
        58 => "ICMPv6",
        89 => "OSPF",
        132 => "SCTP",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_numbers_and_names_the_commonest_first() {
        let mut passed_over = PassedOver::default();
        assert_eq!(passed_over.to_string(), "");
        for (reason, count) in [
            (Reason::Fragment, 1),
            (Reason::LinkType(147), 3),
            (Reason::LinkType(9_999), 2),
            (Reason::EtherType(0x0806), 5),
            // Control of a link (LCP), and what is no IP.
            (Reason::PppProtocol(0xC021), 6),
            (Reason::PppProtocol(0x00FD), 4),
        ] {
            (0..count).for_each(|_| passed_over.count(reason));
        }
        assert_eq!(
            passed_over.to_string(),
            "6 of PPP protocol 0xc021, 5 of EtherType 0x0806 (ARP), 4 of PPP protocol 0x00fd, \
            3 of link type 147 (USER0), 2 of link type 9999, 1 of fragments of IP"
        );
        assert_eq!(passed_over.unread(), 9);
    }

    #[test]
    fn a_line_has_eight_reasons_and_counts_the_others() {
        let mut passed_over = PassedOver::default();
        (0..20).for_each(|number| passed_over.count(Reason::LinkType(1_000 + number)));
        let text = passed_over.to_string();
        assert!(text.ends_with("1 of link type 1007, 12 for other reasons"), "{text}");
    }
}
