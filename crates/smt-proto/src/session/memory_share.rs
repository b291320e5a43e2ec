// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory of the endpoint that a peer takes, and the messages that it may still begin (SPEC
//! §9.2, §10).
//!
//! Not here: the bounds of all peers together (`memory::accounting`).

use smt_wire::MessageId;

use crate::limits::{SERVED_BYTES, SERVED_MAX};
use crate::memory::accounting::MemoryAccount;

/// A session's share of the memory account.
#[derive(Debug, Default)]
pub(super) struct MemoryShare {
    /// Bytes of replies that the peer has not acknowledged, alone or in bundles.
    replies: usize,
    /// Bytes that unfinished messages of the peer may come to hold.
    promised: usize,
    /// Bytes of parts of the peer that wait for the application, and of replies that wait for such
    /// parts.
    parts: usize,
    /// Requests of the peer that the account has.
    served: u32,
    /// Room for one incomplete bundle or part of the peer at a time: a bundle may hold the replies
    /// that would make room, and a part's reader makes room.
    pub(super) reserve: Reserve,
}

/// Room for one message beyond the bound, while it is incomplete. One that found it taken is next:
/// a message of which nothing can be taken yet comes again and again, and would have the room each
/// time before one that makes room for all.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    holder: Option<MessageId>,
    next: Option<MessageId>,
    /// Others that were refused for the next one, which may come no more.
    refused: u8,
}

impl Reserve {
    /// Takes the room for a message. Returns whether it was free for this one: `is_live` tells
    /// which messages there are.
    pub(super) fn take(&mut self, id: MessageId, is_live: impl Fn(MessageId) -> bool) -> bool {
        if self.holder.is_some_and(is_live) {
            self.next.get_or_insert(id);
            return false;
        }
        if self.next.is_some_and(|next| next != id) && self.refused < REFUSED_FOR_NEXT {
            self.refused += 1;
            return false;
        }
        *self = Self { holder: Some(id), next: None, refused: 0 };
        true
    }
}

/// Messages that are refused the reserve for the one that is next. All that wait ask again within
/// the same while, so that one which is still there comes before.
const REFUSED_FOR_NEXT: u8 = 16;

/// The memory that a decision is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory<'a> {
    pub(super) account: &'a MemoryAccount,
    /// The endpoint's memory for messages, in bytes.
    pub(super) max: usize,
    /// Requests of this session that are received, worked on, or whose replies are kept.
    pub(super) served: usize,
}

/// Which new messages of the peer may begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    Any,
    /// Messages that come whole in one packet, and bundles.
    WholeOnly,
    /// Bundles alone: their replies make room.
    BundleOnly,
    None,
}

impl Admission {
    /// Whether a packet of a new message may be opened, or kept for later, by its offset.
    pub(super) fn takes_packet(self, offset: u32) -> bool {
        match self {
            Self::Any => true,
            Self::WholeOnly | Self::BundleOnly => offset == 0,
            Self::None => false,
        }
    }

    /// Whether a request or one-way message may begin, by whether it came whole.
    pub(super) fn takes_message(self, is_whole: bool) -> bool {
        match self {
            Self::Any => true,
            Self::WholeOnly => is_whole,
            Self::BundleOnly | Self::None => false,
        }
    }
}

impl MemoryShare {
    /// Which new messages may begin of a peer that sends bundles or does not.
    pub(super) fn admission(&self, memory: Memory<'_>, takes_bundles: bool) -> Admission {
        if !self.serves_too_much(memory) {
            if self.may_begin(memory) {
                return Admission::Any;
            }
            if self.has_room_for_whole(1, memory) {
                return Admission::WholeOnly;
            }
        }
        match takes_bundles {
            true => Admission::BundleOnly,
            false => Admission::None,
        }
    }

    /// Whether one more message of the peer may begin.
    pub(super) fn may_begin(&self, memory: Memory<'_>) -> bool {
        memory.account.may_begin(self.promised, memory.max)
            && self.may_wait(0, memory)
            && memory.served < SERVED_MAX
    }

    /// Whether this many more messages of the peer that have come whole may be taken.
    pub(super) fn has_room_for_whole(&self, messages: usize, memory: Memory<'_>) -> bool {
        memory.account.has_room(memory.max)
            && self.may_wait(0, memory)
            && memory.served + messages <= SERVED_MAX
    }

    /// Whether there is room for a part of a call, by whether it came whole. An application waits
    /// for parts, so they do not wait for an acceptor. Parts can be read only in their order: a
    /// peer that withholds one of each call has a share of the memory by the others, and no more.
    pub(super) fn takes_part(&self, is_whole: bool, memory: Memory<'_>) -> bool {
        if self.has_too_many_parts(memory) {
            return false;
        }
        match is_whole {
            true => memory.account.has_room(memory.max),
            false => memory.account.may_begin(self.promised, memory.max),
        }
    }

    /// Whether so many parts of the peer wait that only one which the application needs next is
    /// taken.
    pub(super) fn has_too_many_parts(&self, memory: Memory<'_>) -> bool {
        memory.account.has_too_many_parts(self.parts, memory.max)
    }

    /// Whether there is room for a message of this length until the application takes it.
    pub(super) fn may_wait(&self, length: usize, memory: Memory<'_>) -> bool {
        memory.account.may_wait(self.promised + length)
    }

    /// Whether the peer has so many replies unacknowledged that it gets no more.
    pub(super) fn keeps_too_much(&self, memory: Memory<'_>) -> bool {
        memory.account.keeps_too_much(self.replies, memory.max)
    }

    /// Whether no more requests of the peer are taken, because too many are worked on or have their
    /// replies kept. Their memory beside their bodies counts. It does not hold up requests that
    /// were taken, which end when they are answered.
    pub(super) fn serves_too_much(&self, memory: Memory<'_>) -> bool {
        let taken = self.replies + memory.served * SERVED_BYTES;
        memory.account.serves_too_much(taken, memory.max)
    }

    /// Adds bytes that an unfinished message of the peer may come to hold.
    pub(super) fn promise(&mut self, bytes: usize) {
        self.promised += bytes;
    }

    /// Takes the bytes off again, since the message is whole, or over.
    pub(super) fn end_promise(&mut self, bytes: usize) {
        self.promised -= bytes;
    }

    /// Enters a reply that was given.
    pub(super) fn enter_reply(&mut self, length: u32, account: &mut MemoryAccount) {
        self.replies += length as usize;
        account.enter_reply(length as usize);
    }

    /// Removes replies of `length` bytes that need not be kept any more.
    pub(super) fn leave_replies(&mut self, length: u32, account: &mut MemoryAccount) {
        self.replies -= length as usize;
        account.leave_replies(length as usize);
    }

    /// Removes all replies, since the session ends.
    pub(super) fn leave_all_replies(&mut self, account: &mut MemoryAccount) {
        account.leave_replies(core::mem::take(&mut self.replies));
    }

    /// Enters what the reader of a call's parts holds, which was `before` bytes and is `now`.
    pub(super) fn change_parts(&mut self, before: usize, now: usize, account: &mut MemoryAccount) {
        self.parts = self.parts - before + now;
        account.leave_parts(before);
        account.enter_parts(now);
    }

    /// Tells the account how many requests are served, which [`SERVED_MAX`] bounds.
    pub(super) fn account_served(&mut self, served: usize, account: &mut MemoryAccount) {
        let before = core::mem::replace(&mut self.served, served as u32);
        account.change_served(before as usize, served);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    const MAX: usize = 4_000_000;

    fn memory(account: &MemoryAccount, served: usize) -> Memory<'_> {
        Memory { account, max: MAX, served }
    }

    /// An account in which `untaken` bytes wait for the application.
    fn account(untaken: usize) -> MemoryAccount {
        let mut account = MemoryAccount::default();
        account.set_untaken(untaken);
        account
    }

    #[test]
    fn admission_narrows_from_any_message_over_whole_ones_to_bundles() {
        let admitted = |share: &MemoryShare, untaken, served| {
            let account = account(untaken);
            let memory = memory(&account, served);
            (share.admission(memory, true), share.admission(memory, false))
        };
        let mut share = MemoryShare::default();
        let any = (Admission::Any, Admission::Any);
        let full = (Admission::BundleOnly, Admission::None);
        assert_eq!(admitted(&share, 0, 0), any);
        assert_eq!(admitted(&share, MAX - 1, 0), any);
        assert_eq!(admitted(&share, MAX, 0), full);
        assert_eq!(admitted(&share, 0, SERVED_MAX), full);
        share.promise(2);
        let whole = (Admission::WholeOnly, Admission::WholeOnly);
        assert_eq!(admitted(&share, MAX - 1, 0), whole);
        share.end_promise(2);
        assert_eq!(admitted(&share, MAX - 1, 0), any);
    }

    #[test]
    fn each_admission_takes_what_its_name_says() {
        let takes = |admission: Admission| {
            (
                admission.takes_packet(0),
                admission.takes_packet(1_142),
                admission.takes_message(true),
                admission.takes_message(false),
            )
        };
        assert_eq!(takes(Admission::Any), (true, true, true, true));
        assert_eq!(takes(Admission::WholeOnly), (true, false, true, false));
        assert_eq!(takes(Admission::BundleOnly), (true, false, false, false));
        assert_eq!(takes(Admission::None), (false, false, false, false));
    }

    #[test]
    fn kept_replies_hold_up_requests_until_they_are_acknowledged() {
        let (mut share, mut account) = (MemoryShare::default(), MemoryAccount::default());
        share.enter_reply(2_000_000, &mut account);
        assert!(share.keeps_too_much(memory(&account, 0)));
        let admission = share.admission(memory(&account, 0), false);
        assert_eq!(admission, Admission::None);
        share.leave_replies(2_000_000, &mut account);
        assert!(!share.keeps_too_much(memory(&account, 0)));
        assert_eq!(account.replies(), 0);
    }

    #[test]
    fn requests_that_are_served_count_beside_their_bodies() {
        let share = MemoryShare::default();
        let account = MemoryAccount::default();
        let few = MAX / 8 / SERVED_BYTES;
        assert!(!share.serves_too_much(memory(&account, few)));
        assert!(share.serves_too_much(memory(&account, 4 * few)));
        assert!(!share.keeps_too_much(memory(&account, 4 * few)));
    }

    #[test]
    fn the_end_of_a_session_gives_back_what_it_had() {
        let (mut share, mut account) = (MemoryShare::default(), MemoryAccount::default());
        share.enter_reply(1_000, &mut account);
        share.account_served(3, &mut account);
        share.leave_all_replies(&mut account);
        share.account_served(0, &mut account);
        let unused = MemoryAccount::default();
        assert_eq!(format!("{account:?}"), format!("{unused:?}"));
    }

    // SMT [5.9-21]
    #[test]
    fn parts_that_wait_leave_room_for_parts_of_other_sessions() {
        let (mut hostile, honest) = (MemoryShare::default(), MemoryShare::default());
        let mut account = MemoryAccount::default();
        hostile.change_parts(0, MAX / 4, &mut account);
        assert!(hostile.takes_part(true, memory(&account, 0)));
        hostile.change_parts(0, 1, &mut account);
        for is_whole in [true, false] {
            assert!(!hostile.takes_part(is_whole, memory(&account, 0)));
            assert!(honest.takes_part(is_whole, memory(&account, 0)));
        }
        hostile.change_parts(MAX / 4 + 1, 0, &mut account);
        assert!(hostile.takes_part(true, memory(&account, 0)));
        let unused = MemoryAccount::default();
        assert_eq!(format!("{account:?}"), format!("{unused:?}"));
    }

    #[test]
    fn one_incomplete_message_at_a_time_comes_in_beyond_the_room() {
        let mut reserve = Reserve::default();
        let (first, second) = (MessageId(2), MessageId(4));
        assert!(reserve.take(first, |_| false));
        assert!(!reserve.take(second, |id| id == first));
        assert!(reserve.take(second, |_| false));
    }

    #[test]
    fn a_message_that_found_the_reserve_taken_is_next_unless_it_comes_no_more() {
        let mut reserve = Reserve::default();
        let [useless, needed, other] = [2, 4, 6].map(MessageId);
        assert!(reserve.take(useless, |_| false));
        assert!(!reserve.take(needed, |id| id == useless));
        assert!(!reserve.take(useless, |_| false) && !reserve.take(other, |_| false));
        assert!(reserve.take(needed, |_| false));
        assert!(!reserve.take(useless, |id| id == needed), "now it is next itself");
        let refused = (0..100).take_while(|_| !reserve.take(other, |_| false)).count();
        assert_eq!(refused, usize::from(REFUSED_FOR_NEXT));
    }
}
