// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Delivery to the application: events, and the messages of peers.
//!
//! Messages are told of as events at once, or they wait in the accept queue until the application
//! accepts them ([`Endpoint::queue_messages`]). In both cases
//! requests of peers that acknowledge no replies wait (`backpressure`), and a shutdown refuses the
//! requests that have not been delivered.

use alloc::collections::{BTreeSet, VecDeque};

use smt_wire::AbortCode;

use super::Endpoint;
use crate::event::{Event, PeerMessage, RpcId};
use crate::time::Time;

/// Messages of peers that the application has not accepted, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct AcceptQueue {
    is_on: bool,
    waiting: VecDeque<PeerMessage>,
    arrived: u64,
}

impl Endpoint {
    /// From now on messages of peers wait in the endpoint until [`Self::accept`] takes them, and
    /// count towards [`Config::memory_max`](crate::Config::memory_max) until then. No event tells
    /// of them; [`Self::arrived`] counts them.
    pub fn queue_messages(&mut self) {
        self.accept_queue.is_on = true;
    }

    /// The next event.
    ///
    /// If messages of peers wait for [`Self::accept`], no event tells of them. Else requests of a
    /// peer that keeps too many replies wait until the peer has acknowledged some, and later events
    /// overtake them ([`Self::keeps_too_much`]).
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.accept_queue.is_on {
            return self.poll_event_but_messages();
        }
        if !self.has_backpressure() {
            return self.shared.events.pop_front();
        }
        self.poll_event_behind_replies()
    }

    /// Whether [`Self::poll_event`] has something to tell.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.events.is_empty() || !self.accept_queue.is_on && self.is_backpressure_over()
    }

    /// The next message of a peer that waits to be accepted. A request whose caller has given up is
    /// left out, and one of a peer that keeps too many replies waits longer
    /// ([`Self::keeps_too_much`]).
    ///
    /// Before [`Self::queue_messages`] events tell of all messages, and none waits here.
    pub fn accept(&mut self) -> Option<PeerMessage> {
        if !self.accept_queue.is_on {
            return None;
        }
        let has_backpressure = self.has_backpressure();
        if has_backpressure && let Some(request) = self.next_behind_replies() {
            return Some(request);
        }
        loop {
            let message = self.accept_queue.waiting.pop_front()?;
            if has_backpressure && !message.is_one_way && self.must_wait(message.rpc.session) {
                self.wait_behind_replies(message);
                continue;
            }
            self.shared.memory.leave_waiting(message.cost());
            if self.is_to_be_delivered(&message) {
                return Some(message);
            }
        }
    }

    /// Gives back a message that was accepted, and that the application has not looked at. It waits
    /// again until its peer does not keep too many replies, and is then accepted before those that
    /// have come later.
    pub fn unaccept(&mut self, message: PeerMessage) {
        self.shared.memory.enter_waiting(message.cost());
        self.wait_behind_replies(message);
    }

    /// Messages of peers that have come to the accept queue so far.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.accept_queue.arrived
    }

    /// Messages in the accept queue, but for those that wait behind replies.
    #[must_use]
    pub fn accept_queue_len(&self) -> usize {
        self.accept_queue.waiting.len()
    }

    /// Whether requests that had to wait behind replies need not wait any more, so that
    /// [`Self::accept`] may give them out.
    #[must_use]
    pub fn has_released_requests(&self) -> bool {
        self.accept_queue.is_on && self.is_backpressure_over()
    }

    /// The next event; messages go to the accept queue.
    fn poll_event_but_messages(&mut self) -> Option<Event> {
        loop {
            let event = self.shared.events.pop_front()?;
            match event {
                Event::Request { .. } | Event::OneWay { .. } => self.queue_message(event),
                // The application has not been told of the request.
                Event::Cancelled(rpc) if self.backpressure.contains(&rpc) => {}
                _ => return Some(event),
            }
        }
    }

    fn queue_message(&mut self, event: Event) {
        if let Some(message) = event.into_message() {
            self.shared.memory.enter_waiting(message.cost());
            self.accept_queue.arrived += 1;
            self.accept_queue.waiting.push_back(message);
        }
    }

    pub(super) fn is_to_be_delivered(&self, message: &PeerMessage) -> bool {
        message.is_one_way || self.is_wanted(message.rpc)
    }

    /// The next event, while some peer keeps much or requests wait.
    #[cold]
    fn poll_event_behind_replies(&mut self) -> Option<Event> {
        loop {
            match self.shared.events.front() {
                Some(Event::Request { rpc, .. }) if self.must_wait(rpc.session) => {
                    self.hold_first_event();
                }
                // The application has not been told of the request.
                Some(Event::Cancelled(rpc)) if self.backpressure.contains(rpc) => {
                    self.shared.events.pop_front();
                }
                Some(_) => return self.shared.events.pop_front(),
                None => return self.next_behind_replies().map(Event::from),
            }
        }
    }

    /// The first event is a request that waits.
    fn hold_first_event(&mut self) {
        let event = self.shared.events.pop_front();
        if let Some(request) = event.and_then(Event::into_message) {
            self.shared.memory.enter_waiting(request.cost());
            self.wait_behind_replies(request);
        }
    }

    /// Refuses all requests that were not delivered to the application, as those that come later
    /// are refused: the endpoint shuts down.
    pub(super) fn refuse_undelivered_requests(&mut self, now: Time) {
        let mut undelivered: BTreeSet<RpcId> = BTreeSet::new();
        for request in self.backpressure.take_all() {
            self.shared.memory.leave_waiting(request.cost());
            undelivered.insert(request.rpc);
        }
        let memory = &mut self.shared.memory;
        self.accept_queue.waiting.retain(|message| {
            if !message.is_one_way {
                memory.leave_waiting(message.cost());
                undelivered.insert(message.rpc);
            }
            message.is_one_way
        });
        self.shared.events.retain(|event| match event {
            Event::Request { rpc, .. } => {
                undelivered.insert(*rpc);
                false
            }
            Event::Cancelled(rpc) => !undelivered.contains(rpc),
            _ => true,
        });
        for rpc in undelivered {
            // Without success where its caller has given up.
            let _ = self.abort(now, rpc, AbortCode::Refused);
        }
    }
}
