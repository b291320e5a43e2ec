// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets of a peer that keeps no rule but their form.

use arbitrary::Arbitrary;
use smt_wire::{
    Abort, Ack, AssociationFields, Body, ControlHeader, ControlNumber, Grant, LIST_MAX, MessageId,
    PLAINTEXT_VERSION, PartWindow, Resend,
};

use super::victim::Victim;

/// A control packet.
#[derive(Arbitrary, Debug)]
pub(super) struct Said {
    /// Distance from the epoch that the peer is in.
    epoch: i8,
    stripe: u8,
    /// An old number instead of a new one.
    old_number: Option<u16>,
    what: What,
}

/// Its body.
#[derive(Arbitrary, Debug)]
enum What {
    Confirm,
    Grant(Vec<(Id, u32, u32, u8)>),
    Resend(Vec<(Id, u16, u32)>),
    Ack(Vec<(Id, u64)>),
    Ids(u8, Vec<Id>),
    PartWindow(Vec<(Id, PartLimit)>),
    Abort(Id, u8),
    Window(u64),
    /// The limit moves by this number.
    WindowBy(i16),
    WindowRequest,
    KeyUpdateRequest(u8),
    EpochDone(u8),
    EpochAck(u8),
    Ping(u64),
    Pong(u64),
    Probe(u16),
    ProbeAck(u32),
    Close(u16),
    /// Serial, SPI, version.
    Association(u8, u32, u8),
    AssociationAck(u8),
    AssociationRequest(u8),
}

/// A limit of parts: small enough that it may be the right one, or any.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum PartLimit {
    Small(u16),
    Any(u64),
}

impl PartLimit {
    fn bytes(self) -> u64 {
        match self {
            Self::Small(bytes) => bytes.into(),
            Self::Any(bytes) => bytes,
        }
    }
}

/// An id: one of the first few, of either side.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Id {
    Of { counter: u8, low: u8 },
    Any(u64),
}

impl Id {
    /// The id, with this many stripes as log2.
    pub(super) fn id(self, stripes_log2: u8) -> MessageId {
        match self {
            Self::Of { counter, low } => {
                let low = u64::from(low) & ((2 << stripes_log2) - 1);
                MessageId(u64::from(counter) << (stripes_log2 + 1) | low)
            }
            Self::Any(id) => MessageId(id),
        }
    }
}

impl Said {
    /// The packet.
    pub(super) fn datagram(&self, victim: &mut Victim) -> Vec<u8> {
        let stripe = u16::from(self.stripe) & ((1 << victim.stripes_log2) - 1);
        let counter = match self.old_number {
            Some(number) => number.into(),
            None => victim.next_number(),
        };
        let header = ControlHeader {
            epoch: victim.peer_epoch.wrapping_add_signed(self.epoch),
            session: victim.session,
            number: ControlNumber { stripe, counter },
        };
        self.with_body(victim, |body| {
            let mut bytes = vec![0; ControlHeader::packet_len(body)];
            // The tag of the plaintext version is zeros, and so is the token here.
            header.emit(PLAINTEXT_VERSION, body, &mut bytes);
            bytes
        })
    }

    fn with_body(&self, victim: &Victim, emit: impl Fn(&Body<'_>) -> Vec<u8>) -> Vec<u8> {
        let id = |id: &Id| id.id(victim.stripes_log2);
        match &self.what {
            what if what.is_empty() => emit(&Body::WindowRequest),
            What::Grant(entries) => {
                let entry = |(of, granted, received, priority): &(Id, u32, u32, u8)| Grant {
                    id: id(of),
                    granted: *granted,
                    received: *received,
                    priority: *priority,
                };
                emit(&Body::Grant(list(entries, entry).as_slice().into()))
            }
            What::Resend(entries) => {
                let entry = |(of, offset, length): &(Id, u16, u32)| Resend {
                    id: id(of),
                    offset: (*offset).into(),
                    length: *length,
                };
                emit(&Body::Resend(list(entries, entry).as_slice().into()))
            }
            What::Ack(entries) => {
                let entry = |(of, bits): &(Id, u64)| Ack { base: id(of), bits: *bits };
                emit(&Body::Ack(list(entries, entry).as_slice().into()))
            }
            What::Ids(kind, entries) => {
                let ids = list(entries, id);
                let ids = ids.as_slice().into();
                emit(&match kind % 8 {
                    0 => Body::Busy(ids),
                    1 => Body::NeedAck(ids),
                    2 => Body::Cancel(ids),
                    3 => Body::Voided(ids),
                    4 => Body::Seen(ids),
                    5 => Body::NeverSeen(ids),
                    6 => Body::PartWindowRequest(ids),
                    _ => Body::SeenAndGone(ids),
                })
            }
            What::PartWindow(entries) => {
                let entry =
                    |(of, limit): &(Id, PartLimit)| PartWindow { id: id(of), limit: limit.bytes() };
                emit(&Body::PartWindow(list(entries, entry).as_slice().into()))
            }
            What::Abort(of, code) => {
                // The codes 0 and 5 are unknown.
                let code = u16::from(*code) % 6;
                emit(&Body::Abort(Abort { id: id(of), code }))
            }
            other => emit(&other.single(victim)),
        }
    }
}

impl What {
    /// A list without an entry, which has no form.
    fn is_empty(&self) -> bool {
        match self {
            Self::Grant(entries) => entries.is_empty(),
            Self::Resend(entries) => entries.is_empty(),
            Self::Ack(entries) => entries.is_empty(),
            Self::Ids(_, entries) => entries.is_empty(),
            Self::PartWindow(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// A body that is no list.
    fn single(&self, victim: &Victim) -> Body<'static> {
        match self {
            Self::Window(limit) => Body::Window { limit: *limit },
            Self::WindowBy(distance) => {
                Body::Window { limit: victim.window.saturating_add_signed((*distance).into()) }
            }
            Self::WindowRequest => Body::WindowRequest,
            Self::KeyUpdateRequest(epoch) => Body::KeyUpdateRequest { epoch: (*epoch).into() },
            Self::EpochDone(epoch) => Body::EpochDone { epoch: (*epoch).into() },
            Self::EpochAck(epoch) => Body::EpochAck { epoch: (*epoch).into() },
            Self::Ping(value) => Body::Ping(*value),
            Self::Pong(value) => Body::Pong(*value),
            Self::Probe(padding) => Body::Probe { padding: usize::from(*padding).min(60_000) },
            Self::ProbeAck(size) => Body::ProbeAck { size: *size },
            Self::Close(code) => Body::Close { code: *code },
            Self::Association(serial, spi, version) => Body::Association(AssociationFields {
                serial: (*serial).into(),
                spi: *spi,
                version: *version,
            }),
            Self::AssociationAck(serial) => Body::AssociationAck { serial: (*serial).into() },
            Self::AssociationRequest(serial) => {
                Body::AssociationRequest { serial: (*serial).into() }
            }
            _ => Body::Confirm,
        }
    }
}

/// The entries of a list, as many as fit.
fn list<T, E>(said: &[T], entry: impl Fn(&T) -> E) -> Vec<E> {
    said.iter().take(LIST_MAX).map(entry).collect()
}
