// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why bytes are not a packet.

use core::error::Error;
use core::fmt;

/// Why bytes are not a packet: always the fault of their sender, or of the path.
///
/// The receiver drops the packet and the rest of its datagram and counts it (SPEC §3). All
/// variants are listed so that a count per variant cannot miss one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ParseError {
    /// There are no bytes.
    Empty,
    /// The packet ends before its fields or its stated length do.
    Truncated,
    /// Another version than the one asked for. May be answered with VERSION (SPEC §12.2).
    UnknownVersion(u8),
    /// A type that this version does not know.
    UnknownType {
        /// The type byte.
        ty: u8,
        /// Bytes of the packet, all of them present; the packets after it stand. 0 if the packet
        /// goes to the end of the datagram.
        length: usize,
    },
    /// A field contradicts the specification; the text says which.
    Malformed(&'static str),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the datagram is empty"),
            Self::Truncated => f.write_str("the packet is cut short"),
            Self::UnknownVersion(version) => {
                write!(f, "the sender speaks version {version}, which is not spoken here")
            }
            Self::UnknownType { ty, length: 0 } => {
                write!(f, "the packet's type 0x{ty:02x} is unknown")
            }
            Self::UnknownType { ty, length } => {
                write!(f, "the packet's type 0x{ty:02x} is unknown, {length} bytes")
            }
            Self::Malformed(reason) => write!(f, "the sender broke a rule: {reason}"),
        }
    }
}

impl Error for ParseError {}
