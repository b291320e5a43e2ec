// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of the peer that are whole: to the application, or to what is in them (SPEC §5.4).
//!
//! A message of one record, which most are, is delivered at once; a longer one when its last record
//! has opened. Replies to our calls are in `replies`, a bundle's members in `bundle`.

use bytes::Bytes;
use smt_record::FirstSight;
use smt_wire::{Kind, MessageId};

use crate::event::Event;
use crate::message::server_rpc::{ServerRpc, ServerRpcState};
use crate::recovery::retry_timer::RetryTimer;
use crate::session::Session;
use crate::session::timers::caller_quiet_max;
use crate::shared::Shared;
use crate::time::Time;

/// A request of the peer that came whole.
pub(in crate::session) struct NewRequest {
    pub(in crate::session) sight: FirstSight,
    pub(in crate::session) body: Bytes,
    /// Bytes of the reply that the caller takes without a grant.
    pub(in crate::session) reply_unscheduled: u32,
    /// When the caller gives up.
    pub(in crate::session) deadline: Option<Time>,
}

/// A request that is whole, and waits for its reply.
struct WholeRequest {
    id: MessageId,
    body: Bytes,
    deadline: Option<Time>,
}

impl Session {
    /// Delivers a request that came whole, alone or in a bundle.
    pub(in crate::session) fn take_whole_request(
        &mut self,
        now: Time,
        request: NewRequest,
        shared: &mut Shared,
    ) {
        let NewRequest {
            sight,
            body,
            reply_unscheduled,
            deadline,
        } = request;
        let id = sight.id();
        let served = ServerRpc {
            state: ServerRpcState::Working {
                right: sight.reply_right(),
            },
            retry: RetryTimer::new(now, self.recovery.rto.interval()),
            reply_unscheduled,
            deadline,
        };
        self.lane.server.insert(id.0, served);
        self.pass_timer.set(now + caller_quiet_max(shared));
        self.deliver_request(now, WholeRequest { id, body, deadline }, shared);
    }

    /// Delivers a message of the peer that is whole.
    pub(in crate::session) fn finish_receiving(
        &mut self,
        now: Time,
        id: MessageId,
        shared: &mut Shared,
    ) {
        let rpc = self.rpc(id);
        let Some(served) = self.lane.server.get_mut(id.0) else {
            return;
        };
        let ServerRpcState::Receiving { incoming, .. } = &served.state else {
            return;
        };
        if !incoming.is_complete() {
            shared.seek_grants(now, rpc, incoming);
            return;
        }
        self.lane.memory_share.end_promise(incoming.promised());
        shared.forget(rpc, incoming);
        self.recovery.rto.on_whole_message();
        let deadline = served.deadline;
        let ServerRpcState::Receiving { incoming, right } = served.take_state() else {
            return;
        };
        match right {
            None => {
                self.lane.server.remove(id.0);
                match incoming.header().kind {
                    Kind::Bundle => self.finish_bundle(now, id, *incoming, shared),
                    _ => self.deliver_one_way(id, incoming.into_body(), shared),
                }
            }
            Some(right) => {
                served.state = ServerRpcState::Working { right };
                self.pass_timer.set(now + caller_quiet_max(shared));
                let body = incoming.into_body();
                self.deliver_request(now, WholeRequest { id, body, deadline }, shared);
            }
        }
    }

    /// Delivers a request that is whole and waits for its reply.
    fn deliver_request(&mut self, now: Time, request: WholeRequest, shared: &mut Shared) {
        let WholeRequest { id, body, deadline } = request;
        if shared.is_draining {
            // It waits for its reply, so this cannot be refused.
            let _ = self.abort(now, id, smt_wire::AbortCode::Refused);
            return;
        }
        shared.statistics.messages_delivered += 1;
        shared.events.push_back(Event::Request {
            rpc: self.rpc(id),
            body: shared.body_to_wait(body),
            deadline,
        });
    }

    /// Delivers a one-way message that is whole.
    pub(in crate::session) fn deliver_one_way(
        &mut self,
        id: MessageId,
        body: Bytes,
        shared: &mut Shared,
    ) {
        let Some(parts) = self.lane.stripes.split(id) else {
            return;
        };
        let window = &mut self.lane.stripes.of_mut(id).window;
        window.mark_delivered(parts.counter);
        self.lane.control.ack(self.lane.stripes.ack_of(id));
        shared.statistics.messages_delivered += 1;
        let rpc = self.rpc(id);
        let body = shared.body_to_wait(body);
        shared.events.push_back(Event::OneWay { rpc, body });
    }
}
