// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attestation as bytes.

use crate::mac::Algorithm;

/// Bytes of an attestation: [`HEADER_LEN`] and [`MAC_LEN`] together.
pub const ATTESTATION_LEN: usize = 64;
/// Bytes of an attestation that its MAC covers.
pub const HEADER_LEN: usize = 32;
/// Bytes of a MAC, whole and never truncated.
pub const MAC_LEN: usize = 32;

/// The number of a replica group's stream. Each device has one stream in a group.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(pub u32);

/// The number of a device, unique among the devices of a group.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DeviceId(pub u32);

/// The number of a device's start. Each start has a greater number than all before.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u64);

/// The meaning of the attested bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// A message of the host.
    Message,
    /// A vote of the device for another one's new epoch ([`crate::Vote`]).
    Vote,
}

/// The statement of an attestation. Numbers are big-endian.
///
/// | offset | bytes | field |
/// |---|---|---|
/// | 0 | 1 | version, 1 |
/// | 1 | 1 | algorithm of the MAC ([`Algorithm`]): 1 HMAC-SHA-256, 2 keyed BLAKE3 |
/// | 2 | 1 | kind: 0 message, 1 vote |
/// | 3 | 1 | zero |
/// | 4 | 4 | stream |
/// | 8 | 4 | device |
/// | 12 | 4 | length of the message in bytes |
/// | 16 | 8 | epoch of the device |
/// | 24 | 8 | counter in stream and epoch, from 1 |
/// | 32 | 32 | MAC over domain, bytes 0 to 31 and message |
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Header {
    /// The MAC's algorithm.
    pub algorithm: Algorithm,
    /// The meaning of the attested bytes.
    pub kind: Kind,
    /// The stream.
    pub stream: StreamId,
    /// The device that has attested.
    pub device: DeviceId,
    /// Length of the message in bytes.
    pub length: u32,
    /// The device's epoch.
    pub epoch: Epoch,
    /// Position in the device's stream in this epoch, from 1.
    pub counter: u64,
}

impl Header {
    /// The first [`HEADER_LEN`] bytes of an attestation.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = VERSION;
        bytes[1] = self.algorithm as u8;
        bytes[2] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.stream.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.device.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.epoch.0.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.counter.to_be_bytes());
        bytes
    }

    /// Reads what [`Header::encode`] writes, and nothing else: one statement has one encoding.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let [VERSION, algorithm, kind, 0, ..] = *bytes else {
            return None;
        };
        Some(Self {
            algorithm: Algorithm::from_number(algorithm)?,
            kind: match kind {
                0 => Kind::Message,
                1 => Kind::Vote,
                _ => return None,
            },
            stream: StreamId(u32::from_be_bytes(field(bytes, 4))),
            device: DeviceId(u32::from_be_bytes(field(bytes, 8))),
            length: u32::from_be_bytes(field(bytes, 12)),
            epoch: Epoch(u64::from_be_bytes(field(bytes, 16))),
            counter: u64::from_be_bytes(field(bytes, 24)),
        })
    }
}

/// An attestation as it travels: a [`Header`] and its MAC. It is public; without the message it
/// proves nothing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Attestation(pub [u8; ATTESTATION_LEN]);

impl Attestation {
    /// Joins a header and its MAC.
    pub fn new(header: &[u8; HEADER_LEN], mac: &[u8; MAC_LEN]) -> Self {
        let mut bytes = [0; ATTESTATION_LEN];
        bytes[..HEADER_LEN].copy_from_slice(header);
        bytes[HEADER_LEN..].copy_from_slice(mac);
        Self(bytes)
    }

    /// The bytes that the MAC covers beside the message.
    pub fn header_bytes(&self) -> [u8; HEADER_LEN] {
        field(&self.0, 0)
    }

    /// The statement, unverified. Nothing if these bytes are no attestation.
    pub fn claim(&self) -> Option<Header> {
        Header::decode(&self.header_bytes())
    }

    /// The MAC.
    pub fn mac(&self) -> [u8; MAC_LEN] {
        field(&self.0, HEADER_LEN)
    }
}

/// `N` bytes from `offset`, which all callers know to be there.
pub(crate) fn field<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[offset..offset + N]);
    field
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Vote,
            stream: StreamId(0x0102_0304),
            device: DeviceId(0x0506_0708),
            length: 0x090a_0b0c,
            epoch: Epoch(0x1112_1314_1516_1718),
            counter: 0x2122_2324_2526_2728,
        }
    }

    #[test]
    fn each_field_stands_at_its_offset() {
        let expected = [
            1, 1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
            0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
        ];
        assert_eq!(header().encode(), expected);
        assert_eq!(Header::decode(&expected), Some(header()));
    }

    #[test]
    fn a_statement_has_one_encoding() {
        let good = header().encode();
        for offset in 0..HEADER_LEN {
            for byte in 0..=u8::MAX {
                let mut bytes = good;
                bytes[offset] = byte;
                if let Some(header) = Header::decode(&bytes) {
                    assert_eq!(header.encode(), bytes);
                }
            }
        }
        for (offset, byte) in [(0, 2), (1, 0), (1, 3), (2, 2), (3, 1)] {
            let mut bytes = good;
            bytes[offset] = byte;
            assert_eq!(Header::decode(&bytes), None, "byte {offset} is {byte}");
        }
    }
}
