// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets that wait to leave (SPEC §8).
//!
//! Entries of one kind share packets. Every list is bounded; an entry that does not fit is dropped,
//! since the side that needs it asks again. All ids of a packet have one stripe, so a list is taken
//! stripe by stripe.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use smt_wire::{Ack, Body, Grant, LIST_MAX, List, MessageId, PacketType, PartWindow, Resend};

use crate::limits::CONTROL_QUEUED;
use crate::message::incoming::Incoming;

/// Entries that wait to be sent as control packets.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue {
    singles: VecDeque<(u16, Body<'static>)>,
    grants: Vec<Grant>,
    resends: Vec<Resend>,
    acks: Vec<Ack>,
    /// Few sessions ever have any of these.
    rare: Option<Box<RareLists>>,
}

/// Lists that most sessions do not need.
#[derive(Debug, Default)]
struct RareLists {
    /// Ids for the packets that are lists of ids.
    ids: [Vec<MessageId>; ID_TYPES.len()],
    part_windows: Vec<PartWindow>,
}

impl RareLists {
    fn is_empty(&self) -> bool {
        self.part_windows.is_empty() && self.ids.iter().all(Vec::is_empty)
    }
}

/// An entry that is asked about: may it leave?
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    /// A packet that is no list.
    Single(&'a Body<'static>),
    /// GRANT, RESEND or NEED_ACK of a message.
    About(MessageId),
}

/// The place of an entry, until the queue changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Single(usize),
    Grant(usize),
    Resend(usize),
    NeedAck(usize),
}

/// One packet's worth, taken out of the queue.
pub(crate) enum Taken {
    Single(u16, Body<'static>),
    Grants(Vec<Grant>),
    Resends(Vec<Resend>),
    Acks(Vec<Ack>),
    PartWindows(Vec<PartWindow>),
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
        match self.grants.iter_mut().rev().take(SEARCHED).find(|waiting| waiting.id == grant.id) {
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
                self.resend(Resend { id, offset: range.start, length: range.end - range.start });
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
            None => self.resend(Resend { id, offset: 0, length: Resend::TO_THE_END }),
        }
    }

    pub(crate) fn resend(&mut self, resend: Resend) {
        push_bounded(&mut self.resends, resend);
    }

    pub(crate) fn ack(&mut self, ack: Ack) {
        match self.acks.iter_mut().rev().take(SEARCHED).find(|waiting| waiting.base == ack.base) {
            Some(waiting) => waiting.bits |= ack.bits,
            None => push_bounded(&mut self.acks, ack),
        }
    }

    /// Queues the window of the parts of a call; a waiting one of the same call is replaced.
    pub(crate) fn part_window(&mut self, window: PartWindow) {
        let waiting = &mut self.rare.get_or_insert_default().part_windows;
        let same = |waiting: &&mut PartWindow| waiting.id == window.id;
        match waiting.iter_mut().rev().take(SEARCHED).find(same) {
            Some(waiting) => *waiting = window,
            None => push_bounded(waiting, window),
        }
    }

    /// Queues an id for one of the packets that are lists of ids.
    pub(crate) fn id(&mut self, packet_type: PacketType, id: MessageId) {
        let kind = ID_TYPES
            .iter()
            .position(|known| *known == packet_type)
            .expect("a packet that lists ids");
        push_bounded(&mut self.rare.get_or_insert_default().ids[kind], id);
    }

    /// Queues again what was taken and has not left.
    pub(crate) fn put_back(&mut self, taken: Taken) {
        match taken {
            Taken::Single(stripe, body) => self.push_front(stripe, body),
            Taken::Grants(grants) => grants.into_iter().for_each(|grant| self.grant(grant)),
            Taken::Resends(resends) => resends.into_iter().for_each(|resend| self.resend(resend)),
            Taken::Acks(acks) => acks.into_iter().for_each(|ack| self.ack(ack)),
            Taken::PartWindows(windows) => {
                windows.into_iter().for_each(|window| self.part_window(window))
            }
            Taken::Ids(packet_type, ids) => ids.into_iter().for_each(|id| self.id(packet_type, id)),
        }
    }

    /// The place of the first entry for which `is_urgent`, of the packets that are no list and the
    /// questions about messages.
    pub(crate) fn first_urgent(&self, is_urgent: impl Fn(Entry<'_>) -> bool) -> Option<Place> {
        let is_about = |id: MessageId| is_urgent(Entry::About(id));
        let is_single = |(_, body): &(u16, Body<'static>)| is_urgent(Entry::Single(body));
        if let Some(at) = self.singles.iter().position(is_single) {
            return Some(Place::Single(at));
        }
        if let Some(at) = self.grants.iter().position(|grant| is_about(grant.id)) {
            return Some(Place::Grant(at));
        }
        if let Some(at) = self.resends.iter().position(|resend| is_about(resend.id)) {
            return Some(Place::Resend(at));
        }
        let at = self.need_acks().iter().position(|id| is_about(*id));
        at.map(Place::NeedAck)
    }

    /// Takes out one entry, as a packet of its own.
    pub(crate) fn take_at(&mut self, place: Place) -> Option<Taken> {
        Some(match place {
            Place::Single(at) => {
                let (stripe, body) = self.singles.remove(at)?;
                Taken::Single(stripe, body)
            }
            Place::Grant(at) => Taken::Grants(vec![self.grants.remove(at)]),
            Place::Resend(at) => Taken::Resends(vec![self.resends.remove(at)]),
            Place::NeedAck(at) => {
                let ids = &mut self.rare.as_mut()?.ids[NEED_ACK];
                Taken::Ids(PacketType::NeedAck, vec![ids.remove(at)])
            }
        })
    }

    fn need_acks(&self) -> &[MessageId] {
        self.rare.as_ref().map_or(&[], |rare| &rare.ids[NEED_ACK])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty()
            && self.grants.is_empty()
            && self.resends.is_empty()
            && self.acks.is_empty()
            && self.rare.as_ref().is_none_or(|rare| rare.is_empty())
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
            return Some(Taken::Grants(take_stripe(&mut self.grants, most, |grant| {
                stripe_of(grant.id)
            })));
        }
        if !self.resends.is_empty() {
            return Some(Taken::Resends(take_stripe(&mut self.resends, most, |resend| {
                stripe_of(resend.id)
            })));
        }
        if !self.acks.is_empty() {
            return Some(Taken::Acks(take_stripe(&mut self.acks, most, |ack| stripe_of(ack.base))));
        }
        let RareLists { ids, part_windows } = self.rare.as_deref_mut()?;
        if !part_windows.is_empty() {
            return Some(Taken::PartWindows(take_stripe(part_windows, most, |window| {
                stripe_of(window.id)
            })));
        }
        let kind = ids.iter().position(|ids| !ids.is_empty())?;
        Some(Taken::Ids(ID_TYPES[kind], take_stripe(&mut ids[kind], most, |id| stripe_of(*id))))
    }
}

impl Taken {
    /// The packet's stripe and body.
    pub(crate) fn body(&self, stripe_of: impl Fn(MessageId) -> u16) -> (u16, Body<'_>) {
        match self {
            Self::Single(stripe, body) => (*stripe, *body),
            Self::Grants(grants) => {
                (stripe_of(grants[0].id), Body::Grant(List::from(grants.as_slice())))
            }
            Self::Resends(resends) => {
                (stripe_of(resends[0].id), Body::Resend(List::from(resends.as_slice())))
            }
            Self::Acks(acks) => (stripe_of(acks[0].base), Body::Ack(List::from(acks.as_slice()))),
            Self::PartWindows(windows) => {
                (stripe_of(windows[0].id), Body::PartWindow(List::from(windows.as_slice())))
            }
            Self::Ids(packet_type, ids) => (stripe_of(ids[0]), ids_body(*packet_type, ids)),
        }
    }
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
        PacketType::PartWindowRequest => Body::PartWindowRequest(list),
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
    let same = list.iter().take(most).take_while(|entry| stripe_of(entry) == stripe).count();
    list.drain(..same).collect()
}

/// Waiting entries looked at for one that a new entry replaces: a repetition does no harm, a search
/// does.
const SEARCHED: usize = 16;
/// Ranges asked for in one answer; more come with the next question.
const RESEND_RANGES: usize = 16;
/// The packets that are lists of ids, answers that end something first.
const ID_TYPES: [PacketType; 8] = [
    PacketType::Voided,
    PacketType::Seen,
    PacketType::SeenAndGone,
    PacketType::NeverSeen,
    PacketType::Cancel,
    PacketType::Busy,
    PacketType::NeedAck,
    PacketType::PartWindowRequest,
];
/// The place of NEED_ACK among them.
const NEED_ACK: usize = 6;
const _: () = assert!(matches!(ID_TYPES[NEED_ACK], PacketType::NeedAck));
