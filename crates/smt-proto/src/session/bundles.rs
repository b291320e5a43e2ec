// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bundles: small messages that wait together leave in one record (SPEC §5.7).
//!
//! A bundle travels as a one-way message does: under an id of its own, repeated until it is acknowledged. Of its
//! members only the ids and what they are waits here.
//! 1. [`Session::gather`] puts what waits behind a message into a bundle with it; a message alone leaves alone.
//! 2. At the peer [`Session::open_bundle`] (`arriving`) hands out each member as if it had come alone.
//! 3. Whoever has seen the bundle has all members: [`Session::bundle_arrived`]. An answered request says so too.

mod arriving;

use std::cmp::Reverse;

use bytes::Bytes;
use smt_record::Padding;
use smt_wire::{FIRST_RECORD_SIZE_MAX, Kind, MemberHeader, MessageId};

use super::commands::deadline_field;
use super::{Session, Shared};
use crate::call::{Call, LiveCall};
use crate::error::{CallError, OneWayOutcome};
use crate::event::Event;
use crate::limits;
use crate::outgoing::Outgoing;
use crate::question::Question;
use crate::served::{Served, ServedState};
use crate::time::Time;

impl Session {
    /// `first` is about to leave. If more small messages wait, they leave with it: the bundle's id, else `first`.
    pub(super) fn gather(&mut self, now: Time, first: MessageId, shared: &mut Shared) -> MessageId {
        if self.bundles >= limits::BUNDLES_MAX {
            return first;
        }
        let padding = &shared.config.padding;
        let length = self.member_len(first);
        let Some(length) = length.filter(|length| self.holds(padding, *length)) else {
            return first;
        };
        let members = self.pop_members(first, padding, length);
        if members.is_empty() {
            return first;
        }
        let stripe = usize::from(self.stripe_of(first));
        let stripe = &mut self.stripes[stripe];
        let Ok(right) = stripe.allocator.next(stripe.peer_limit) else {
            self.push_back(&members[1..]);
            return first;
        };
        let id = right.id();
        let mut body = Vec::with_capacity(usize::from(FIRST_RECORD_SIZE_MAX));
        for member in members.iter().copied() {
            self.put_member(now, member, id, &mut body);
        }
        shared.statistics.messages_sent += members.len() as u64;
        shared.statistics.bundles_sent += 1;
        let padded = self
            .agreement
            .padded(&shared.config.padding, body.len() as u32);
        let (geometry, unscheduled) = (self.agreement.geometry, self.agreement.unscheduled);
        let outgoing = Outgoing::new(right, Bytes::from(body), padded, geometry, unscheduled);
        let question = Question::new(now, self.patience.interval());
        let live = LiveCall {
            is_one_way: true,
            members,
            ..LiveCall::new(outgoing, question)
        };
        self.set_due(live.due());
        self.calls.insert(id.0, Call::Live(live));
        self.bundles += 1;
        id
    }

    /// Whether there may be a bundle of so many application bytes: one that record 0 holds with its padding.
    fn holds(&self, padding: &Padding, length: usize) -> bool {
        let first = self.agreement.geometry.record(u32::MAX, 0).extent;
        let length = length as u32;
        self.agreement.sends_bundles
            && length <= self.agreement.message_max()
            && self.agreement.padded(padding, length) <= u32::from(first)
    }

    /// Bytes that a waiting message takes in a bundle. `None`: it has left, or is none that could.
    fn member_len(&self, id: MessageId) -> Option<usize> {
        let outgoing = match self.calls.get(id.0) {
            Some(Call::Live(live)) if !live.is_bundle() => live.outgoing.as_ref()?,
            Some(_) => return None,
            None => match &self.served.get(id.0)?.state {
                ServedState::Replying(outgoing) => outgoing,
                _ => return None,
            },
        };
        Some(MemberHeader::LEN + outgoing.waiting()?.len())
    }

    /// A message of this length and what fits with it of those that wait behind it, of the same stripe; nothing if it
    /// is alone.
    fn pop_members(
        &mut self,
        first: MessageId,
        padding: &Padding,
        mut length: usize,
    ) -> Vec<MessageId> {
        // Nothing is allocated for a message that leaves alone.
        let (mut members, mut others) = (Vec::new(), Vec::new());
        while let Some(Reverse((_, id))) = self.sendable.peek()
            && others.len() < OTHERS_PER_MEMBER * members.len().max(1)
            && let Some(more) = self.member_len(*id)
            && self.holds(padding, length + more)
        {
            let Some(entry) = self.sendable.pop() else {
                break;
            };
            let Reverse((_, id)) = entry;
            // It waits twice if a full window has put it before all others.
            if id == first {
                continue;
            }
            if self.stripe_of(id) == self.stripe_of(first) {
                length += more;
                if members.is_empty() {
                    members.push(first);
                }
                members.push(id);
            } else {
                others.push(entry);
            }
        }
        self.sendable.extend(others);
        members
    }

    /// Lets messages wait again that were taken from those that wait.
    fn push_back(&mut self, ids: &[MessageId]) {
        for id in ids.iter().copied() {
            if let Some(outgoing) = self.outgoing_mut(id) {
                outgoing.is_queued = false;
            }
            self.queue_sendable(id);
        }
    }

    /// A message becomes a member: its right to be sealed under its own id is gone.
    fn put_member(&mut self, now: Time, id: MessageId, bundle: MessageId, body: &mut Vec<u8>) {
        let (kind, deadline_us, reply_unscheduled, outgoing) = match self.calls.get_mut(id.0) {
            Some(Call::Live(live)) => {
                live.bundle = Some(bundle);
                let kind = match live.is_one_way {
                    true => Kind::OneWay,
                    false => Kind::Request,
                };
                let deadline_us = deadline_field(live.deadline, now);
                let outgoing = live.outgoing.take();
                (kind, deadline_us, live.reply_unscheduled, outgoing)
            }
            Some(Call::Cancelling(_)) => return,
            None => {
                let Some(served) = self.served.get_mut(id.0) else {
                    return;
                };
                let state = std::mem::replace(&mut served.state, ServedState::Bundled(bundle));
                let ServedState::Replying(outgoing) = state else {
                    return;
                };
                (Kind::Reply, 0, 0, Some(outgoing))
            }
        };
        let Some(text) = outgoing.as_ref().and_then(Outgoing::waiting) else {
            return;
        };
        let header = MemberHeader {
            id,
            kind,
            // It fits record 0, which has at most 1,142 bytes.
            length: text.len() as u16,
            deadline_us,
            reply_unscheduled,
        };
        let mut place = [0; MemberHeader::LEN];
        header.emit(&mut place);
        body.extend_from_slice(&place);
        body.extend_from_slice(text);
    }

    /// Whether any record of a call has left: its own, or that of the bundle that it is in.
    pub(super) fn has_left(&self, live: &LiveCall) -> bool {
        let bundle = live.bundle.and_then(|bundle| self.calls.get(bundle.0));
        match bundle {
            Some(Call::Live(bundle)) => bundle.has_left(),
            _ => live.has_left(),
        }
    }

    /// A request was answered: so the peer has seen the bundle that it left in. When all are, nobody has to be asked.
    pub(super) fn member_answered(&mut self, bundle: Option<MessageId>, id: MessageId) {
        let Some(bundle) = bundle else { return };
        let Some(Call::Live(live)) = self.calls.get_mut(bundle.0) else {
            return;
        };
        if let Some(place) = live.members.iter().position(|member| *member == id) {
            live.members.swap_remove(place);
        }
        if live.members.is_empty() {
            self.calls.remove(bundle.0);
            self.bundles -= 1;
        }
    }

    /// The peer has opened a bundle of ours; or, with an error, it has and knows no more of it.
    pub(super) fn bundle_arrived(
        &mut self,
        now: Time,
        members: Vec<MessageId>,
        error: Option<CallError>,
        shared: &mut Shared,
    ) {
        self.bundles -= 1;
        for id in members {
            match self.calls.get_mut(id.0) {
                Some(Call::Live(live)) if live.is_one_way => {
                    let Some(Call::Live(live)) = self.calls.remove(id.0) else {
                        continue;
                    };
                    match &error {
                        Some(error) => self.report_failure(id, &live, error.clone(), shared),
                        None => shared.events.push_back(Event::OneWayDone {
                            rpc: self.rpc(id),
                            outcome: OneWayOutcome::Delivered,
                        }),
                    }
                }
                Some(Call::Live(live)) => {
                    live.is_seen = true;
                    live.bundle = None;
                }
                Some(Call::Cancelling(_)) => {}
                None => {
                    let is_in_bundle =
                        |served: &Served| matches!(served.state, ServedState::Bundled(_));
                    if self.served.get(id.0).is_some_and(is_in_bundle) {
                        self.served.remove(id.0);
                        self.last_active = now;
                    }
                }
            }
        }
    }
}

/// Messages of other stripes that are passed over for each one that is found for a bundle: two heap operations each.
const OTHERS_PER_MEMBER: usize = 16;
