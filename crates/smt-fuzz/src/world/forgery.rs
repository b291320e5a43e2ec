// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes that an attacker on the path makes to a datagram's bytes.

use arbitrary::Arbitrary;
use smt_wire::{PacketType, SessionIndex};

/// One change. Places and values are brought into range; a forgery that does not apply does
/// nothing.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) enum Forgery {
    /// Another version.
    Version(u8),
    /// Another type; numbers of known ones.
    Type(u8),
    /// An epoch byte that differs by this number.
    Epoch(i8),
    /// Other flags.
    Flags(u8),
    /// Another length field.
    Length(u16),
    /// One of the indices that were ever issued.
    Session(u8),
    /// The id, or control counter, moves by this number.
    Id(i16),
    /// Another initiator or stripe.
    IdBits(u8),
    /// The message's length moves by this number.
    MessageLength(i32),
    /// The offset moves by this number.
    Offset(i32),
    /// The offset is zero.
    OffsetZero,
    /// Bits of a byte are flipped.
    Flip(u16, u8),
    /// Another byte stands there.
    Byte(u16, u8),
    /// Only this many bytes arrive.
    Cut(u16),
    /// More bytes follow.
    Grow(Vec<u8>),
}

impl Forgery {
    /// Changes the bytes. `issued` are the indices to choose from.
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>, issued: &[SessionIndex]) {
        match self {
            Self::Version(version) => put(bytes, 0, &[*version]),
            Self::Type(number) => {
                let types = PacketType::ALL;
                put(bytes, 1, &[types[usize::from(*number) % types.len()] as u8]);
            }
            Self::Epoch(distance) => add(bytes, 2, 1, (*distance).into()),
            Self::Flags(flags) => put(bytes, 3, &[*flags]),
            Self::Length(length) => put(bytes, 6, &length.to_be_bytes()),
            Self::Session(number) => {
                if let Some(index) = issued.get(usize::from(*number) % issued.len().max(1)) {
                    put(bytes, 12, &index.0.to_be_bytes());
                }
            }
            Self::Id(distance) => add(bytes, 20, 8, (*distance).into()),
            Self::IdBits(bits) => {
                if let Some(byte) = bytes.get_mut(27) {
                    *byte ^= bits;
                }
            }
            Self::MessageLength(distance) => add(bytes, 28, 4, (*distance).into()),
            Self::Offset(distance) => add(bytes, 32, 4, (*distance).into()),
            Self::OffsetZero => put(bytes, 32, &[0; 4]),
            Self::Flip(at, bits) => {
                let at = usize::from(*at) % bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bits;
                }
            }
            Self::Byte(at, value) => {
                let at = usize::from(*at) % bytes.len().max(1);
                put(bytes, at, &[*value]);
            }
            Self::Cut(length) => bytes.truncate(usize::from(*length) % (bytes.len() + 1)),
            Self::Grow(tail) => bytes.extend_from_slice(tail),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Adds to the big-endian number of `width` bytes at `at`, around its end.
fn add(bytes: &mut [u8], at: usize, width: usize, distance: i64) {
    if let Some(place) = bytes.get_mut(at..at + width) {
        let number = place.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let moved = number.wrapping_add_signed(distance).to_be_bytes();
        place.copy_from_slice(&moved[8 - width..]);
    }
}
