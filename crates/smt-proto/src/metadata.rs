// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata of messages: named values beside the body (SPEC §5.8), a trace context for example.
//!
//! Metadata is kept as it travels. A message without any has one pointer for it, and on receipt
//! metadata and body are parts of the memory that the message has come in.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use smt_wire::{METADATA_ENTRIES_MAX, METADATA_MAX, MetadataEntries, ParseError, is_metadata_name};

/// Named values beside a message's body, in their order; names may repeat.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Metadata {
    /// The entries behind their length, as they travel. `None` if there is no entry.
    encoded: Option<Box<Bytes>>,
}

impl Metadata {
    /// Metadata without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { encoded: None }
    }

    /// Adds an entry behind the others.
    ///
    /// # Errors
    /// The name is none, or there is no room for the entry; the metadata is as it was.
    pub fn push(&mut self, name: &str, value: &[u8]) -> Result<(), MetadataError> {
        if !is_metadata_name(name.as_bytes()) {
            return Err(MetadataError::Name(name.into()));
        }
        let before = self.encoded_len().max(MetadataEntries::LENGTH_LEN);
        let length = before - MetadataEntries::LENGTH_LEN + 3 + name.len() + value.len();
        if length > METADATA_MAX {
            return Err(MetadataError::TooLong { length });
        }
        if self.iter().count() == METADATA_ENTRIES_MAX {
            return Err(MetadataError::TooMany);
        }
        let mut encoded = self.encoded.take().map_or_else(Vec::new, |bytes| Vec::from(*bytes));
        encoded.resize(before, 0);
        encoded[..MetadataEntries::LENGTH_LEN].copy_from_slice(&(length as u16).to_be_bytes());
        encoded.push(name.len() as u8);
        encoded.extend_from_slice(name.as_bytes());
        encoded.extend_from_slice(&(value.len() as u16).to_be_bytes());
        encoded.extend_from_slice(value);
        self.encoded = Some(Box::new(Bytes::from(encoded)));
        Ok(())
    }

    /// The names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let encoded = self.encoded.as_deref().map_or(&[][..], |bytes| bytes);
        // Only well-formed bytes are kept.
        let entries = MetadataEntries::split(encoded).map(|(entries, _)| entries);
        entries.unwrap_or_default()
    }

    /// The first value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let mut entries = self.iter();
        entries.find_map(|(other, value)| (other == name).then_some(value))
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.encoded.is_none()
    }

    /// Bytes that the metadata takes in front of a message's body.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.encoded.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// The metadata as it travels, if there is any.
    pub(crate) fn into_encoded(self) -> Option<Bytes> {
        self.encoded.map(|bytes| *bytes)
    }

    /// The metadata and the body of a message that has come.
    #[inline]
    pub(crate) fn split(has_metadata: bool, bytes: Bytes) -> Result<(Self, Bytes), ParseError> {
        match has_metadata {
            false => Ok((Self::new(), bytes)),
            true => Self::split_off(&bytes),
        }
    }

    /// The same of bytes that begin with metadata. Most messages have none.
    #[cold]
    fn split_off(bytes: &Bytes) -> Result<(Self, Bytes), ParseError> {
        let (_, end) = MetadataEntries::split(bytes)?;
        let body = bytes.slice(end..);
        let is_empty = end == MetadataEntries::LENGTH_LEN;
        let encoded = (!is_empty).then(|| Box::new(bytes.slice(..end)));
        Ok((Self { encoded }, body))
    }
}

/// Names alone: values may be secrets.
impl core::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Why an entry cannot be added.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The name is none.
    #[error(
        "caller: {:?} is no name of metadata; take 1 to 255 of the characters a-z, 0-9, '-', '_' and '.'", shown(.0)
    )]
    Name(String),
    /// The entries would take too many bytes.
    #[error(
        "limit: the metadata would have {length} bytes, and may have {max}; send long values in the body", max = METADATA_MAX
    )]
    TooLong {
        /// Bytes of all entries.
        length: usize,
    },
    /// There are as many entries as there may be.
    #[error("limit: metadata has at most {max} entries; put several values in one", max = METADATA_ENTRIES_MAX)]
    TooMany,
}

/// A name as an error quotes it: the beginning of a long one.
fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => alloc::format!("{}...", &name[..end]),
        None => name.into(),
    }
}

/// Characters of a name that an error quotes.
const SHOWN_MAX: usize = 60;

/// Its text, since that is what a `main` shows that returns it.
impl core::fmt::Debug for MetadataError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

const _: () = assert!(size_of::<Metadata>() == size_of::<usize>());

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn entries_keep_their_order_and_the_first_of_a_name_is_found() {
        let mut metadata = Metadata::new();
        assert!(metadata.is_empty() && metadata.iter().next().is_none());
        for (name, value) in [("a", "1"), ("b.c-d_0", ""), ("a", "2")] {
            metadata.push(name, value.as_bytes()).unwrap();
        }
        let expected: [(&str, &[u8]); 3] = [("a", b"1"), ("b.c-d_0", b""), ("a", b"2")];
        assert_eq!(metadata.iter().collect::<Vec<_>>(), expected);
        assert_eq!((metadata.get("a"), metadata.get("z")), (Some(&b"1"[..]), None));
        let travelled = [&metadata.clone().into_encoded().unwrap()[..], b"body"].concat();
        let (received, body) = Metadata::split(true, travelled.into()).unwrap();
        assert_eq!((received, &body[..]), (metadata, &b"body"[..]));
    }

    #[test]
    fn an_entry_that_may_not_be_is_refused_and_changes_nothing() {
        let mut metadata = Metadata::new();
        let name = |text: &str| MetadataError::Name(text.to_owned());
        for text in ["", "Ab", "ü", "a b"] {
            assert_eq!(metadata.push(text, b""), Err(name(text)));
        }
        let long = metadata.push("a", &[0; 4_093]);
        assert_eq!(long, Err(MetadataError::TooLong { length: 4_097 }));
        assert!(metadata.is_empty());
        metadata.push("a", &[0; 3_000]).unwrap();
        let long = metadata.push("a", &[0; 1_089]);
        assert_eq!(long, Err(MetadataError::TooLong { length: 4_097 }));
        metadata.push("a", &[0; 1_088]).unwrap();
        assert_eq!(metadata.encoded_len(), 2 + 4_096);
        let mut many = Metadata::new();
        for _ in 0..64 {
            many.push("a", b"").unwrap();
        }
        assert_eq!(many.push("a", b""), Err(MetadataError::TooMany));
        assert_eq!(many.iter().count(), 64);
    }

    #[test]
    fn a_message_without_entries_has_no_metadata() {
        let bytes = Bytes::from_static(&[0, 0, 7]);
        let (none, body) = Metadata::split(true, bytes.clone()).unwrap();
        assert!(none.is_empty() && body[..] == [7]);
        let (none, body) = Metadata::split(false, bytes.clone()).unwrap();
        assert!(none.is_empty() && body == bytes);
        assert!(Metadata::split(true, Bytes::from_static(&[0, 1])).is_err());
    }
}
