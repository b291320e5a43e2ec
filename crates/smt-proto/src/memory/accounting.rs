// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for messages on their way in, over all sessions: what they hold, and what they were
//! promised (SPEC §9.2).
//!
//! A message may come to hold all that its sender was allowed to send, in any order: its last
//! record makes room for all before it. Promises therefore count like bytes that are held; else
//! many messages that have just begun could grow far beyond the bound together. Messages that are
//! whole and wait for the application count as well: a peer sends as many as it likes, and the
//! application need not take them.
//!
//! Replies have an account of their own: a caller decides when it acknowledges them, so it decides
//! what this side keeps.

use crate::limits::{BACKLOG_MAX, BACKLOG_SHARE, REPLIES_MIN, REPLIES_SHARE, SERVED_BYTES};
use crate::message::incoming::Incoming;

/// The memory account of an endpoint.
#[derive(Debug)]
pub(crate) struct MemoryAccount {
    held: usize,
    promised: usize,
    /// Bytes of delivered messages that the application has not taken yet, as the endpoint's owner
    /// has told.
    untaken: usize,
    /// The most that `untaken` may be.
    untaken_max: usize,
    /// Bytes of requests that wait behind replies that their senders have not acknowledged.
    waiting: usize,
    /// Bytes of parts of calls that the application has not taken, and of replies that wait for
    /// their parts.
    parts: usize,
    /// Bytes of replies that no caller has acknowledged.
    replies: usize,
    /// Bytes that requests take beside their bodies while they are worked on or their replies are
    /// kept.
    served: usize,
}

impl Default for MemoryAccount {
    fn default() -> Self {
        Self {
            held: 0,
            promised: 0,
            untaken: 0,
            untaken_max: usize::MAX,
            waiting: 0,
            parts: 0,
            replies: 0,
            served: 0,
        }
    }
}

impl MemoryAccount {
    /// Enters a message that has begun.
    pub(crate) fn enter(&mut self, incoming: &Incoming) {
        self.held += incoming.memory();
        self.promised += incoming.promised();
    }

    /// Removes a message that is over.
    pub(crate) fn leave(&mut self, incoming: &Incoming) {
        self.held -= incoming.memory();
        self.promised -= incoming.promised();
    }

    /// Changes a message, and accounts for what it holds and was promised.
    pub(crate) fn change<T>(
        &mut self,
        incoming: &mut Incoming,
        change: impl FnOnce(&mut Incoming) -> T,
    ) -> T {
        self.leave(incoming);
        let outcome = change(incoming);
        self.enter(incoming);
        outcome
    }

    /// Whether no further message may begin, with `most` bytes of memory.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        self.used() >= most
    }

    /// Whether one more message may begin of a peer whose unfinished messages were promised
    /// `promised` bytes. One peer alone gets half of the memory for unscheduled bytes in this way,
    /// and each of two a third. Bytes that are granted later are not bounded by it.
    pub(crate) fn may_begin(&self, promised: usize, most: usize) -> bool {
        let used = self.used();
        used < most && promised <= most - used
    }

    fn used(&self) -> usize {
        self.held.max(self.promised) + self.untaken() + self.parts
    }

    /// Whether a message that has come whole is to be taken. Nothing is promised to it, so bytes
    /// that others were promised and have never sent do not keep it out.
    pub(crate) fn has_room(&self, most: usize) -> bool {
        self.held() < most
    }

    /// Whether delivered messages that the application has not taken are this much alone.
    pub(crate) fn is_untaken_full(&self, most: usize) -> bool {
        self.untaken() >= most
    }

    /// Enters a reply.
    pub(crate) fn enter_reply(&mut self, bytes: usize) {
        self.replies += bytes;
    }

    /// Removes replies of `bytes` bytes, which need not be kept any more.
    pub(crate) fn leave_replies(&mut self, bytes: usize) {
        self.replies -= bytes;
    }

    /// Changes the number of requests that a session serves.
    pub(crate) fn change_served(&mut self, before: usize, after: usize) {
        self.served = self.served + after * SERVED_BYTES - before * SERVED_BYTES;
    }

    /// Bytes of replies that are kept.
    pub(crate) fn replies(&self) -> usize {
        self.replies
    }

    /// Whether a peer with this many bytes of kept replies gets no more: see [`are_beyond`].
    pub(crate) fn keeps_too_much(&self, kept: usize, most: usize) -> bool {
        are_beyond(self.replies, kept, most)
    }

    /// Whether there can be a peer of which [`Self::keeps_too_much`] is true: one that keeps all of
    /// the replies.
    pub(crate) fn may_keep_too_much(&self, most: usize) -> bool {
        self.replies > REPLIES_MIN.min(most / REPLIES_SHARE)
    }

    /// Whether no further request of a peer is taken that has this many bytes in kept replies and
    /// served requests: see [`are_beyond`].
    pub(crate) fn serves_too_much(&self, taken: usize, most: usize) -> bool {
        are_beyond(self.replies + self.served, taken, most)
    }

    /// Whether replies take so much memory that those without news from their callers for a while
    /// are not kept any longer.
    pub(crate) fn is_pressed_by_replies(&self, most: usize) -> bool {
        self.replies >= most.saturating_add(most / REPLIES_SHARE)
    }

    /// Bytes held, including delivered ones that the application has not taken.
    pub(crate) fn held(&self) -> usize {
        self.held + self.untaken() + self.parts
    }

    /// Enters `bytes` bytes of parts that wait for the application.
    pub(crate) fn enter_parts(&mut self, bytes: usize) {
        self.parts += bytes;
    }

    /// Removes `bytes` bytes of parts that were taken, or dropped.
    pub(crate) fn leave_parts(&mut self, bytes: usize) {
        self.parts -= bytes;
    }

    /// Whether no further part of a peer is taken that has this many bytes in parts which wait, but
    /// for one that the application needs next: see [`are_beyond`].
    pub(crate) fn has_too_many_parts(&self, waiting: usize, most: usize) -> bool {
        are_beyond(self.parts, waiting, most)
    }

    /// Bytes of whole messages that the application has not taken, whoever has them.
    fn untaken(&self) -> usize {
        self.untaken + self.waiting
    }

    /// Enters a request of `bytes` bytes that waits to be told.
    pub(crate) fn enter_waiting(&mut self, bytes: usize) {
        self.waiting += bytes;
    }

    /// Removes a request that has waited and is now told, or dropped.
    pub(crate) fn leave_waiting(&mut self, bytes: usize) {
        self.waiting -= bytes;
    }

    pub(crate) fn set_untaken(&mut self, bytes: usize) {
        self.untaken = bytes;
    }

    pub(crate) fn set_untaken_max(&mut self, bytes: usize) {
        self.untaken_max = bytes;
    }

    /// Whether so much waits for the application that further short bodies get memory of their own.
    pub(crate) fn has_backlog(&self, most: usize) -> bool {
        self.untaken() >= (most / BACKLOG_SHARE).min(BACKLOG_MAX)
    }

    /// Whether this many more bytes may wait for the application.
    pub(crate) fn may_wait(&self, bytes: usize) -> bool {
        bytes <= self.untaken_max.saturating_sub(self.untaken())
    }
}

/// Whether a peer gets no more, which has `own` of the bytes that all peers together have `used`.
/// The bound is a share of the memory, or what is left if that is less. A peer that has little is
/// served nevertheless, so that all get on, until all together are a share beyond the memory. From
/// then on only a peer that has nothing gets something, and from two shares on no peer does.
fn are_beyond(used: usize, own: usize, most: usize) -> bool {
    let share = most / REPLIES_SHARE;
    let left = most.saturating_sub(used);
    let beyond = used.saturating_sub(most);
    own > left.max(REPLIES_MIN).min(share) || (own > 0 && beyond >= share) || beyond >= 2 * share
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4_000_000;

    /// Whether a peer with `kept` bytes of replies gets no more while `all` peers together have
    /// this many.
    fn is_too_much(kept: usize, all: usize) -> bool {
        let mut memory = MemoryAccount::default();
        memory.enter_reply(all);
        memory.keeps_too_much(kept, MOST)
    }

    #[test]
    fn one_peer_keeps_a_share_of_the_memory() {
        assert!(!is_too_much(1_000_000, 1_000_000));
        assert!(is_too_much(1_000_001, 1_000_001));
    }

    #[test]
    fn one_peer_keeps_no_more_than_the_little_that_is_left() {
        assert!(!is_too_much(200_000, 3_800_000));
        assert!(is_too_much(200_001, 3_800_000));
    }

    #[test]
    fn a_peer_that_keeps_little_gets_on_although_nothing_is_left() {
        assert!(!is_too_much(REPLIES_MIN, 4_999_999));
        assert!(is_too_much(REPLIES_MIN + 1, 4_999_999));
    }

    #[test]
    fn nothing_begins_where_all_memory_is_used_to_the_byte() {
        let mut memory = MemoryAccount::default();
        memory.set_untaken(MOST - 1);
        assert!(memory.may_begin(1, MOST) && !memory.may_begin(2, MOST));
        memory.set_untaken(MOST);
        assert!(!memory.may_begin(0, MOST));
    }

    #[test]
    fn a_share_beyond_the_memory_only_peers_that_keep_nothing_get_on() {
        assert!(is_too_much(1, 5_000_000));
        assert!(!is_too_much(0, 5_000_000));
    }

    #[test]
    fn however_many_peers_keep_little_all_keep_no_more_than_two_shares_beyond_the_memory() {
        assert!(!is_too_much(0, 5_999_999));
        assert!(is_too_much(0, 6_000_000));
    }

    #[test]
    fn requests_that_are_served_hold_up_new_ones_and_not_those_that_were_taken() {
        let mut memory = MemoryAccount::default();
        memory.change_served(0, 2 * MOST / SERVED_BYTES);
        assert!(memory.serves_too_much(0, MOST));
        assert!(!memory.keeps_too_much(REPLIES_MIN, MOST), "they end when they are answered");
    }
}
