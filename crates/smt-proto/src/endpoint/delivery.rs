// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Delivery to the application: events, and the messages of peers.
//!
//! Messages are told of as events at once, or they wait in the accept queue until the application
//! accepts them ([`Endpoint::queue_messages`]). In both cases
//! requests of peers that acknowledge no replies wait (`backpressure`), and a shutdown refuses the
//! requests that have not been delivered.

use alloc::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use smt_wire::AbortCode;

use super::Endpoint;
use crate::event::{Event, PeerMessage, RpcId};
use crate::metadata::Metadata;
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
    /// count towards [`TransportConfig::memory_max`](crate::TransportConfig::memory_max) until
    /// then. No event tells of them; [`Self::arrived`] counts them.
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
        if self.has_backpressure() {
            return self.poll_event_behind_replies();
        }
        loop {
            let event = self.shared.events.pop_front()?;
            if self.is_to_be_told(&event) {
                return Some(event);
            }
        }
    }

    /// Whether [`Self::poll_event`] has something to tell.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.events.is_empty() || !self.accept_queue.is_on && self.is_backpressure_over()
    }

    /// The next message of a peer that waits to be accepted. A request whose caller has given up is
    /// left out, and one of a peer that keeps too many replies waits longer
    /// ([`Self::keeps_too_much`]). A one-way message whose time has passed is left out too, and
    /// counted ([`Statistics::messages_expired`](crate::Statistics)).
    ///
    /// Before [`Self::queue_messages`] events tell of all messages, and none waits here.
    pub fn accept(&mut self, now: Time) -> Option<PeerMessage> {
        if !self.accept_queue.is_on {
            return None;
        }
        let has_backpressure = self.has_backpressure();
        while has_backpressure && let Some(request) = self.next_behind_replies() {
            if self.is_to_be_delivered(now, &request) {
                return Some(request);
            }
        }
        loop {
            let message = self.accept_queue.waiting.pop_front()?;
            if has_backpressure && !message.is_one_way && self.must_wait(message.rpc.session) {
                self.wait_behind_replies(message);
                continue;
            }
            self.shared.memory.leave_waiting(message.cost());
            if self.is_to_be_delivered(now, &message) {
                return Some(message);
            }
        }
    }

    /// Gives back a message that was accepted, and that the application has not looked at. It waits
    /// again until its peer does not keep too many replies, and is then accepted before those that
    /// have come later.
    pub fn unaccept(&mut self, message: PeerMessage) {
        self.shared.memory.enter_waiting(message.cost());
        if let Some(session) = self.sessions.get_mut(message.rpc.session.0) {
            session.take_back(message.rpc.id);
        }
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
        self.empty_taken_back();
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

    /// Frees the memory of requests that were taken back while they waited, once they are many:
    /// from then on CANCEL is answered VOIDED, and their bytes are of no use (SPEC §9.6). They keep
    /// their places until they are passed over.
    fn empty_taken_back(&mut self) {
        if self.shared.taken_back <= self.accept_queue.waiting.len() / 2 {
            return;
        }
        self.shared.taken_back = 0;
        for message in &mut self.accept_queue.waiting {
            let session = self.sessions.get(message.rpc.session.0);
            let is_wanted = session.is_some_and(|session| session.is_wanted(message.rpc.id));
            if !message.is_one_way && !is_wanted {
                self.shared.memory.leave_waiting(message.cost());
                message.body = Bytes::new();
                message.metadata = Metadata::new();
                self.shared.memory.enter_waiting(message.cost());
            }
        }
    }

    /// Whether an event is to be told: a request whose caller has given up before is not.
    fn is_to_be_told(&mut self, event: &Event) -> bool {
        match event {
            Event::Request { rpc, .. } => self.hand_over(*rpc),
            _ => true,
        }
    }

    /// Whether a message that has waited is handed over now.
    pub(super) fn is_to_be_delivered(&mut self, now: Time, message: &PeerMessage) -> bool {
        if !message.is_one_way {
            return self.hand_over(message.rpc);
        }
        let is_late = message.is_late(now);
        self.shared.statistics.messages_expired += u64::from(is_late);
        !is_late
    }

    /// Hands a request over to the application. Returns whether its answer is still wanted.
    fn hand_over(&mut self, rpc: RpcId) -> bool {
        let session = self.sessions.get_mut(rpc.session.0);
        session.is_some_and(|session| session.hand_over(rpc.id))
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
                Some(_) => {
                    let event = self.shared.events.pop_front()?;
                    if self.is_to_be_told(&event) {
                        return Some(event);
                    }
                }
                None => {
                    let request = self.next_behind_replies()?;
                    if self.hand_over(request.rpc) {
                        return Some(request.into());
                    }
                }
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
            let _ = self.abort(now, rpc, AbortCode::ShuttingDown);
        }
    }
}
