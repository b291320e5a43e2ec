// SPDX-License-Identifier: Apache-2.0 OR MIT
//! RESET: there is no such session any more (SPEC §12.1).
//!
//! The token is the packet's only proof and a secret until the session is over: it is shown
//! nowhere, and compared in a time that does not depend on it.

use core::fmt;
use core::hint::black_box;

use crate::error::ParseError;
use crate::field::{array_at, put, u64_at};
use crate::ids::SessionIndex;
use crate::limits::RESET_TOKEN_LEN;
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// A RESET packet. Set by a host that lost or closed the session; a NIC leaves it alone.
#[derive(Clone, Copy)]
pub struct Reset {
    /// The index that the answered packet named: the sender's, not the receiver's.
    pub index: SessionIndex,
    /// The token that CONFIRM told the receiver, encrypted.
    pub token: [u8; RESET_TOKEN_LEN],
}

impl Reset {
    /// Bytes of the packet.
    pub const LEN: usize = 36;

    /// Writes the packet.
    pub fn emit(&self, version: u8, out: &mut [u8; Self::LEN]) {
        Prefix::new(version, PacketType::Reset, Self::LEN as u16).write(out);
        put(out, field::INDEX, &self.index.0.to_be_bytes());
        put(out, field::TOKEN, &self.token);
    }

    /// Parses a packet of exactly its length.
    pub(crate) fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        let Ok(bytes) = <&[u8; Self::LEN]>::try_from(packet) else {
            return Err(ParseError::Malformed("RESET of another length than 36"));
        };
        let index = SessionIndex(u64_at(bytes, field::INDEX));
        Ok(Self { index, token: array_at(bytes, field::TOKEN) })
    }
}

/// Looks at every byte of both tokens, whatever the first ones are.
impl PartialEq for Reset {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.token.iter().zip(&other.token);
        let difference = pairs.fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
        self.index == other.index && difference == 0
    }
}

impl Eq for Reset {}

impl fmt::Debug for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reset").field("index", &self.index).finish_non_exhaustive()
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RESET session {}", self.index)
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        INDEX = 12..20;
        TOKEN = 20..36;
    }
}

const _: () = assert!(field::INDEX.start == Prefix::LEN);
const _: () = assert!(field::TOKEN.end == Reset::LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    mod eq {
        use super::*;

        #[test]
        fn any_bit_of_the_token_counts() {
            let reset = Reset { index: SessionIndex(1), token: [0; 16] };
            assert_eq!(reset, reset);
            for bit in 0..128 {
                let mut other = reset;
                other.token[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(reset, other, "bit {bit}");
            }
        }

        #[test]
        fn the_index_counts() {
            let reset = Reset { index: SessionIndex(1), token: [0; 16] };
            assert_ne!(reset, Reset { index: SessionIndex(2), ..reset });
        }
    }

    mod debug {
        use super::*;

        #[test]
        fn the_token_is_shown_nowhere() {
            let reset = Reset { index: SessionIndex(1), token: [0xA7; 16] };
            assert_eq!(format!("{reset:?}"), "Reset { index: SessionIndex(0000000000000001), .. }");
            assert_eq!(format!("{reset}"), "RESET session 0000000000000001");
        }
    }
}
