// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types of packets (SPEC §3.2).
//!
//! When you add a type, also change:
//! 1. SPEC §3.2, and the section of its body (§8 for control packets);
//! 2. [`PacketType`] here, its `ALL` and its name;
//! 3. a control packet: `Body` in body.rs (the compiler names the matches) and, for a list, its
//!    entry in entry.rs; any other: a file of its own, [`crate::Packet`] and its `parse`;
//! 4. `tests/packet_json/`: fields to bytes and bytes to fields; the cases of
//!    `examples/make_packet_vectors.rs`; then run it, which writes `vectors/packets.json`;
//! 5. `tests/hostile.rs`: a sample for truncation and garbage;
//! 6. `layout::TABLES`, if its body has fields; then `examples/make_offsets.rs`;
//! 7. smt-proto, which sends and handles it, and the dissector.

use core::error::Error;
use core::fmt;

/// A packet's type byte, in the specification's order.
///
/// Exhaustive on purpose: a new type shall fail to compile wherever types are told apart.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PacketType {
    /// Bytes of a message's record stream.
    Data = 0x01,
    /// A fragment of a flight of the handshake.
    Handshake = 0x10,
    /// "Come again with this": a server under load.
    Cookie = 0x11,
    /// The versions that a host speaks; only with version byte 0.
    VersionAnswer = 0x12,
    /// The session is no more.
    Reset = 0x13,
    /// A server takes no client now.
    Unavailable = 0x15,
    /// First packet under the session's keys; carries the sender's reset token.
    Confirm = 0x20,
    /// More of a message may be sent.
    Grant = 0x21,
    /// Bytes are missing.
    Resend = 0x22,
    /// The question was heard; the answer is not ready.
    Busy = 0x23,
    /// Messages are not needed any more.
    Ack = 0x24,
    /// Asks whether a message has arrived.
    NeedAck = 0x25,
    /// The initiator gives up.
    Cancel = 0x26,
    /// Answer to CANCEL: not delivered, and never will be.
    Voided = 0x27,
    /// Answer to CANCEL: may have been delivered.
    Seen = 0x28,
    /// Answer: nothing of the id was ever opened.
    NeverSeen = 0x29,
    /// Answer: the id was seen and its state is gone.
    SeenAndGone = 0x2A,
    /// Instead of a reply.
    Abort = 0x2B,
    /// Advertises the limit of the id window.
    Window = 0x2C,
    /// Asks for WINDOW.
    WindowRequest = 0x2D,
    /// Asks the sender for its next epoch.
    KeyUpdateRequest = 0x2E,
    /// Nothing of an epoch is outstanding.
    EpochDone = 0x2F,
    /// The keys of an epoch are gone.
    EpochAck = 0x30,
    /// Asks for PONG.
    Ping = 0x31,
    /// Repeats PING's value.
    Pong = 0x32,
    /// A datagram of the size probed.
    Probe = 0x33,
    /// A PROBE of this size arrived.
    ProbeAck = 0x34,
    /// The session ends.
    Close = 0x35,
    /// Further parts of a call may be sent.
    PartWindow = 0x36,
    /// Asks for PART_WINDOW.
    PartWindowRequest = 0x37,
    /// Packets of the receiver of this one may be sealed under an association (PSP).
    Association = 0x38,
    /// An association is in use.
    AssociationAck = 0x39,
    /// Asks for the association after this one.
    AssociationRequest = 0x3A,
}

impl PacketType {
    /// Every type, ascending.
    pub const ALL: [Self; 33] = [
        Self::Data,
        Self::Handshake,
        Self::Cookie,
        Self::VersionAnswer,
        Self::Reset,
        Self::Unavailable,
        Self::Confirm,
        Self::Grant,
        Self::Resend,
        Self::Busy,
        Self::Ack,
        Self::NeedAck,
        Self::Cancel,
        Self::Voided,
        Self::Seen,
        Self::NeverSeen,
        Self::SeenAndGone,
        Self::Abort,
        Self::Window,
        Self::WindowRequest,
        Self::KeyUpdateRequest,
        Self::EpochDone,
        Self::EpochAck,
        Self::Ping,
        Self::Pong,
        Self::Probe,
        Self::ProbeAck,
        Self::Close,
        Self::PartWindow,
        Self::PartWindowRequest,
        Self::Association,
        Self::AssociationAck,
        Self::AssociationRequest,
    ];

    /// The specification's name, such as `NEED_ACK`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "DATA",
            Self::Handshake => "HANDSHAKE",
            Self::Cookie => "COOKIE",
            Self::VersionAnswer => "VERSION",
            Self::Reset => "RESET",
            Self::Unavailable => "UNAVAILABLE",
            Self::Confirm => "CONFIRM",
            Self::Grant => "GRANT",
            Self::Resend => "RESEND",
            Self::Busy => "BUSY",
            Self::Ack => "ACK",
            Self::NeedAck => "NEED_ACK",
            Self::Cancel => "CANCEL",
            Self::Voided => "VOIDED",
            Self::Seen => "SEEN",
            Self::NeverSeen => "NEVER_SEEN",
            Self::SeenAndGone => "SEEN_AND_GONE",
            Self::Abort => "ABORT",
            Self::Window => "WINDOW",
            Self::WindowRequest => "WINDOW_REQUEST",
            Self::KeyUpdateRequest => "KEY_UPDATE_REQUEST",
            Self::EpochDone => "EPOCH_DONE",
            Self::EpochAck => "EPOCH_ACK",
            Self::Ping => "PING",
            Self::Pong => "PONG",
            Self::Probe => "PROBE",
            Self::ProbeAck => "PROBE_ACK",
            Self::Close => "CLOSE",
            Self::PartWindow => "PART_WINDOW",
            Self::PartWindowRequest => "PART_WINDOW_REQUEST",
            Self::Association => "ASSOCIATION",
            Self::AssociationAck => "ASSOCIATION_ACK",
            Self::AssociationRequest => "ASSOCIATION_REQUEST",
        }
    }

    /// Whether it is a control packet, with a control header and a tag (SPEC §3.4).
    pub const fn is_control(self) -> bool {
        self as u8 >= Self::Confirm as u8
    }
}

impl TryFrom<u8> for PacketType {
    type Error = UnknownPacketType;

    fn try_from(ty: u8) -> Result<Self, UnknownPacketType> {
        match ty {
            0x01 => Ok(Self::Data),
            0x10..=0x13 => Ok(Self::ALL[usize::from(ty - 0x10) + 1]),
            0x15 => Ok(Self::Unavailable),
            0x20..=0x3A => Ok(Self::ALL[usize::from(ty - 0x20) + 6]),
            _ => Err(UnknownPacketType(ty)),
        }
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A type byte that this version does not know: the peer is newer, or the packet is no SMT.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct UnknownPacketType(pub u8);

impl fmt::Display for UnknownPacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the packet's type 0x{:02x} is unknown", self.0)
    }
}

impl Error for UnknownPacketType {}

// `try_from` finds a type by its place in `ALL`: every place must hold its own type.
const _: () = {
    let mut place = 0;
    while place < PacketType::ALL.len() {
        let ty = match place {
            0 => 0x01,
            1..=4 => 0x10 + place - 1,
            5 => 0x15,
            _ => 0x20 + place - 6,
        };
        assert!(PacketType::ALL[place] as usize == ty);
        place += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    mod try_from {
        use super::*;

        #[test]
        fn knows_exactly_the_types_of_the_specification() {
            for byte in 0..=255u8 {
                let known = matches!(byte, 0x01 | 0x10..=0x13 | 0x15 | 0x20..=0x3A);
                match PacketType::try_from(byte) {
                    Ok(ty) => assert!(known && ty as u8 == byte, "0x{byte:02x} is {ty}"),
                    Err(error) => assert!(!known && error == UnknownPacketType(byte)),
                }
            }
        }
    }

    mod display {
        use super::*;

        #[test]
        fn is_the_name_in_the_specification() {
            assert_eq!(PacketType::NeedAck.to_string(), "NEED_ACK");
            assert_eq!(PacketType::VersionAnswer.to_string(), "VERSION");
            assert_eq!(PacketType::SeenAndGone.to_string(), "SEEN_AND_GONE");
        }
    }

    mod is_control {
        use super::*;

        #[test]
        fn begins_with_confirm() {
            assert!(!PacketType::Reset.is_control());
            assert!(PacketType::Confirm.is_control());
            assert!(PacketType::Close.is_control());
            assert!(!PacketType::Data.is_control());
        }
    }
}
