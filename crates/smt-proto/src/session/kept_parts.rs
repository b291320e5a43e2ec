// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of replies that their caller has not acknowledged: this side keeps them, and the caller
//! decides for how long. They count as unacknowledged replies do (SPEC §10).
//!
//! 1. A part counts from when it is sent until it is acknowledged, or over. The bytes of one that
//!    leaves in a bundle go with the bundle.
//! 2. While a session keeps too much, each reply has one part on its way at a time. The next one is
//!    refused, and told of when the part is acknowledged.

use smt_wire::{MessageId, PART_OVERHEAD};

use super::Session;
use crate::event::Event;
use crate::message::client_message::{LiveMessage, SentPart};
use crate::shared::Shared;

impl Session {
    /// Whether the next part of a reply has to wait until the caller has acknowledged some. The
    /// application is told then.
    pub(super) fn must_keep_less(&mut self, request: MessageId, shared: &Shared) -> bool {
        if self.is_own(request) || !self.keeps_too_much(shared) {
            return false;
        }
        let writer = self.lane.parts.writer_mut(request);
        let Some(writer) = writer.filter(|writer| !writer.is_starved()) else {
            return false;
        };
        writer.wait_for_acks();
        true
    }

    /// Accounts for a part that is sent, of so many bytes.
    pub(super) fn keep_part(
        &mut self,
        request: MessageId,
        length: u32,
        shared: &mut Shared,
    ) -> SentPart {
        // The application chooses what it asks for.
        if self.is_own(request) {
            return SentPart { request, kept: 0 };
        }
        if let Some(writer) = self.lane.parts.writer_mut(request) {
            writer.kept();
        }
        let kept = length.saturating_add(PART_OVERHEAD);
        self.lane.memory_share.enter_reply(kept, &mut shared.memory);
        SentPart { request, kept }
    }

    /// Takes a message of this side that is over off the account, if it is a part of a reply. The
    /// next part may then leave.
    pub(super) fn part_over(&mut self, live: &LiveMessage, shared: &mut Shared) {
        let Some(part) = live.part().filter(|part| part.kept > 0) else {
            return;
        };
        if live.bundle.is_none() {
            self.lane.memory_share.leave_replies(part.kept, &mut shared.memory);
        }
        let keeps_too_much = self.keeps_too_much(shared);
        if let Some(writer) = self.lane.parts.writer_mut(part.request)
            && writer.acknowledged(keeps_too_much)
        {
            let rpc = self.rpc(part.request);
            shared.events.push_back(Event::PartWindowRaised(rpc));
        }
    }
}
