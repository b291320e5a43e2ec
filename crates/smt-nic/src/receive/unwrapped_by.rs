// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mark of packets that the device has opened as a whole, in their completion.

use super::queue::RECEIVE_COMPLETION_BYTES;
use crate::big_endian::u32_at;

/// The association by which the device has opened packets. ESP and PSP each have SPIs of their own,
/// and one never stands for the other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UnwrappedBy {
    /// An association of ESP with this SPI.
    Esp(u32),
    /// An association of PSP with this SPI.
    Psp(u32),
}

impl UnwrappedBy {
    pub(super) fn parse(bytes: &[u8; RECEIVE_COMPLETION_BYTES]) -> Option<Self> {
        let spi = u32_at(bytes, 20);
        match bytes[1] >> PROTECTION_SHIFT {
            ESP => Some(Self::Esp(spi)),
            PSP => Some(Self::Psp(spi)),
            _ => None,
        }
    }

    pub(super) fn write(self, bytes: &mut [u8; RECEIVE_COMPLETION_BYTES]) {
        let (protection, spi) = match self {
            Self::Esp(spi) => (ESP, spi),
            Self::Psp(spi) => (PSP, spi),
        };
        bytes[1] |= protection << PROTECTION_SHIFT;
        bytes[20..24].copy_from_slice(&spi.to_be_bytes());
    }
}

/// The upper half of byte 1 of a completion: the protection that was taken off.
const PROTECTION_SHIFT: u8 = 4;
const ESP: u8 = 1;
const PSP: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn one_spi_of_esp_and_of_psp_are_two_marks_beside_any_count_of_records() {
        for records in 0..=2 {
            let mut marks = Vec::new();
            for mark in [UnwrappedBy::Esp(300), UnwrappedBy::Psp(300)] {
                let mut bytes = [0; RECEIVE_COMPLETION_BYTES];
                bytes[1] = records;
                assert_eq!(UnwrappedBy::parse(&bytes), None);
                mark.write(&mut bytes);
                assert_eq!(UnwrappedBy::parse(&bytes), Some(mark));
                assert_eq!(bytes[1] & 0x0F, records);
                marks.push(bytes);
            }
            assert_ne!(marks[0], marks[1]);
        }
    }
}
