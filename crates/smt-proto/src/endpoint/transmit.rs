// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transmission of an endpoint: stateless answers first, then the sender with the fewest bytes
//! left, in batches.

use smt_carrier::{AssociationHandle, FlowId, Path, Transmit};
use smt_wire::SessionIndex;

use super::{Endpoint, Sender};
use crate::event::{ConnectId, RpcId};
use crate::send::batch::{BatchLimits, DatagramBatch};
use crate::send::buffer::TransmitBuffer;
use crate::send::flight_rest::FlightRest;
use crate::send::ready_queue::Place;
use crate::time::Time;

impl Endpoint {
    /// Writes the next datagrams into `buffer`, which is cleared first. Returns `None` if nothing
    /// is to be sent now.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut TransmitBuffer) -> Option<Transmit> {
        if self.is_quiet(now) {
            buffer.clear();
            return None;
        }
        if let Some((path, bytes)) = self.stateless.pop() {
            buffer.clear();
            buffer.append(&bytes);
            return Some(Transmit::new(path, bytes.len()));
        }
        let carrier = BatchLimits::of_carrier(&self.shared.capabilities);
        if let Some(rest) = &mut self.flight_rest {
            let transmit = rest.write(carrier, buffer);
            self.flight_rest.take_if(|rest| rest.is_empty());
            return Some(transmit);
        }
        self.decide_grants(now);
        let limits = carrier.within(self.shared.config.batch_max);
        let mut batch = DatagramBatch::new(buffer, limits);
        while let Some(sender) = self.schedule.ready.pop() {
            let is_of_messages = self.has_only_messages(sender);
            let path = match sender {
                Sender::Session(index) => self.write_session(now, index, &mut batch),
                Sender::ClientHandshake(id) => self.write_connect(id, &mut batch),
                Sender::ServerHandshake(index) => self.write_accept(index, &mut batch),
            };
            let Some(path) = path else { continue };
            if !batch.is_empty() {
                if is_of_messages {
                    self.fill(now, path, &mut batch);
                } else if !matches!(sender, Sender::Session(_)) {
                    self.flight_rest = FlightRest::cut_off(path, carrier, &mut batch);
                }
                let segment_size = batch.segment_size();
                let priority = match self.shared.capabilities.priorities {
                    true => batch.priority,
                    false => 0,
                };
                let flow = match sender {
                    Sender::Session(index) => FlowId(index.0),
                    Sender::ClientHandshake(_) | Sender::ServerHandshake(_) => FlowId::default(),
                };
                return Some(Transmit {
                    path,
                    segment_size,
                    priority,
                    flow,
                    association: batch.association,
                });
            }
        }
        None
    }

    /// Whether [`Self::poll_transmit`] may have something to send.
    #[must_use]
    pub fn has_output(&self, now: Time) -> bool {
        !self.is_quiet(now)
    }

    /// Whether nothing is to be sent. Owners ask after every look at the socket and every command,
    /// and the answer is mostly yes.
    fn is_quiet(&self, now: Time) -> bool {
        self.schedule.ready.is_empty()
            && self.stateless.is_empty()
            && self.flight_rest.is_none()
            && !self.has_grants_to_decide(now)
    }

    /// Lets messages of other sessions between the same sockets leave with what is in the batch, as
    /// far as they fit.
    fn fill(&mut self, now: Time, path: Path, batch: &mut DatagramBatch<'_>) {
        while !batch.is_full()
            && let Some(sender @ Sender::Session(index)) = self.schedule.ready.first()
            && self.has_only_messages(sender)
            && self.session_path(index) == Some(path)
            && self.session_association(index) == batch.association
        {
            let (before, place) = (batch.bytes.len(), self.place(index));
            self.schedule.ready.pop();
            self.write_session(now, index, batch);
            if batch.bytes.len() == before {
                self.put_back(index, place);
                return;
            }
        }
    }

    /// Lets a session of which nothing fitted keep its turn among its equals.
    fn put_back(&mut self, index: SessionIndex, before: Option<Place>) {
        let sender = Sender::Session(index);
        let (Some(before), Some(session)) = (before, self.sessions.get_mut(index.0)) else {
            return;
        };
        self.schedule.put_back(sender, session.as_mut(), before);
    }

    fn place(&self, index: SessionIndex) -> Option<Place> {
        self.sessions.get(index.0)?.slot.ready
    }

    fn has_only_messages(&self, sender: Sender) -> bool {
        let Sender::Session(index) = sender else {
            return false;
        };
        let session = self.sessions.get(index.0);
        session.is_some_and(|session| session.has_only_messages())
    }

    fn session_path(&self, index: SessionIndex) -> Option<Path> {
        self.sessions.get(index.0).map(|session| session.path)
    }

    fn session_association(&self, index: SessionIndex) -> Option<AssociationHandle> {
        let session = self.sessions.get(index.0)?;
        session.association()
    }

    pub(super) fn decide_grants(&mut self, now: Time) {
        let unscheduled_arrived = core::mem::take(&mut self.shared.unscheduled_arrived);
        let is_pull_due = self.is_pull_due(now);
        if let Some(policy) = self.policy.pull_mut() {
            if is_pull_due && policy.may_pull(now) {
                self.shared.grants.wake();
            }
            if unscheduled_arrived > 0 {
                policy.came_unscheduled(now, unscheduled_arrived);
            }
        }
        if !self.ask_for_trimmed(now) {
            return;
        }
        self.shared.grants.measure(now);
        if !self.shared.grants.is_dirty() {
            return;
        }
        let config = &self.shared.config;
        let (limit, is_full) = (config.incoming_max, self.shared.memory.is_full(config.memory_max));
        let is_for_nobody = self.shared.memory.is_untaken_full(config.memory_max);
        // Untaken memory grows by each message that becomes whole. Replies are the exception: a
        // caller waits for them, and may take no message before its reply.
        let sessions = &self.sessions;
        let frees_memory = |rpc: RpcId| {
            let session = sessions.get(rpc.session.0);
            !is_for_nobody || session.is_some_and(|session| session.is_own(rpc.id))
        };
        let frees_memory: Option<&dyn Fn(RpcId) -> bool> = match is_full {
            true => Some(&frees_memory),
            false => None,
        };
        let grants = &mut self.shared.grants;
        for granted in grants.decide(now, self.policy.decider(), limit, frees_memory) {
            let index = granted.rpc.session;
            if let Some(session) = self.sessions.get_mut(index.0) {
                let bytes = session.grant(now, granted, &mut self.shared);
                self.spend(now, bytes);
                self.reschedule(index);
            }
        }
    }

    /// Tells the policy's pacer, if it has one, of bytes that were permitted.
    fn spend(&mut self, now: Time, bytes: u32) {
        if let Some(policy) = self.policy.pull_mut() {
            policy.spend(now, bytes);
        }
    }

    /// Whether the grants and questions that have waited for the policy's pacer may go.
    pub(super) fn is_pull_due(&self, now: Time) -> bool {
        self.policy.next_pull().is_some_and(|due| due <= now)
    }

    fn has_grants_to_decide(&self, now: Time) -> bool {
        let shared = &self.shared;
        shared.grants.is_dirty()
            || shared.unscheduled_arrived > 0
            || !shared.trimmed_queue.is_empty()
            || self.is_pull_due(now)
    }

    /// Asks for trimmed ranges at the policy's pace. Returns whether nothing of them waits any
    /// longer.
    fn ask_for_trimmed(&mut self, now: Time) -> bool {
        while let Some(part) = self.shared.trimmed_queue.first() {
            let index = part.rpc.session;
            if let Some(session) = self.sessions.get_mut(index.0) {
                let policy = self.policy.pull_mut();
                // Under another policy than when they were noted, timers ask.
                let retry = session.resend_for(&part).filter(|_| policy.is_some());
                if retry.is_some() && policy.is_some_and(|policy| !policy.may_pull(now)) {
                    return false;
                }
                let bytes = session.trimmed_is_over(&part, retry, &mut self.shared);
                self.spend(now, bytes);
                self.reschedule(index);
            }
            self.shared.trimmed_queue.pop();
        }
        true
    }

    fn write_session(
        &mut self,
        now: Time,
        index: SessionIndex,
        batch: &mut DatagramBatch<'_>,
    ) -> Option<Path> {
        let session = self.sessions.get_mut(index.0)?;
        session.slot.ready = None;
        session.write(now, &mut self.shared, batch);
        let path = session.path;
        self.reschedule(index);
        Some(path)
    }

    fn write_connect(&mut self, id: ConnectId, batch: &mut DatagramBatch<'_>) -> Option<Path> {
        let connect = self.connects.get_mut(id.0)?;
        connect.slot.ready = None;
        if !connect.has_output() {
            return None;
        }
        connect.write(self.shared.config.version, batch);
        Some(connect.path)
    }

    fn write_accept(&mut self, index: SessionIndex, batch: &mut DatagramBatch<'_>) -> Option<Path> {
        let accept = self.accepts.get_mut(index.0)?;
        accept.slot.ready = None;
        if !accept.has_output() {
            return None;
        }
        accept.write(self.shared.config.version, batch);
        Some(accept.path)
    }
}
