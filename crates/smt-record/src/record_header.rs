// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outer form of a record (RFC 8446 §5.2, SPEC §5.1): `17 03 03 || u16 length`, then the
//! ciphertext of a plaintext that is always the extent and one byte long, then the tag.

use smt_wire::{RECORD_HEADER_LEN, TAG_LEN};

/// The content type `application_data`, outside and inside.
pub(crate) const APPLICATION_DATA: u8 = 0x17;

/// The header of a record of `extent` inner bytes.
pub(crate) fn record_header(extent: u16) -> [u8; RECORD_HEADER_LEN] {
    // The content type byte and the tag come on top; extents are at most 16,384.
    let [high, low] = (extent + 1 + TAG_LEN as u16).to_be_bytes();
    [APPLICATION_DATA, 3, 3, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    mod record_header {
        use super::*;

        #[test]
        fn counts_type_and_tag() {
            assert_eq!(record_header(64), [0x17, 3, 3, 0, 81]);
            assert_eq!(record_header(16_384), [0x17, 3, 3, 0x40, 0x11]);
        }
    }
}
