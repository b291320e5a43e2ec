// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stripes of a session: the ids and control numbers of both sides (SPEC §4).

use alloc::vec::Vec;

use smt_record::{
    AllocationError, ControlWindow, IdAllocator, IdLayout, IdParts, IdWindow, OutgoingId, Side,
};
use smt_wire::{Ack, ControlNumber, MessageId};

use crate::establish::agreement::Agreement;
use crate::send::pending_acks::{PendingAcks, ack_of};

/// Ids and control numbers of one stripe.
#[derive(Debug)]
pub(super) struct Stripe {
    allocator: IdAllocator,
    /// Counters below may be used (advertised by the peer).
    peer_limit: u64,
    /// The peer's ids.
    pub(super) window: IdWindow,
    /// The limit that the peer was last told.
    told_limit: u64,
    control_counter: u64,
    /// The peer's control numbers.
    pub(super) control_window: ControlWindow,
    pub(super) acks: PendingAcks,
}

impl Stripe {
    fn new(agreement: &Agreement, stripe: u16) -> Self {
        let (layout, side) = (agreement.layout, agreement.side);
        Self {
            allocator: IdAllocator::new(layout, side, stripe),
            peer_limit: u64::from(agreement.peer_window),
            window: IdWindow::new(agreement.own_window, layout, side.peer(), stripe),
            told_limit: u64::from(agreement.own_window),
            control_counter: 0,
            control_window: ControlWindow::new(),
            acks: PendingAcks::default(),
        }
    }

    /// The next id of this side.
    pub(super) fn next_id(&mut self) -> Result<OutgoingId, AllocationError> {
        self.allocator.next(self.peer_limit)
    }

    /// The counter of the next control packet, which is used by this call.
    pub(super) fn next_control_counter(&mut self) -> u64 {
        let counter = self.control_counter;
        self.control_counter += 1;
        counter
    }

    /// Counters below may be used by this side.
    pub(super) fn peer_limit(&self) -> u64 {
        self.peer_limit
    }

    /// Takes a limit that the peer has told. Returns whether it permits more ids.
    pub(super) fn raise_peer_limit(&mut self, limit: u64) -> bool {
        let is_more = limit > self.peer_limit;
        self.peer_limit = self.peer_limit.max(limit);
        is_more
    }

    /// The limit of the peer's ids, which is told with what leaves now.
    pub(super) fn tell_limit(&mut self) -> u64 {
        self.told_limit = self.window.limit();
        self.told_limit
    }

    /// The limit of the peer's ids, if it is to be told before the peer would have to ask: the
    /// window has moved by more than half of its `width`.
    pub(super) fn limit_to_tell(&mut self, width: u32) -> Option<u64> {
        let is_due = self.window.limit() - self.told_limit > u64::from(width / 2);
        is_due.then(|| self.tell_limit())
    }
}

/// All stripes of a session.
#[derive(Debug)]
pub(super) struct Stripes {
    all: Vec<Stripe>,
    /// Messages begin in the stripes in turn.
    next: usize,
    layout: IdLayout,
    side: Side,
}

impl Stripes {
    pub(super) fn new(agreement: &Agreement) -> Self {
        let stripes = 0..1u16 << agreement.layout.stripes_log2;
        Self {
            all: stripes.map(|stripe| Stripe::new(agreement, stripe)).collect(),
            next: 0,
            layout: agreement.layout,
            side: agreement.side,
        }
    }

    /// The stripes of a session in which `sent` control packets have left in stripe 0 and one was
    /// received, before it was established.
    pub(super) fn after_handshake(
        agreement: &Agreement,
        sent: u64,
        received: Option<ControlNumber>,
    ) -> Self {
        let mut stripes = Self::new(agreement);
        stripes.all[0].control_counter = sent;
        if let Some(ControlNumber { stripe, counter }) = received {
            stripes.at(stripe).control_window.accept(counter);
        }
        stripes
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stripe> {
        self.all.iter_mut()
    }

    /// The stripe of this number; `None` if the session has fewer.
    pub(super) fn get_mut(&mut self, stripe: u16) -> Option<&mut Stripe> {
        self.all.get_mut(usize::from(stripe))
    }

    /// The stripe of a number that has been checked.
    pub(super) fn at(&mut self, stripe: u16) -> &mut Stripe {
        &mut self.all[usize::from(stripe)]
    }

    /// The stripe of an id.
    pub(super) fn of(&self, id: MessageId) -> &Stripe {
        &self.all[usize::from(self.number_of(id))]
    }

    /// The stripe of an id, to change it.
    pub(super) fn of_mut(&mut self, id: MessageId) -> &mut Stripe {
        let stripe = self.number_of(id);
        self.at(stripe)
    }

    /// The number of an id's stripe.
    pub(super) fn number_of(&self, id: MessageId) -> u16 {
        self.layout.stripe(id)
    }

    /// Whether this side initiated the id.
    pub(super) fn is_own(&self, id: MessageId) -> bool {
        let is_servers = id.0 >> self.layout.stripes_log2 & 1 == 1;
        is_servers == (self.side == Side::Server)
    }

    /// The parts of an id; `None` if the session has no such id.
    pub(super) fn split(&self, id: MessageId) -> Option<IdParts> {
        self.layout.split(id)
    }

    /// The parts of an id that either side may have issued; an id of this side must have been.
    pub(super) fn issued(&self, id: MessageId) -> Option<IdParts> {
        self.split(id).filter(|parts| match self.is_own(id) {
            true => parts.counter < self.of(id).allocator.counter(),
            false => self.of(id).window.in_range(parts.counter),
        })
    }

    /// Whether the limit that the peer has told says that it has seen an id of this side: the limit
    /// is a `window` above its floor.
    pub(super) fn is_below_peer_floor(&self, id: MessageId, window: u32) -> bool {
        let floor = self.of(id).peer_limit.saturating_sub(window.into());
        self.split(id).is_some_and(|parts| parts.counter < floor)
    }

    /// Whether it is an id of this side that no message has had yet.
    pub(super) fn is_unissued(&self, id: MessageId) -> bool {
        let parts = self.split(id).filter(|_| self.is_own(id));
        parts.is_some_and(|parts| parts.counter >= self.of(id).allocator.counter())
    }

    /// The next id of this side, of the stripes in turn.
    ///
    /// # Errors
    /// `Blocked` if the peer permits no more ids in any stripe; `Exhausted` if the ids of a stripe
    /// are used up.
    pub(super) fn next_id(&mut self) -> Result<OutgoingId, AllocationError> {
        let mut tries = self.all.len();
        loop {
            let stripe = self.next;
            self.next = (stripe + 1) % self.all.len();
            tries -= 1;
            match self.all[stripe].next_id() {
                Err(AllocationError::Blocked { .. }) if tries > 0 => {}
                allocated => return allocated,
            }
        }
    }

    /// The id that the peer uses as its first, second, and so on, from 0.
    pub(super) fn nth_of_peer(&self, number: u64) -> Option<MessageId> {
        let stripes = self.all.len() as u64;
        let stripe = u16::try_from(number % stripes).ok()?;
        self.layout.id(number / stripes, self.side.peer(), stripe).ok()
    }

    /// How many ids the peer uses before this one: [`Self::nth_of_peer`] the other way round.
    /// `None` if the id is not the peer's.
    pub(super) fn number_at_peer(&self, id: MessageId) -> Option<u64> {
        let parts = self.split(id).filter(|_| !self.is_own(id))?;
        let before = parts.counter.checked_mul(self.all.len() as u64)?;
        before.checked_add(u64::from(parts.stripe))
    }

    /// Whether [`Self::next_id`] would be `Blocked`.
    pub(super) fn is_blocked(&self) -> bool {
        let mut numbered = (0..).zip(&self.all);
        numbered.all(|(number, stripe)| {
            let next = stripe.allocator.counter();
            let is_left = self.layout.id(next, self.side, number).is_ok();
            is_left && next >= stripe.peer_limit
        })
    }

    /// Notes that the message under `id` is not needed any more, to be told with what leaves.
    pub(super) fn ack_later(&mut self, id: MessageId) {
        let shift = self.shift();
        self.of_mut(id).acks.note(id, shift);
    }

    /// The acknowledgement of one id.
    pub(super) fn ack_of(&self, id: MessageId) -> Ack {
        ack_of(id, self.shift())
    }

    /// The counter's distance from the id's low end: k + 1 (SPEC §4.1).
    fn shift(&self) -> u32 {
        u32::from(self.layout.stripes_log2) + 1
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use smt_record::IndexBits;
    use smt_wire::Geometry;
    use std::prelude::v1::*;

    /// Ids of the peer in a stripe, as few as may be.
    const WINDOW: u32 = 64;

    /// An agreement of a client that may use `ids` ids in a stripe.
    fn agreement(stripes_log2: u8, ids: u32) -> Agreement {
        let bits = IndexBits::new(17).unwrap();
        Agreement {
            side: Side::Client,
            geometry: Geometry::new(1_142, 16_384).unwrap(),
            send_bits: bits,
            receive_bits: bits,
            layout: IdLayout::new(bits, bits, stripes_log2).unwrap(),
            own_window: WINDOW,
            peer_window: ids,
            message_max: 1_000_000,
            received_max: 1_000_000,
            unscheduled: 60_000,
            datagram_limit: 1_472,
            takes_bundles: true,
            sends_bundles: true,
            peer_part_window: 0,
            psp_version: None,
        }
    }

    /// The stripes of a client that may use `ids` ids in each.
    pub(in crate::session) fn stripes(stripes_log2: u8, ids: u32) -> Stripes {
        Stripes::new(&agreement(stripes_log2, ids))
    }

    fn peer_id(stripes: &Stripes, counter: u64) -> MessageId {
        stripes.layout.id(counter, Side::Server, 0).unwrap()
    }

    #[test]
    fn the_ids_of_the_peer_are_numbered_as_it_uses_them() {
        let mut of_client = stripes(1, 2);
        let mut agreement = agreement(1, 2);
        agreement.side = Side::Server;
        let at_server = Stripes::new(&agreement);
        for number in 0..4 {
            let id = of_client.next_id().unwrap().id();
            assert_eq!(at_server.nth_of_peer(number), Some(id));
            assert_eq!(at_server.number_at_peer(id), Some(number));
            assert_eq!(of_client.number_at_peer(id), None);
        }
    }

    #[test]
    fn messages_begin_in_the_stripes_in_turn_until_all_windows_are_full() {
        let mut stripes = stripes(1, 2);
        let mut next_id = || {
            assert!(!stripes.is_blocked());
            stripes.next_id().unwrap().id()
        };
        let ids: Vec<MessageId> = (0..4).map(|_| next_id()).collect();
        assert!(stripes.is_blocked());
        let numbers: Vec<u16> = ids.iter().map(|id| stripes.number_of(*id)).collect();
        assert_eq!(numbers, [0, 1, 0, 1]);
        let blocked = stripes.next_id().unwrap_err();
        assert!(matches!(blocked, AllocationError::Blocked { .. }));
        assert!(stripes.at(1).raise_peer_limit(3) && !stripes.at(1).raise_peer_limit(3));
        let id = stripes.next_id().unwrap().id();
        assert_eq!(stripes.number_of(id), 1);
    }

    #[test]
    fn ids_of_this_side_count_once_a_message_has_had_them() {
        let mut stripes = stripes(0, 8);
        let id = stripes.layout.id(0, Side::Client, 0).unwrap();
        assert!(stripes.is_own(id) && stripes.is_unissued(id) && stripes.issued(id).is_none());
        assert_eq!(stripes.next_id().unwrap().id(), id);
        assert!(!stripes.is_unissued(id) && stripes.issued(id).is_some());
    }

    #[test]
    fn ids_of_the_peer_count_within_its_window() {
        let stripes = stripes(0, 8);
        let window = u64::from(WINDOW);
        let (last, beyond) = (peer_id(&stripes, window - 1), peer_id(&stripes, window));
        assert!(!stripes.is_own(last) && !stripes.is_unissued(beyond));
        assert!(stripes.issued(last).is_some() && stripes.issued(beyond).is_none());
    }

    #[test]
    fn the_peer_is_told_of_new_ids_when_more_than_half_of_its_window_is_used() {
        let mut stripes = stripes(0, 8);
        let stripe = stripes.at(0);
        let half = u64::from(WINDOW / 2);
        for counter in 0..half {
            stripe.window.mark_seen(counter).unwrap();
            assert_eq!(stripe.limit_to_tell(WINDOW), None);
        }
        stripe.window.mark_seen(half).unwrap();
        let limit = half + 1 + u64::from(WINDOW);
        assert_eq!(stripe.limit_to_tell(WINDOW), Some(limit));
        assert_eq!(stripe.limit_to_tell(WINDOW), None, "it has been told");
    }

    #[test]
    fn control_numbers_go_on_where_the_handshake_left_off() {
        let received = ControlNumber { stripe: 0, counter: 2 };
        let mut stripes = Stripes::after_handshake(&agreement(0, 8), 3, Some(received));
        assert_eq!(stripes.at(0).next_control_counter(), 3);
        assert_eq!(stripes.at(0).next_control_counter(), 4);
        assert!(!stripes.at(0).control_window.check(2) && stripes.at(0).control_window.check(3));
    }
}
