// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA of replies to our calls (SPEC §5.4, §9.4).
//!
//! The first record that opens acknowledges the request; the whole reply ends the call, and its
//! acknowledgement waits for a message to ride in.

use smt_wire::{Data, Kind, MessageId};

use super::data::{accept, early_piece, piece};
use super::{Session, Shared};
use crate::call::{Call, LiveCall};
use crate::event::Event;
use crate::incoming::Piece;
use crate::outgoing::Outgoing;
use crate::time::Time;

impl Session {
    /// DATA of a reply to a call of ours.
    pub(super) fn handle_reply_data(
        &mut self,
        now: Time,
        id: MessageId,
        data: &Data<'_>,
        shared: &mut Shared,
    ) {
        let Some(Call::Live(live)) = self.calls.get(id.0) else {
            shared.statistics.packets_duplicate += 1;
            return;
        };
        let has_begun = live.incoming.is_some();
        if !has_begun && !self.begin_reply(now, id, data, shared) {
            return;
        }
        let has_opened = self.take_reply_data(now, id, piece(data), shared);
        if !has_begun {
            for packet in self.take_early(id, shared) {
                match packet.payload.is_empty() {
                    true => self.note_cut(now, self.trimmed(&packet.header), shared),
                    false => {
                        self.take_reply_data(now, id, early_piece(&packet), shared);
                    }
                }
            }
            self.first_opened(now, id, shared);
        }
        // Only what opens earns the reply a place among the messages that are granted.
        if has_opened || !has_begun {
            self.finish_reply(id, shared);
        }
    }

    /// Opens record 0 of a reply. The first record of a reply acknowledges its request.
    fn begin_reply(
        &mut self,
        now: Time,
        id: MessageId,
        data: &Data<'_>,
        shared: &mut Shared,
    ) -> bool {
        let Some(mut incoming) = self.begin(now, id, data, shared) else {
            return false;
        };
        let header = *incoming.header();
        let Some(Call::Live(live)) = self.calls.get_mut(id.0) else {
            return false;
        };
        if header.kind != Kind::Reply || live.is_one_way {
            shared.statistics.violations += 1;
            return false;
        }
        incoming.allow(live.reply_unscheduled, 0);
        let is_large_request = live.outgoing.as_ref().is_some_and(Outgoing::is_large);
        self.first_came(&mut incoming, data, shared);
        let Some(Call::Live(live)) = self.calls.get_mut(id.0) else {
            return false;
        };
        if is_large_request {
            self.discovery.progressed();
        }
        shared.books.enter(&incoming);
        live.outgoing = None;
        live.is_seen = true;
        live.incoming = Some(incoming);
        let retransmit = data.header.retransmit;
        live.question.came(now, &mut self.patience, retransmit);
        self.heard(now);
        self.take_ride(now, id, &header, shared);
        true
    }

    /// Gives a piece to a reply. Whether a record has opened.
    fn take_reply_data(
        &mut self,
        now: Time,
        id: MessageId,
        piece: Piece<'_>,
        shared: &mut Shared,
    ) -> bool {
        let Some(Call::Live(live)) = self.calls.get_mut(id.0) else {
            return false;
        };
        let Some(incoming) = live.incoming.as_mut() else {
            return false;
        };
        let bits = self.agreement.receive_bits;
        let has_opened = accept(incoming, &mut self.open, bits, (id, piece), shared);
        if has_opened {
            let (retransmit, length) = (piece.retransmit, piece.payload.len());
            live.question.came(now, &mut self.patience, retransmit);
            self.heard(now);
            self.payload_opened(length);
        }
        has_opened
    }

    /// Delivers a reply that is whole.
    fn finish_reply(&mut self, id: MessageId, shared: &mut Shared) {
        let rpc = self.rpc(id);
        let Some(Call::Live(live)) = self.calls.get(id.0) else {
            return;
        };
        let Some(incoming) = live.incoming.as_ref() else {
            return;
        };
        if !incoming.is_complete() {
            shared.seek_grants(rpc, incoming);
            return;
        }
        shared.forget(rpc, incoming);
        self.patience.untroubled();
        let stripe = usize::from(self.stripe_of(id));
        let shift = self.shift();
        self.stripes[stripe].acks.note(id, shift);
        shared.statistics.messages_delivered += 1;
        let Some(Call::Live(LiveCall {
            incoming: Some(incoming),
            bundle,
            ..
        })) = self.calls.remove(id.0)
        else {
            return;
        };
        self.member_answered(bundle, id);
        shared.events.push_back(Event::Reply {
            rpc,
            body: incoming.into_body(),
        });
    }
}
