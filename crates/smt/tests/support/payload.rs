// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that prove themselves: their bytes follow from a number and their size.

use super::random::Random;

/// The bytes of message `number` of `size` bytes; the number itself comes first, as far as it fits.
pub(crate) fn payload(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 8);
    bytes.extend_from_slice(&number.to_be_bytes());
    let mut random = Random::new(number.wrapping_add(size as u64) ^ 0x5DEE_CE66);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_be_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// The number of a message of at least 8 bytes.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

/// Whether a message is what was sent under this number and size.
pub(crate) fn is_payload(bytes: &[u8], number: u64, size: usize) -> bool {
    bytes.len() == size && bytes == payload(number, size)
}
