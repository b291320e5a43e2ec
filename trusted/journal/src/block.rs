// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A block as bytes.
//!
//! | offset | bytes | field, big-endian |
//! |---|---|---|
//! | 0 | 4 | `SMJ2` |
//! | 4 | 8 | number of the block, from 0 |
//! | 12 | 4 | length of the records |
//! | 16 | 4 | CRC-32 of the salt, bytes 4 to 15 and the records |
//! | 20 | | records: length (4 bytes) and bytes of each |
//!
//! The first records of block 0 are the owner and the salt of the log, with which the checksums of
//! all later blocks begin. Those who choose the bytes of records do not know it: no record can pass
//! for a block.

use std::io;

use crate::disk::Disk;

/// Bytes of a block before its records.
pub(crate) const HEADER_LEN: usize = 20;
/// The most bytes of a block's records.
pub(crate) const RECORDS_LEN_MAX: usize = 128 << 20;
/// The first bytes of a block.
pub(crate) const MAGIC: &[u8; 4] = b"SMJ2";
/// Those of blocks whose checksums have no salt.
pub(crate) const OLDER_MAGIC: &[u8; 4] = b"SMTJ";

/// A block that fits its checksum.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) number: u64,
    records: Vec<u8>,
}

impl Block {
    /// The whole block as bytes.
    pub(crate) fn encode(number: u64, records: &[u8], salt: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend((records.len() as u32).to_be_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(salt);
        checksum.update(&bytes[4..]);
        checksum.update(records);
        bytes.extend(checksum.finalize().to_be_bytes());
        bytes.extend(records);
        bytes
    }

    /// The block at `offset`, if there is one that fits its checksum.
    pub(crate) fn read(
        disk: &impl Disk,
        (offset, end): (u64, u64),
        salt: &[u8],
    ) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_LEN];
        let left = end.saturating_sub(offset);
        if left < HEADER_LEN as u64 {
            return Ok(None);
        }
        disk.read_at(offset, &mut header)?;
        let [m0, m1, m2, m3, fields @ ..] = header;
        let [n0, n1, n2, n3, n4, n5, n6, n7, l0, l1, l2, l3, checksum @ ..] = fields;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let fits = left - HEADER_LEN as u64 >= length as u64 && length <= RECORDS_LEN_MAX;
        if [m0, m1, m2, m3] != *MAGIC || !fits {
            return Ok(None);
        }
        let mut records = vec![0; length];
        disk.read_at(offset + HEADER_LEN as u64, &mut records)?;
        let mut found = crc32fast::Hasher::new();
        found.update(salt);
        found.update(&header[4..16]);
        found.update(&records);
        if found.finalize() != u32::from_be_bytes(checksum) {
            return Ok(None);
        }
        let number = u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        Ok(Some(Self { number, records }))
    }

    /// The whole block as bytes again.
    pub(crate) fn encoded(&self, salt: &[u8]) -> Vec<u8> {
        Self::encode(self.number, &self.records, salt)
    }

    /// Bytes of the whole block.
    pub(crate) fn length(&self) -> u64 {
        (HEADER_LEN + self.records.len()) as u64
    }

    /// The records, in order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (record, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            rest = after;
            Some(record)
        })
    }
}
