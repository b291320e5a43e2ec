// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet of PSP with SMT in it (SPEC §15.3): its header, the clear bytes behind it, and the
//! sealed ones.

/// The port of UDP to which packets of PSP go.
pub(crate) const PORT: u16 = 1000;

/// The parts of a packet behind UDP's header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PspPacket<'a> {
    /// The IP protocol number of the contents: SMT's own.
    pub(crate) next_header: u8,
    /// The number of the cipher.
    pub(crate) version: u8,
    pub(crate) spi: u32,
    pub(crate) iv: u64,
    /// The header, and the clear bytes behind it: what the ICV covers beside the ciphertext.
    pub(crate) aad: &'a [u8],
    /// The native header and the datagram; from `clear_length` on they are ciphertext.
    pub(crate) contents: &'a [u8],
    /// Bytes of the contents that are clear.
    pub(crate) clear_length: usize,
    /// `None` if the capture cut it off, or a part of it or of the contents.
    pub(crate) icv: Option<&'a [u8; ICV_BYTES]>,
    /// Bytes of the contents that the capture cut off.
    pub(crate) missing: usize,
}

impl<'a> PspPacket<'a> {
    /// The packet in a payload of UDP, `missing` bytes of which were not captured; `None` if it is
    /// none, has another protocol than SMT's own in it, or seals a part of its own header.
    pub(crate) fn parse(payload: &'a [u8], missing: usize, smt_protocol: u8) -> Option<Self> {
        let header = payload.first_chunk::<HEADER_BYTES>()?;
        let [next, extension, crypt_offset, flags, ..] = *header;
        // The lowest bit is always 1.
        if next != smt_protocol || extension == 0 || flags & 1 == 0 {
            return None;
        }
        // An extension counts words of 8 bytes behind the first 8; the IV is the first of them. The
        // crypt offset counts from the IV's end, whatever follows it.
        let start = 8 + 8 * usize::from(extension);
        let sealed_at = HEADER_BYTES + usize::from(crypt_offset & CRYPT_OFFSET_MASK) * 4;
        let clear_length = sealed_at.checked_sub(start)?;
        let end = (payload.len() + missing).checked_sub(ICV_BYTES)?;
        if sealed_at > end {
            return None;
        }
        let contents = payload.get(start..end.min(payload.len()))?;
        Some(Self {
            next_header: next,
            version: flags >> 2 & 0x0F,
            spi: u32::from_be_bytes(*header[4..].first_chunk()?),
            iv: u64::from_be_bytes(*header[8..].first_chunk()?),
            aad: payload.get(..sealed_at)?,
            contents,
            clear_length,
            icv: match missing {
                0 => payload.last_chunk(),
                _ => None,
            },
            missing: end - start - contents.len(),
        })
    }
}

const HEADER_BYTES: usize = 16;
pub(crate) const ICV_BYTES: usize = 16;
/// The two bits above it are reserved.
const CRYPT_OFFSET_MASK: u8 = 0x3F;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of protocol 253: 8 clear bytes, 4 sealed ones and an ICV.
    fn packet() -> Vec<u8> {
        let mut packet = vec![253, 1, 2, 0x01, 0x80, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
        packet.extend(*b"portsseqabcd");
        packet.extend([0xEE; ICV_BYTES]);
        packet
    }

    mod parse {
        use super::*;

        #[test]
        fn header_clear_bytes_ciphertext_and_icv_are_told_apart() {
            let bytes = packet();
            let packet = PspPacket::parse(&bytes, 0, 253).unwrap();
            assert_eq!((packet.version, packet.spi, packet.iv), (0, 0x8000_0007, 9));
            assert_eq!(packet.aad, &bytes[..24]);
            assert_eq!(packet.contents, b"portsseqabcd");
            assert_eq!(packet.clear_length, 8);
            assert_eq!(packet.icv, Some(&[0xEE; ICV_BYTES]));
            assert_eq!(packet.missing, 0);
        }

        #[test]
        fn a_cookie_behind_the_iv_is_passed_over() {
            let mut bytes = packet();
            // Two words more are clear.
            (bytes[1], bytes[2]) = (2, 4);
            bytes.splice(16..16, [0xCC; 8]);
            let packet = PspPacket::parse(&bytes, 0, 253).unwrap();
            assert_eq!(packet.contents, b"portsseqabcd");
            assert_eq!(packet.aad, &bytes[..32]);
            assert_eq!(packet.clear_length, 8);
            // The cookie itself is sealed.
            bytes[2] = 1;
            assert_eq!(PspPacket::parse(&bytes, 0, 253), None);
        }

        #[test]
        fn a_packet_that_was_cut_off_has_no_icv() {
            let bytes = packet();
            for cut in 1..=20 {
                let kept = &bytes[..bytes.len() - cut];
                let packet = PspPacket::parse(kept, cut, 253).unwrap();
                assert_eq!(packet.icv, None, "{cut}");
                let missing = cut.saturating_sub(ICV_BYTES);
                assert_eq!(packet.missing, missing, "{cut}");
                assert_eq!(packet.contents, &b"portsseqabcd"[..12 - missing], "{cut}");
            }
            // Not even all of the clear bytes.
            assert_eq!(PspPacket::parse(&bytes[..23], 21, 253), None);
        }

        #[test]
        fn other_protocols_forms_and_offsets_past_the_end_are_none() {
            for (place, byte) in [(0, 4), (1, 0), (1, 9), (2, 4), (3, 0)] {
                let mut bytes = packet();
                bytes[place] = byte;
                assert_eq!(PspPacket::parse(&bytes, 0, 253), None, "{place} {byte}");
            }
            let bytes = packet();
            for end in 0..bytes.len() - 4 {
                assert_eq!(PspPacket::parse(&bytes[..end], 0, 253), None, "{end}");
            }
        }
    }
}
