// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bodies of control packets: the bytes between header and tag (SPEC §8).
//!
//! The same value is parsed and sent. A body of a size that its type cannot have is malformed.
//! A NIC leaves bodies alone: they are covered by the tag.

use crate::entry::{Abort, Ack, AssociationFields, Grant, PartWindow, Resend};
use crate::error::ParseError;
use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::MessageId;
use crate::limits::{ASSOCIATION_KEY_LEN, LIST_MAX, RESET_TOKEN_LEN, TAG_LEN};
use crate::list::{Entry, List};
use crate::packet_type::PacketType;

/// A control packet's body, in the specification's order.
///
/// Exhaustive on purpose: a new type shall fail to compile wherever bodies are handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Body<'a> {
    /// Empty; the sender's reset token is in the sealed part (SPEC §6.5).
    Confirm,
    /// How far messages may be sent.
    Grant(List<'a, Grant>),
    /// Ranges that are missing.
    Resend(List<'a, Resend>),
    /// Questions heard whose answers are not ready.
    Busy(List<'a, MessageId>),
    /// Messages that are not needed any more.
    Ack(List<'a, Ack>),
    /// Asks whether messages have arrived.
    NeedAck(List<'a, MessageId>),
    /// Messages that the initiator gives up.
    Cancel(List<'a, MessageId>),
    /// Answer to CANCEL: not delivered, and never will be.
    Voided(List<'a, MessageId>),
    /// Answer to CANCEL: may have been delivered.
    Seen(List<'a, MessageId>),
    /// Answer: nothing was ever opened; send again under the same ids.
    NeverSeen(List<'a, MessageId>),
    /// Answer: seen, and the state is gone; never send again.
    SeenAndGone(List<'a, MessageId>),
    /// Instead of a reply.
    Abort(Abort),
    /// Advertises the id window of the packet's stripe (SPEC §4.2).
    Window {
        /// Counter, exclusive; cumulative and monotone.
        limit: u64,
    },
    /// Asks for WINDOW.
    WindowRequest,
    /// Asks the peer for its next epoch (SPEC §7.3).
    KeyUpdateRequest {
        /// The epoch that the peer sends in now.
        epoch: u32,
    },
    /// Nothing sealed in an epoch is outstanding.
    EpochDone {
        /// The epoch that is over.
        epoch: u32,
    },
    /// The keys of an epoch are dropped.
    EpochAck {
        /// The epoch that is over.
        epoch: u32,
    },
    /// Asks for PONG with this value.
    Ping(u64),
    /// Repeats PING's value.
    Pong(u64),
    /// Fills a packet to the size probed (SPEC §9.8).
    Probe {
        /// Zero bytes of the body. The receiver does not look at them, but the tag covers them.
        padding: usize,
    },
    /// A PROBE arrived.
    ProbeAck {
        /// Its size, in bytes of UDP payload.
        size: u32,
    },
    /// Ends the session (SPEC §12.3).
    Close {
        /// 0 done, 1 idle, 2 shutting down, 3 ids or keys used up, 4 the peer broke a rule.
        code: u16,
    },
    /// How far parts of calls may be sent (SPEC §5.9).
    PartWindow(List<'a, PartWindow>),
    /// Asks for PART_WINDOW of these calls.
    PartWindowRequest(List<'a, MessageId>),
    /// Lets the peer seal its packets under an association; the key is in the sealed part (SPEC
    /// §15.4).
    Association(AssociationFields),
    /// The association of this serial is in use.
    AssociationAck {
        /// The serial.
        serial: u32,
    },
    /// Asks for the association after this one, which is nearly used up.
    AssociationRequest {
        /// The serial of the association in use.
        serial: u32,
    },
}

impl<'a> Body<'a> {
    /// The type of packet that carries it.
    pub fn packet_type(&self) -> PacketType {
        match self {
            Self::Confirm => PacketType::Confirm,
            Self::Grant(_) => PacketType::Grant,
            Self::Resend(_) => PacketType::Resend,
            Self::Busy(_) => PacketType::Busy,
            Self::Ack(_) => PacketType::Ack,
            Self::NeedAck(_) => PacketType::NeedAck,
            Self::Cancel(_) => PacketType::Cancel,
            Self::Voided(_) => PacketType::Voided,
            Self::Seen(_) => PacketType::Seen,
            Self::NeverSeen(_) => PacketType::NeverSeen,
            Self::SeenAndGone(_) => PacketType::SeenAndGone,
            Self::Abort(_) => PacketType::Abort,
            Self::Window { .. } => PacketType::Window,
            Self::WindowRequest => PacketType::WindowRequest,
            Self::KeyUpdateRequest { .. } => PacketType::KeyUpdateRequest,
            Self::EpochDone { .. } => PacketType::EpochDone,
            Self::EpochAck { .. } => PacketType::EpochAck,
            Self::Ping(_) => PacketType::Ping,
            Self::Pong(_) => PacketType::Pong,
            Self::Probe { .. } => PacketType::Probe,
            Self::ProbeAck { .. } => PacketType::ProbeAck,
            Self::Close { .. } => PacketType::Close,
            Self::PartWindow(_) => PacketType::PartWindow,
            Self::PartWindowRequest(_) => PacketType::PartWindowRequest,
            Self::Association(_) => PacketType::Association,
            Self::AssociationAck { .. } => PacketType::AssociationAck,
            Self::AssociationRequest { .. } => PacketType::AssociationRequest,
        }
    }

    /// Bytes of the body, without the sealed part.
    pub fn len(&self) -> usize {
        match self {
            Self::Confirm | Self::WindowRequest => 0,
            Self::Grant(list) => list.bytes_len(),
            Self::Resend(list) => list.bytes_len(),
            Self::Ack(list) => list.bytes_len(),
            Self::Busy(list)
            | Self::NeedAck(list)
            | Self::Cancel(list)
            | Self::Voided(list)
            | Self::Seen(list)
            | Self::NeverSeen(list)
            | Self::SeenAndGone(list)
            | Self::PartWindowRequest(list) => list.bytes_len(),
            Self::PartWindow(list) => list.bytes_len(),
            Self::Abort(_) => Abort::LEN,
            Self::Association(_) => AssociationFields::LEN,
            Self::KeyUpdateRequest { .. }
            | Self::EpochDone { .. }
            | Self::EpochAck { .. }
            | Self::AssociationAck { .. }
            | Self::AssociationRequest { .. } => 4,
            Self::Window { .. } | Self::Ping(_) | Self::Pong(_) => 8,
            Self::Probe { padding } => *padding,
            Self::ProbeAck { .. } => 4,
            Self::Close { .. } => CLOSE_LEN,
        }
    }

    /// Whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes after the body: the tag, and before it CONFIRM's encrypted token or ASSOCIATION's
    /// encrypted key.
    pub fn sealed_len(&self) -> usize {
        sealed_len(self.packet_type())
    }

    /// Parses exactly the bytes between header and sealed part.
    pub(crate) fn parse(ty: PacketType, bytes: &'a [u8]) -> Result<Self, ParseError> {
        match ty {
            PacketType::Confirm => empty(bytes).map(|()| Self::Confirm),
            PacketType::Grant => list(bytes).map(Self::Grant),
            PacketType::Resend => list(bytes).map(Self::Resend),
            PacketType::Busy => list(bytes).map(Self::Busy),
            PacketType::Ack => list(bytes).map(Self::Ack),
            PacketType::NeedAck => list(bytes).map(Self::NeedAck),
            PacketType::Cancel => list(bytes).map(Self::Cancel),
            PacketType::Voided => list(bytes).map(Self::Voided),
            PacketType::Seen => list(bytes).map(Self::Seen),
            PacketType::NeverSeen => list(bytes).map(Self::NeverSeen),
            PacketType::SeenAndGone => list(bytes).map(Self::SeenAndGone),
            PacketType::Abort => exact(bytes).map(Abort::parse).map(Self::Abort),
            PacketType::Window => u64_of(bytes).map(|limit| Self::Window { limit }),
            PacketType::WindowRequest => empty(bytes).map(|()| Self::WindowRequest),
            PacketType::KeyUpdateRequest => {
                u32_of(bytes).map(|epoch| Self::KeyUpdateRequest { epoch })
            }
            PacketType::EpochDone => u32_of(bytes).map(|epoch| Self::EpochDone { epoch }),
            PacketType::EpochAck => u32_of(bytes).map(|epoch| Self::EpochAck { epoch }),
            PacketType::Ping => u64_of(bytes).map(Self::Ping),
            PacketType::Pong => u64_of(bytes).map(Self::Pong),
            PacketType::Probe => Ok(Self::Probe { padding: bytes.len() }),
            PacketType::ProbeAck => u32_of(bytes).map(|size| Self::ProbeAck { size }),
            PacketType::Close => exact::<CLOSE_LEN>(bytes)
                .map(|body| Self::Close { code: u16_at(body, close::CODE) }),
            PacketType::PartWindow => list(bytes).map(Self::PartWindow),
            PacketType::PartWindowRequest => list(bytes).map(Self::PartWindowRequest),
            PacketType::Association => {
                exact(bytes).map(AssociationFields::parse).map(Self::Association)
            }
            PacketType::AssociationAck => {
                u32_of(bytes).map(|serial| Self::AssociationAck { serial })
            }
            PacketType::AssociationRequest => {
                u32_of(bytes).map(|serial| Self::AssociationRequest { serial })
            }
            PacketType::Data
            | PacketType::Handshake
            | PacketType::Cookie
            | PacketType::VersionAnswer
            | PacketType::Reset
            | PacketType::Unavailable => Err(ParseError::Malformed("not a control packet")),
        }
    }

    /// Fills `out`, which is exactly as long as the body.
    ///
    /// # Panics
    /// If a list has no entry or more than 64.
    pub(crate) fn write(&self, out: &mut [u8]) {
        match self {
            Self::Confirm | Self::WindowRequest => {}
            Self::Grant(list) => write_list(list, out),
            Self::Resend(list) => write_list(list, out),
            Self::Ack(list) => write_list(list, out),
            Self::Busy(list)
            | Self::NeedAck(list)
            | Self::Cancel(list)
            | Self::Voided(list)
            | Self::Seen(list)
            | Self::NeverSeen(list)
            | Self::SeenAndGone(list)
            | Self::PartWindowRequest(list) => write_list(list, out),
            Self::PartWindow(list) => write_list(list, out),
            Self::Abort(abort) => abort.write(out),
            Self::Association(fields) => fields.write(out),
            Self::Window { limit: value } | Self::Ping(value) | Self::Pong(value) => {
                out.copy_from_slice(&value.to_be_bytes());
            }
            Self::KeyUpdateRequest { epoch: value }
            | Self::EpochDone { epoch: value }
            | Self::EpochAck { epoch: value }
            | Self::AssociationAck { serial: value }
            | Self::AssociationRequest { serial: value }
            | Self::ProbeAck { size: value } => out.copy_from_slice(&value.to_be_bytes()),
            Self::Probe { .. } => out.fill(0),
            Self::Close { code } => {
                put(out, close::CODE, &code.to_be_bytes());
                out[close::RESERVED].fill(0);
            }
        }
    }
}

/// Bytes after the body of a control packet of this type.
pub(crate) const fn sealed_len(ty: PacketType) -> usize {
    match ty {
        PacketType::Confirm => RESET_TOKEN_LEN + TAG_LEN,
        PacketType::Association => ASSOCIATION_KEY_LEN + TAG_LEN,
        _ => TAG_LEN,
    }
}

fn write_list<T: Entry>(list: &List<'_, T>, out: &mut [u8]) {
    assert!((1..=LIST_MAX).contains(&list.len()), "a list has 1 to 64 entries");
    list.write(out);
}

fn list<T: Entry>(bytes: &[u8]) -> Result<List<'_, T>, ParseError> {
    let list = List::from_bytes(bytes).ok_or(WRONG_SIZE)?;
    if list.is_empty() || list.len() > LIST_MAX {
        return Err(ParseError::Malformed("control packet with no entry, or more than 64"));
    }
    Ok(list)
}

fn empty(bytes: &[u8]) -> Result<(), ParseError> {
    exact::<0>(bytes).map(|_| ())
}

fn u32_of(bytes: &[u8]) -> Result<u32, ParseError> {
    exact::<4>(bytes).map(|value| u32_at(value, 0..4))
}

fn u64_of(bytes: &[u8]) -> Result<u64, ParseError> {
    exact::<8>(bytes).map(|value| u64_at(value, 0..8))
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], ParseError> {
    bytes.try_into().map_err(|_| WRONG_SIZE)
}

/// u16 code and six reserved bytes.
pub(crate) const CLOSE_LEN: usize = 8;

pub(crate) mod close {
    crate::layout::fields! {
        CODE = 0..2;
        RESERVED = 2..8;
    }
}

const _: () = assert!(close::RESERVED.end == CLOSE_LEN);

const WRONG_SIZE: ParseError =
    ParseError::Malformed("control packet with a body of another size than its type's");
