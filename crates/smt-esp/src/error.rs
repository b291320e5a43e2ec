// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a packet is not sealed or opened.

use crate::ip::MalformedIp;
use crate::lifetime::Expired;
use crate::window::Unfit;

/// Why a packet is not sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SealError {
    /// The bytes are no whole IP packet, or what is said of its segments is not true.
    #[error("not a whole IP packet")]
    Malformed,
    /// Transport mode protects whole datagrams (RFC 4303 §3.3.4).
    #[error("a fragment cannot be sealed in transport mode")]
    Fragment,
    /// No policy matches, or the one that matches discards (RFC 4301 §5.1).
    #[error("no policy lets the packet out")]
    Policy,
    /// The policy's association is gone.
    #[error("the policy has no association")]
    NoAssociation,
    /// The association's selectors do not match the packet.
    #[error("the packet is not one of the association's")]
    Selectors,
    /// All sequence numbers are used: the association must be replaced (RFC 4303 §3.3.3).
    #[error("the association has no sequence number left")]
    SequenceExhausted,
    /// The association's lifetime has ended.
    #[error("the lifetime of the association has ended")]
    Expired,
    /// The caller's memory has too little room before or behind the packet.
    #[error("too little room around the packet")]
    NoRoom,
    /// The packet is longer than `limit` bytes, which is what fits once it is sealed. An ICMP
    /// message tells the sender (RFC 4301 §8.2).
    #[error("the packet is longer than {limit} bytes")]
    TooBig {
        /// The longest packet that fits, in bytes with its IP header.
        limit: usize,
    },
    /// The library has refused to encrypt.
    #[error("the cipher failed")]
    Cipher,
}

impl From<MalformedIp> for SealError {
    fn from(_: MalformedIp) -> Self {
        Self::Malformed
    }
}

impl From<Expired> for SealError {
    fn from(_: Expired) -> Self {
        Self::Expired
    }
}

/// Why a packet is not opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// The bytes are no whole IP packet, or too few for ESP.
    #[error("not a whole packet")]
    Malformed,
    /// ESP is opened after reassembly (RFC 4303 §3.4.1).
    #[error("a fragment of ESP")]
    Fragment,
    /// No association has this SPI and these addresses (RFC 4303 §3.4.2).
    #[error("no association has the SPI {spi:#010x}")]
    NoAssociation {
        /// The packet's SPI.
        spi: u32,
    },
    /// The packet comes in UDP and the association's do not, or the other way round.
    #[error("the encapsulation is not that of the association")]
    Encapsulation,
    /// The sequence number was there before (RFC 4303 §3.4.3).
    #[error("a replayed packet")]
    Replay,
    /// The sequence number is left of the window (RFC 4303 §3.4.3).
    #[error("a packet below the replay window")]
    BelowWindow,
    /// The ICV is wrong (RFC 4303 §3.4.4).
    #[error("the integrity check failed")]
    Integrity,
    /// The association's lifetime has ended.
    #[error("the lifetime of the association has ended")]
    Expired,
    /// Padding that no sender writes (RFC 4303 §2.4).
    #[error("malformed padding")]
    Padding,
    /// The protected bytes are no packet, or none of the association's mode.
    #[error("the protected packet is malformed, or not of the mode of the association")]
    Inner,
    /// The outer header has met congestion, and the sender of the inner packet does not know of
    /// ECN (RFC 6040 §4.2).
    #[error("a congestion mark for a packet without ECN")]
    Congestion,
    /// The protected packet is not one of the association's (RFC 4301 §5.2).
    #[error("the protected packet is not one of the association's")]
    Selectors,
    /// A packet without ESP that a policy wants protected, or that no policy lets in.
    #[error("no policy lets the unprotected packet in")]
    Policy,
}

impl From<MalformedIp> for OpenError {
    fn from(_: MalformedIp) -> Self {
        Self::Malformed
    }
}

impl From<Expired> for OpenError {
    fn from(_: Expired) -> Self {
        Self::Expired
    }
}

impl From<Unfit> for OpenError {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Replay => Self::Replay,
            Unfit::BelowWindow => Self::BelowWindow,
        }
    }
}
