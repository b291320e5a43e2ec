// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets that wait to leave (SPEC §8).
//!
//! Entries of one kind share packets. Every list is bounded; an entry that does not fit is dropped,
//! since the side that needs it asks again. All ids of a packet have one stripe, so a list is taken
//! stripe by stripe.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smt_wire::{Ack, Body, Grant, LIST_MAX, List, MessageId, PacketType, Resend};

use crate::limits::CONTROL_QUEUED;
use crate::message::incoming::Incoming;

/// Entries that wait to be sent as control packets.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue {
    singles: VecDeque<(u16, Body<'static>)>,
    grants: Vec<Grant>,
    resends: Vec<Resend>,
    acks: Vec<Ack>,
    /// Ids for the packets that are lists of ids; few sessions ever have any.
    ids: Option<Box<[Vec<MessageId>; ID_TYPES.len()]>>,
}

/// One packet's worth, taken out of the queue.
pub(crate) enum Taken {
    Single(u16, Body<'static>),
    Grants(Vec<Grant>),
    Resends(Vec<Resend>),
    Acks(Vec<Ack>),
    Ids(PacketType, Vec<MessageId>),
}

impl ControlQueue {
    /// Queues a packet that is no list.
    pub(crate) fn push(&mut self, stripe: u16, body: Body<'static>) {
        if self.singles.len() < CONTROL_QUEUED {
            self.singles.push_back((stripe, body));
        }
    }

    /// Puts a packet back that did not fit.
    pub(crate) fn push_front(&mut self, stripe: u16, body: Body<'static>) {
        self.singles.push_front((stripe, body));
    }

    /// Queues a grant; a waiting one for the same message is replaced.
    pub(crate) fn grant(&mut self, grant: Grant) {
        match self
            .grants
            .iter_mut()
            .rev()
            .take(SEARCHED)
            .find(|waiting| waiting.id == grant.id)
        {
            Some(waiting) => *waiting = grant,
            None => push_bounded(&mut self.grants, grant),
        }
    }

    /// Queues how far a message is that has begun, since a GRANT may have been lost. If it
    /// `is_asked` for missing bytes, the ranges to be sent again are queued too. Returns whether
    /// any bytes are missing.
    pub(crate) fn progress(&mut self, id: MessageId, incoming: &Incoming, is_asked: bool) -> bool {
        let missing = incoming.missing(RESEND_RANGES);
        self.grant(incoming.grant(id));
        if is_asked {
            for range in &missing {
                self.resend(Resend {
                    id,
                    offset: range.start,
                    length: range.end - range.start,
                });
            }
        }
        !missing.is_empty()
    }

    /// Queues how far a reply is, as [`Self::progress`] does; perhaps no record of it has opened.
    pub(crate) fn reply_progress(
        &mut self,
        id: MessageId,
        incoming: Option<&Incoming>,
        is_asked: bool,
    ) {
        match incoming {
            Some(incoming) => {
                self.progress(id, incoming, is_asked);
            }
            None if !is_asked => {}
            None => self.resend(Resend {
                id,
                offset: 0,
                length: Resend::TO_THE_END,
            }),
        }
    }

    pub(crate) fn resend(&mut self, resend: Resend) {
        push_bounded(&mut self.resends, resend);
    }

    pub(crate) fn ack(&mut self, ack: Ack) {
        match self
            .acks
            .iter_mut()
            .rev()
            .take(SEARCHED)
            .find(|waiting| waiting.base == ack.base)
        {
            Some(waiting) => waiting.bits |= ack.bits,
            None => push_bounded(&mut self.acks, ack),
        }
    }

    /// Queues an id for one of the packets that are lists of ids.
    pub(crate) fn id(&mut self, packet_type: PacketType, id: MessageId) {
        let kind = ID_TYPES
            .iter()
            .position(|known| *known == packet_type)
            .expect("a packet that lists ids");
        push_bounded(&mut self.ids.get_or_insert_default()[kind], id);
    }

    /// Queues again what was taken and has not left.
    pub(crate) fn put_back(&mut self, taken: Taken) {
        match taken {
            Taken::Single(stripe, body) => self.push_front(stripe, body),
            Taken::Grants(grants) => grants.into_iter().for_each(|grant| self.grant(grant)),
            Taken::Resends(resends) => resends.into_iter().for_each(|resend| self.resend(resend)),
            Taken::Acks(acks) => acks.into_iter().for_each(|ack| self.ack(ack)),
            Taken::Ids(packet_type, ids) => ids.into_iter().for_each(|id| self.id(packet_type, id)),
        }
    }

    /// Takes the entries that key epochs depend on; they leave even when the control key is nearly
    /// used up.
    pub(crate) fn take_epoch(&mut self) -> Option<Taken> {
        let at = self.singles.iter().position(is_of_epoch)?;
        let (stripe, body) = self.singles.remove(at)?;
        Some(Taken::Single(stripe, body))
    }

    /// Whether [`Self::take_epoch`] has something.
    pub(crate) fn has_epoch(&self) -> bool {
        self.singles.iter().any(is_of_epoch)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty()
            && self.grants.is_empty()
            && self.resends.is_empty()
            && self.acks.is_empty()
            && self
                .ids
                .as_ref()
                .is_none_or(|ids| ids.iter().all(Vec::is_empty))
    }

    /// Takes one packet's worth, at most `most` entries. `stripe_of` tells the stripe of an id.
    pub(crate) fn take(
        &mut self,
        most: usize,
        stripe_of: impl Fn(MessageId) -> u16,
    ) -> Option<Taken> {
        let most = most.min(LIST_MAX);
        if let Some((stripe, body)) = self.singles.pop_front() {
            return Some(Taken::Single(stripe, body));
        }
        if !self.grants.is_empty() {
            return Some(Taken::Grants(take_stripe(
                &mut self.grants,
                most,
                |grant| stripe_of(grant.id),
            )));
        }
        if !self.resends.is_empty() {
            return Some(Taken::Resends(take_stripe(
                &mut self.resends,
                most,
                |resend| stripe_of(resend.id),
            )));
        }
        if !self.acks.is_empty() {
            return Some(Taken::Acks(take_stripe(&mut self.acks, most, |ack| {
                stripe_of(ack.base)
            })));
        }
        let ids = self.ids.as_mut()?;
        let kind = ids.iter().position(|ids| !ids.is_empty())?;
        Some(Taken::Ids(
            ID_TYPES[kind],
            take_stripe(&mut ids[kind], most, |id| stripe_of(*id)),
        ))
    }
}

impl Taken {
    /// The packet's stripe and body.
    pub(crate) fn body(&self, stripe_of: impl Fn(MessageId) -> u16) -> (u16, Body<'_>) {
        match self {
            Self::Single(stripe, body) => (*stripe, *body),
            Self::Grants(grants) => (
                stripe_of(grants[0].id),
                Body::Grant(List::from(grants.as_slice())),
            ),
            Self::Resends(resends) => (
                stripe_of(resends[0].id),
                Body::Resend(List::from(resends.as_slice())),
            ),
            Self::Acks(acks) => (
                stripe_of(acks[0].base),
                Body::Ack(List::from(acks.as_slice())),
            ),
            Self::Ids(packet_type, ids) => (stripe_of(ids[0]), ids_body(*packet_type, ids)),
        }
    }
}

fn is_of_epoch((_, body): &(u16, Body<'static>)) -> bool {
    matches!(body, Body::EpochDone { .. } | Body::EpochAck { .. })
}

fn ids_body(packet_type: PacketType, ids: &[MessageId]) -> Body<'_> {
    let list = List::from(ids);
    match packet_type {
        PacketType::Busy => Body::Busy(list),
        PacketType::NeedAck => Body::NeedAck(list),
        PacketType::Cancel => Body::Cancel(list),
        PacketType::Voided => Body::Voided(list),
        PacketType::Seen => Body::Seen(list),
        PacketType::NeverSeen => Body::NeverSeen(list),
        PacketType::SeenAndGone => Body::SeenAndGone(list),
        other => unreachable!("{other} does not list ids"),
    }
}

fn push_bounded<T: PartialEq>(list: &mut Vec<T>, entry: T) {
    if list.len() < CONTROL_QUEUED && list.last() != Some(&entry) {
        list.push(entry);
    }
}

/// Takes up to `most` entries of the first one's stripe, in order.
fn take_stripe<T>(list: &mut Vec<T>, most: usize, stripe_of: impl Fn(&T) -> u16) -> Vec<T> {
    let stripe = stripe_of(&list[0]);
    let same = list
        .iter()
        .take(most)
        .take_while(|entry| stripe_of(entry) == stripe)
        .count();
    list.drain(..same).collect()
}

/// Waiting entries looked at for one that a new entry replaces: a repetition does no harm, a search
/// does.
const SEARCHED: usize = 16;
/// Ranges asked for in one answer; more come with the next question.
const RESEND_RANGES: usize = 16;
/// The packets that are lists of ids, answers that end something first.
const ID_TYPES: [PacketType; 7] = [
    PacketType::Voided,
    PacketType::Seen,
    PacketType::SeenAndGone,
    PacketType::NeverSeen,
    PacketType::Cancel,
    PacketType::Busy,
    PacketType::NeedAck,
];
