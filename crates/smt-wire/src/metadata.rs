// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata: named values of the application in front of a message's body (SPEC §5.8).
//!
//! [`MetadataEntries::split`] looks at all of them before it gives the first: metadata is well
//! formed as a whole, or malformed.

use crate::error::ParseError;
use crate::field::u16_at;
use crate::limits::{METADATA_ENTRIES_MAX, METADATA_MAX};

/// Entries of well-formed metadata, in their order; names may repeat.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetadataEntries<'a> {
    bytes: &'a [u8],
}

impl<'a> MetadataEntries<'a> {
    /// Bytes of the length in front of the entries.
    pub const LENGTH_LEN: usize = 2;

    /// Looks at the application bytes of a message with metadata. Returns the entries, and the
    /// bytes that the metadata takes with its length.
    ///
    /// # Errors
    /// `Malformed` if the metadata is cut short or too long, has too many entries, or a name that
    /// is none: the peer broke a rule, since these bytes are authenticated.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, usize), ParseError> {
        let cut_short = ParseError::Malformed("metadata that is cut short");
        if bytes.len() < Self::LENGTH_LEN {
            return Err(cut_short);
        }
        let length = usize::from(u16_at(bytes, 0..Self::LENGTH_LEN));
        if length > METADATA_MAX {
            return Err(ParseError::Malformed("metadata that is too long"));
        }
        let end = Self::LENGTH_LEN + length;
        let entries = Self { bytes: bytes.get(Self::LENGTH_LEN..end).ok_or(cut_short)? };
        let (mut rest, mut count) = (entries, 0);
        while !rest.bytes.is_empty() {
            let (name, _) = rest.split_first().ok_or(cut_short)?;
            if !is_name(name) {
                return Err(ParseError::Malformed("metadata with a name that is none"));
            }
            count += 1;
        }
        if count > METADATA_ENTRIES_MAX {
            return Err(ParseError::Malformed("metadata with too many entries"));
        }
        Ok((entries, end))
    }

    fn split_first(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, rest) = self
            .bytes
            .split_first()
            .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)))?;
        let (length, rest) = rest.split_at_checked(Self::LENGTH_LEN)?;
        let (value, rest) = rest.split_at_checked(usize::from(u16_at(length, 0..2)))?;
        self.bytes = rest;
        Some((name, value))
    }
}

/// Names and values.
impl<'a> Iterator for MetadataEntries<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // All were looked at; there is no error left.
        let (name, value) = self.split_first()?;
        Some((core::str::from_utf8(name).ok()?, value))
    }
}

/// Whether this may name an entry: 1 to 255 of `a` to `z`, `0` to `9`, `-`, `_` and `.`.
#[must_use]
pub fn is_name(bytes: &[u8]) -> bool {
    let is_permitted = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    (1..=255).contains(&bytes.len()) && bytes.iter().all(is_permitted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn entry(name: &[u8], value: &[u8]) -> Vec<u8> {
        let length = (value.len() as u16).to_be_bytes();
        [&[name.len() as u8], name, &length, value].concat()
    }

    fn with_length(entries: &[u8]) -> Vec<u8> {
        [&(entries.len() as u16).to_be_bytes(), entries].concat()
    }

    // SMT [5.8-1], [5.8-2]
    #[test]
    fn entries_come_back_in_their_order_and_the_body_is_behind_them() {
        let entries = [entry(b"trace.id-0_", b"\0\xFF"), entry(b"a", b""), entry(b"a", b"2")];
        let bytes = [with_length(&entries.concat()), b"body".to_vec()].concat();
        let (metadata, end) = MetadataEntries::split(&bytes).unwrap();
        let expected: [(&str, &[u8]); 3] = [("trace.id-0_", b"\0\xFF"), ("a", b""), ("a", b"2")];
        assert_eq!(metadata.collect::<Vec<_>>(), expected);
        assert_eq!(&bytes[end..], b"body");
        let (none, end) = MetadataEntries::split(&[0, 0]).unwrap();
        assert_eq!((none.count(), end), (0, 2));
    }

    // SMT [5.8-3]
    #[test]
    fn metadata_that_is_cut_short_anywhere_is_malformed() {
        let whole = with_length(&[entry(b"a", b"12"), entry(b"bc", b"3")].concat());
        for end in 0..whole.len() {
            assert!(MetadataEntries::split(&whole[..end]).is_err(), "{end}");
            // Entries that end elsewhere than the length says.
            let mut shorter = whole.clone();
            shorter[1] = end as u8;
            let is_boundary = [0, 6, 12].contains(&end);
            assert_eq!(MetadataEntries::split(&shorter).is_ok(), is_boundary, "{end}");
        }
    }

    // SMT [5.8-2], [5.8-3]
    #[test]
    fn names_and_bounds_are_checked() {
        for byte in 0..=255 {
            let permitted = b"abcdefghijklmnopqrstuvwxyz0123456789-_.".contains(&byte);
            assert_eq!(is_name(&[byte]), permitted, "{byte}");
        }
        assert!(!is_name(b"") && is_name(&[b'x'; 255]) && !is_name(&[b'x'; 256]));
        let split = |entries: &[u8]| MetadataEntries::split(&with_length(entries)).is_ok();
        assert!(!split(&entry(b"A", b"")) && !split(&entry(b"", b"")));
        assert!(split(&entry(b"a", b"").repeat(64)) && !split(&entry(b"a", b"").repeat(65)));
        assert!(split(&entry(b"a", &[0; 4_092])) && !split(&entry(b"a", &[0; 4_093])));
    }
}
