// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contents of a virtio-net header (virtio 1.2 §5.1.6).

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// The transport protocol of a super-packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// Datagrams of UDP, over both versions.
    Udp,
}

/// How a super-packet is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segmentation {
    /// The transport protocol.
    pub kind: SegmentKind,
    /// Bytes of payload in each segment but the last.
    pub size: u16,
    /// Bytes of IP and transport header: a hint that is not trusted, since the headers tell it.
    pub header_len: u16,
    /// The first segment has CWR set.
    pub ecn: bool,
}

/// The state of a packet's transport checksum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Checksum {
    /// It is in the packet, and nobody has looked.
    #[default]
    Complete,
    /// It is in the packet, and right.
    Verified,
    /// The packet has the sum of the pseudo-header there: the bytes from `start` on are to be
    /// summed up and their checksum put at `start + offset`.
    Partial {
        /// Where the transport header begins, in bytes from the IP header.
        start: u16,
        /// Where the checksum is in the transport header.
        offset: u16,
    },
}

/// Work that remains to be done to a packet, or was done to it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offload {
    /// How the packet is to be cut, if it is a super-packet.
    pub segmentation: Option<Segmentation>,
    /// The state of its checksum.
    pub checksum: Checksum,
}

/// A virtio-net header of an unknown kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a virtio-net header of an unknown kind")]
pub struct MalformedOffload;

impl Offload {
    /// Bytes of a virtio-net header without a number of buffers: the header of a TUN device.
    pub const VIRTIO_LEN: usize = 10;

    /// Reads a virtio-net header of little-endian fields.
    ///
    /// # Errors
    /// If the kind of segmentation is none of [`SegmentKind`], or the size of segments is 0.
    pub fn from_virtio(header: &[u8; Self::VIRTIO_LEN]) -> Result<Self, MalformedOffload> {
        let field = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let kind = match header[1] & !GSO_ECN {
            GSO_NONE => None,
            GSO_TCPV4 => Some(SegmentKind::TcpV4),
            GSO_TCPV6 => Some(SegmentKind::TcpV6),
            GSO_UDP_L4 => Some(SegmentKind::Udp),
            _ => return Err(MalformedOffload),
        };
        if kind.is_some() && field(4) == 0 {
            return Err(MalformedOffload);
        }
        let checksum = if header[0] & NEEDS_CHECKSUM != 0 {
            Checksum::Partial { start: field(6), offset: field(8) }
        } else if header[0] & DATA_VALID != 0 {
            Checksum::Verified
        } else {
            Checksum::Complete
        };
        Ok(Self {
            segmentation: kind.map(|kind| Segmentation {
                kind,
                size: field(4),
                header_len: field(2),
                ecn: header[1] & GSO_ECN != 0,
            }),
            checksum,
        })
    }

    /// Writes a virtio-net header of little-endian fields.
    #[must_use]
    pub fn to_virtio(&self) -> [u8; Self::VIRTIO_LEN] {
        let mut header = [0; Self::VIRTIO_LEN];
        if let Some(segmentation) = self.segmentation {
            header[1] = match segmentation.kind {
                SegmentKind::TcpV4 => GSO_TCPV4,
                SegmentKind::TcpV6 => GSO_TCPV6,
                SegmentKind::Udp => GSO_UDP_L4,
            };
            if segmentation.ecn {
                header[1] |= GSO_ECN;
            }
            header[2..4].copy_from_slice(&segmentation.header_len.to_le_bytes());
            header[4..6].copy_from_slice(&segmentation.size.to_le_bytes());
        }
        match self.checksum {
            Checksum::Complete => {}
            Checksum::Verified => header[0] = DATA_VALID,
            Checksum::Partial { start, offset } => {
                header[0] = NEEDS_CHECKSUM;
                header[6..8].copy_from_slice(&start.to_le_bytes());
                header[8..].copy_from_slice(&offset.to_le_bytes());
            }
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_written_as_virtio_says_and_read_again() {
        let offload = Offload {
            segmentation: Some(Segmentation {
                kind: SegmentKind::TcpV6,
                size: 0x0584,
                header_len: 0x3C,
                ecn: true,
            }),
            checksum: Checksum::Partial { start: 40, offset: 16 },
        };
        let header = [1, 0x84, 0x3C, 0, 0x84, 5, 40, 0, 16, 0];
        assert_eq!(offload.to_virtio(), header);
        assert_eq!(Offload::from_virtio(&header), Ok(offload));
        assert_eq!(Offload::from_virtio(&[0; 10]), Ok(Offload::default()));
    }

    #[test]
    fn an_unknown_kind_and_segments_without_bytes_are_refused() {
        // Kind 3 is UDP fragmentation, which Linux has given up.
        for header in [[0, 3, 0, 0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(Offload::from_virtio(&header), Err(MalformedOffload));
        }
    }
}
