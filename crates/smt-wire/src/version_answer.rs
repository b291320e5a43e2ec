// SPDX-License-Identifier: Apache-2.0 OR MIT
//! VERSION: the versions that a host speaks (SPEC §12.2).
//!
//! It looks the same in all versions, with version byte 0. It is a hint for an error message; a
//! receiver never lowers its version because of it.

use core::fmt;

use crate::error::ParseError;
use crate::field::put;
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// A VERSION packet. Set by a host that got an unknown version; a NIC leaves it alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VersionAnswer<'a> {
    /// One byte per version spoken, at least one.
    pub versions: &'a [u8],
}

impl VersionAnswer<'_> {
    /// Bytes of the packet. It must not be larger than the packet that is answered.
    pub fn packet_len(&self) -> usize {
        Prefix::LEN + self.versions.len()
    }

    /// Writes the packet to the front of `out`; returns its length.
    ///
    /// # Panics
    /// If there is no version or more than 255, or `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        assert!((1..=255).contains(&self.versions.len()), "a host speaks 1 to 255 versions");
        let length = self.packet_len();
        Prefix::new(0, PacketType::VersionAnswer, length as u16).write(out); // at most 267
        put(out, Prefix::LEN..length, self.versions);
        length
    }
}

impl<'a> VersionAnswer<'a> {
    /// Parses a packet of exactly its length.
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Self, ParseError> {
        match packet.get(Prefix::LEN..) {
            None | Some([]) => Err(ParseError::Malformed("VERSION without a version")),
            Some(versions) if versions.len() > 255 => {
                Err(ParseError::Malformed("VERSION with more than 255 versions"))
            }
            Some(versions) => Ok(Self { versions }),
        }
    }
}

impl fmt::Display for VersionAnswer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VERSION")?;
        self.versions.iter().try_for_each(|version| write!(f, " {version}"))
    }
}
