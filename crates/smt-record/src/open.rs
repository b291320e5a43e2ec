// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening records (SPEC §5.3, §5.4).
//!
//! 1. [`open_first`] opens record 0, believes nothing before, and gives the inner header: from
//!    then on the message's lengths are known. Application bytes are appended to a buffer.
//! 2. [`open_rest`] opens any other record, in any order, into its place of the message's buffer.
//! 3. Both refuse a record that is not exactly what its place in the message demands: length,
//!    end of the content, zeros behind.
//!
//! The AEAD decrypts from the received bytes straight into the message: the copy out of the
//! receive buffer and the decryption are one pass. The plaintext is one byte longer than the
//! content (0x17). `open_rest` therefore lets it spill over the byte that follows the content in
//! the message, and puts that byte back. Only where there is no such byte, or the record has
//! padding, does it go through the caller's scratch buffer.
//!
//! A record that the carrier has opened goes through the same checks but that of its tag
//! ([`take_opened_first`], [`take_opened_rest`]).
//!
//! Whether the whole message has arrived, and whether its id was seen, is not known here.

use alloc::vec::Vec;

use smt_wire::{Geometry, InnerHeader, ParseError, RECORD_HEADER_LEN, Record, TAG_LEN};

use crate::aead::{Aead, OpenFailed};
use crate::record_header::{APPLICATION_DATA, record_header};

/// Opens record 0 of a message that claims `message_length` padded inner bytes, and appends its
/// application bytes to `body`. On an error `body` is as before.
///
/// # Errors
/// [`OpenError`]; see [`OpenError::is_authentic`] for whose fault it is.
#[expect(clippy::too_many_arguments, reason = "each is of a type of its own but two, which differ")]
pub fn open_first(
    aead: &dyn Aead,
    sequence: u64,
    geometry: Geometry,
    message_length: u32,
    record: &[u8],
    body: &mut Vec<u8>,
) -> Result<InnerHeader, OpenError> {
    let place = geometry.record(message_length, 0);
    if usize::from(place.extent) < InnerHeader::LEN {
        return Err(OpenError::Form);
    }
    let sealed = Sealed::new(&place, record)?;
    let start = body.len();
    body.resize(start + usize::from(place.extent) + 1, 0);
    let opened = sealed
        .open(aead, sequence, &mut body[start..])
        .and_then(|()| inspect_first(&place, message_length, &body[start..]));
    match opened {
        Ok((header, content)) => {
            body.copy_within(start + InnerHeader::LEN..start + content, start);
            body.truncate(start + content - InnerHeader::LEN);
            Ok(header)
        }
        Err(error) => {
            body.truncate(start);
            Err(error)
        }
    }
}

/// Opens record `place` (not record 0) of a message of `true_inner` inner bytes without padding
/// (40 and its true length).
///
/// `content` begins at the record's first application byte in the message's buffer. It has
/// [`Record::content`] bytes, or one more: the byte that follows in the buffer, whatever it is, is
/// preserved and saves a copy of the record. `scratch` is used if that byte is missing, or if the
/// record has padding; it grows to the largest record, 16,385 bytes. On an error the content bytes
/// are undefined, but never plaintext that did not authenticate: do not open a record again that
/// has opened.
///
/// # Errors
/// [`OpenError`]; see [`OpenError::is_authentic`] for whose fault it is.
///
/// # Panics
/// If `content` has another length, or `place` is record 0.
#[expect(clippy::too_many_arguments, reason = "each is of a type of its own but two, which differ")]
pub fn open_rest(
    aead: &dyn Aead,
    sequence: u64,
    place: &Record,
    true_inner: u32,
    record: &[u8],
    content: &mut [u8],
    scratch: &mut Vec<u8>,
) -> Result<(), OpenError> {
    let length = place.content(true_inner);
    let has_extra_byte = has_extra_byte(place, length, content);
    let sealed = Sealed::new(place, record)?;
    if !has_extra_byte || length < usize::from(place.extent) {
        let plaintext = scratch_of(scratch, usize::from(place.extent) + 1);
        sealed.open(aead, sequence, plaintext)?;
        check_end(plaintext, length)?;
        content[..length].copy_from_slice(&plaintext[..length]);
        return Ok(());
    }
    let extra = content[length];
    let opened = sealed.open(aead, sequence, content).and_then(|()| check_end(content, length));
    content[length] = extra;
    opened
}

/// As [`open_first`], for a record that the carrier has opened: header, inner plaintext and tag.
///
/// # Errors
/// [`OpenError`], but for those of the tag.
pub fn take_opened_first(
    geometry: Geometry,
    message_length: u32,
    record: &[u8],
    body: &mut Vec<u8>,
) -> Result<InnerHeader, OpenError> {
    let place = geometry.record(message_length, 0);
    if usize::from(place.extent) < InnerHeader::LEN {
        return Err(OpenError::Form);
    }
    let plaintext = Sealed::new(&place, record)?.ciphertext;
    let (header, content) = inspect_first(&place, message_length, plaintext)?;
    body.extend_from_slice(&plaintext[InnerHeader::LEN..content]);
    Ok(header)
}

/// As [`open_rest`], for a record that the carrier has opened: header, inner plaintext and tag.
/// `content` may be a byte longer than the record's, which stays as it is.
///
/// # Errors
/// [`OpenError`], but for those of the tag.
///
/// # Panics
/// As [`open_rest`].
pub fn take_opened_rest(
    place: &Record,
    true_inner: u32,
    record: &[u8],
    content: &mut [u8],
) -> Result<(), OpenError> {
    let length = place.content(true_inner);
    has_extra_byte(place, length, content);
    let plaintext = Sealed::new(place, record)?.ciphertext;
    check_end(plaintext, length)?;
    content[..length].copy_from_slice(&plaintext[..length]);
    Ok(())
}

/// Whether `content` has a byte more than the record's `length`. Panics as documented.
fn has_extra_byte(place: &Record, length: usize, content: &[u8]) -> bool {
    assert!(place.index > 0, "record 0 is opened by open_first");
    let extra = content.len().checked_sub(length);
    assert!(matches!(extra, Some(0 | 1)), "content is the record's place in the message");
    extra == Some(1)
}

/// The clear header was as it must be.
struct Sealed<'a> {
    aad: [u8; RECORD_HEADER_LEN],
    ciphertext: &'a [u8],
    tag: &'a [u8; TAG_LEN],
}

impl<'a> Sealed<'a> {
    fn new(place: &Record, record: &'a [u8]) -> Result<Self, OpenError> {
        let aad = record_header(place.extent);
        // The extent is 0 where the message has no such record (SPEC §5.4).
        if place.extent == 0 || record.len() != place.stream_len() {
            return Err(OpenError::Form);
        }
        let sealed = record.strip_prefix(&aad).ok_or(OpenError::Form)?;
        let (ciphertext, tag) = sealed.split_last_chunk().ok_or(OpenError::Form)?;
        Ok(Self { aad, ciphertext, tag })
    }

    fn open(&self, aead: &dyn Aead, sequence: u64, out: &mut [u8]) -> Result<(), OpenError> {
        Ok(aead.open(sequence, &self.aad, self.ciphertext, self.tag, out)?)
    }
}

/// `length` bytes of the scratch buffer, which grows and never shrinks.
fn scratch_of(scratch: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
    &mut scratch[..length]
}

/// The inner header and the length of record 0's content.
fn inspect_first(
    place: &Record,
    message_length: u32,
    plaintext: &[u8],
) -> Result<(InnerHeader, usize), OpenError> {
    let header = plaintext.first_chunk().ok_or(OpenError::Form)?;
    let header = InnerHeader::parse(header).map_err(OpenError::InnerHeader)?;
    if header.padded_length != message_length {
        return Err(OpenError::PaddedLength {
            claimed: message_length,
            authentic: header.padded_length,
        });
    }
    // `parse` has checked that 40 + true length is at most the padded length, a u32.
    let content = place.content(InnerHeader::LEN as u32 + header.true_length);
    check_end(plaintext, content)?;
    Ok((header, content))
}

/// After `content` bytes stand 0x17 and zeros.
fn check_end(plaintext: &[u8], content: usize) -> Result<(), OpenError> {
    match plaintext.get(content..) {
        Some([APPLICATION_DATA, zeros @ ..]) if zeros.iter().all(|byte| *byte == 0) => Ok(()),
        _ => Err(OpenError::End),
    }
}

/// A record was not accepted. Drop it, count it, and ask for it again (SPEC §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not a record of this place: wrong length or clear header. Nothing was decrypted.
    #[error("bytes from the network are not a record of this place: drop them")]
    Form,
    /// [`OpenFailed::Forged`] counts towards the key's integrity limit. After
    /// [`OpenFailed::Unavailable`] the record is as good as lost.
    #[error(transparent)]
    Failed(#[from] OpenFailed),
    /// Record 0 is authentic, but the DATA header that brought it claimed another length.
    #[error("the packet claims a message of {claimed} bytes, its record says {authentic}: drop it")]
    PaddedLength {
        /// The clear header's claim.
        claimed: u32,
        /// The inner header's value.
        authentic: u32,
    },
    /// The peer broke a rule of SPEC §5.2.
    #[error("the peer sealed a malformed inner header: {0}")]
    InnerHeader(ParseError),
    /// The peer broke a rule of SPEC §5.3.
    #[error("the peer sealed a record whose content does not end where it must")]
    End,
}

impl OpenError {
    /// Whether the record's tag was not even looked at: the library could not try.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Failed(OpenFailed::Unavailable(_)))
    }

    /// Whether the record's tag was right: then the peer sealed it, and (but for
    /// [`Self::PaddedLength`], which any attacker on the path can cause) it broke a rule. Else any
    /// host may have sent it.
    pub fn is_authentic(&self) -> bool {
        match self {
            Self::Form | Self::Failed(_) => false,
            Self::PaddedLength { .. } | Self::InnerHeader(_) | Self::End => true,
        }
    }
}

#[cfg(test)]
mod tests;
