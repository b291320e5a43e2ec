// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state behind an endpoint's lock: the protocol, and whoever waits for it.
//!
//! Every change ends with [`Core::turn`]: what is to be sent is sent, and events wake those who wait.
//! Waiting is by `Waker`, so that threads and tasks wait alike. Not here: receiving (`hub`).

mod ending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt};
use smt_carrier::{Carrier, SendError, Transmit};
use smt_io::UdpCarrier;
use smt_proto::handshake::PeerIdentity;
use smt_proto::{
    CallError, ConnectError, ConnectId, Endpoint, Event, OneWayOutcome, Refused, RpcId, SessionEnd,
    Time, TransmitBuffer,
};
use smt_wire::SessionIndex;

use crate::arrivals::Arrivals;
use crate::message::{Arrival, Peer};
use crate::outcomes::Outcomes;
use crate::state_lock::StateLock;
use crate::target::Target;

#[cfg(feature = "tokio")]
use ending::Releases;
pub(crate) use ending::SENT_WITHIN;
use ending::{Closing, Socket};

/// What an endpoint's lock protects.
pub(crate) struct Core {
    pub(crate) endpoint: Endpoint,
    /// Until the endpoint is shut down.
    carrier: Option<Arc<dyn Carrier>>,
    /// The same, if it is a socket; then what it has counted.
    socket: Socket,
    has_dscp: bool,
    transmit: TransmitBuffer,
    /// What the socket had no room for: from this byte on.
    unsent: Option<(Transmit, usize)>,
    /// Until then what is to be sent waits for what else is about to be, by [`Core::cork`].
    corked_until: Option<Time>,
    /// Events told since [`Core::cork`].
    told: usize,
    calls: Outcomes<Result<Bytes, CallError>>,
    one_ways: Outcomes<OneWayOutcome>,
    /// A client's server.
    pub(crate) target: Option<Target>,
    /// Keeps others from the state file.
    pub(crate) state_lock: Option<Arc<StateLock>>,
    peers: HashMap<SessionIndex, Arc<Peer>>,
    /// Callers that wait for ids.
    admission: Vec<Waker>,
    arrivals: Arrivals,
    /// Whoever is to be woken at a time although nothing has happened, by time and ticket.
    alarms: BTreeMap<(Time, u64), Waker>,
    next_ticket: u64,
    /// Whoever waits for all requests in progress to be finished.
    finishers: Vec<Waker>,
    pub(crate) is_closed: bool,
    /// How its sessions are to be closed, once they are.
    closing: Option<Closing>,
    /// Why nobody could receive an answer any more.
    is_left: Option<ConnectError>,
    /// Whoever waits until the task that drives has let go of the socket.
    #[cfg(feature = "tokio")]
    releases: Releases,
    /// When it was last changed.
    changed: Time,
}

impl Core {
    pub(crate) fn new(
        endpoint: Endpoint,
        carrier: Arc<dyn Carrier>,
        udp: Option<Arc<UdpCarrier>>,
        has_dscp: bool,
    ) -> Self {
        Self {
            endpoint,
            carrier: Some(carrier),
            socket: Socket::of(udp),
            has_dscp,
            transmit: TransmitBuffer::default(),
            unsent: None,
            corked_until: None,
            told: 0,
            calls: Outcomes::new(),
            one_ways: Outcomes::new(),
            target: None,
            state_lock: None,
            peers: HashMap::new(),
            admission: Vec::new(),
            arrivals: Arrivals::default(),
            alarms: BTreeMap::new(),
            next_ticket: 0,
            finishers: Vec::new(),
            is_closed: false,
            closing: None,
            is_left: None,
            #[cfg(feature = "tokio")]
            releases: Releases::default(),
            changed: Time::default(),
        }
    }

    /// Lets messages gather, so that they leave together. Whoever calls this is about to wake those who may have
    /// something to send, runs again as soon as they have run, and then calls [`Core::uncork`].
    #[cfg(feature = "tokio")]
    pub(crate) fn cork(&mut self, now: Time) {
        self.corked_until = Some(now + CORKED_MAX);
        self.told = 0;
    }

    /// Those who may have something to send are about to run: what was received until now took its time, and theirs begins.
    /// Returns how many they are.
    #[cfg(feature = "tokio")]
    pub(crate) fn gather(&mut self, now: Time) -> usize {
        self.corked_until = self.corked_until.map(|_| now + CORKED_MAX);
        self.told
    }

    /// Events told since [`Core::cork`]: so many may have something to send.
    pub(crate) fn told(&self) -> usize {
        self.told
    }

    /// Whether messages gather.
    pub(crate) fn is_corked(&self) -> bool {
        self.corked_until.is_some()
    }

    /// Sends what has gathered.
    #[cfg(feature = "tokio")]
    pub(crate) fn uncork(&mut self) {
        self.corked_until = None;
    }

    /// The time of a change for which the clock was read at `now`: another thread may have read it later and come first,
    /// but for the protocol time must not go back.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        self.changed = self.changed.max(now);
        self.changed
    }

    /// Sends what is to be sent and tells what has happened; `clock` is that by which it is `now`.
    pub(crate) fn turn(&mut self, now: Time, clock: impl FnOnce() -> Time) {
        match self.corked_until {
            None => self.send_all(now),
            Some(until) if until <= now => {
                self.flush(now);
                // Whoever has corked will run again: until then a flush now and then will do. From here: where sending takes
                // longer than that, since it wakes the peer, each message would leave by itself.
                self.corked_until = Some(clock() + CORKED_MAX);
            }
            Some(_) => {}
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.tell(event);
        }
        let endpoint = &self.endpoint;
        self.arrivals
            .wake_for_held_back(|session| endpoint.keeps_too_much(session));
        if !self.finishers.is_empty() && self.endpoint.served_len() == 0 {
            self.finishers.drain(..).for_each(Waker::wake);
        }
    }

    /// Does what is due. What `has_come` just now may not be all that the carrier has: then the protocol's timers wait until
    /// a look has found nothing, so that who was held up does not ask for what lies in its socket; but not for long.
    pub(crate) fn fire_timers(&mut self, now: Time, has_come: bool) {
        let put_off = if has_come { PUT_OFF } else { Duration::ZERO };
        if self
            .endpoint
            .poll_timeout()
            .is_some_and(|(due, _)| due + put_off <= now)
        {
            self.endpoint.handle_timeout(now);
        }
        while let Some(alarm) = self.alarms.first_entry()
            && alarm.key().0 <= now
        {
            alarm.remove().wake();
        }
    }

    /// Wakes at `due`, unless [`Core::clear_alarm`] comes first. A ticket has one alarm.
    pub(crate) fn set_alarm(&mut self, due: Time, ticket: &mut Option<u64>, waker: &Waker) {
        let ticket = *ticket.get_or_insert(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        self.alarms.insert((due, ticket), waker.clone());
    }

    pub(crate) fn clear_alarm(&mut self, due: Time, ticket: &mut Option<u64>) {
        if let Some(ticket) = ticket.take() {
            self.alarms.remove(&(due, ticket));
        }
    }

    /// How long nothing is to be done here, unless something comes.
    pub(crate) fn idle_time(&self, now: Time) -> Option<Duration> {
        let timer = self.endpoint.poll_timeout().map(|(due, _)| due);
        let alarm = self.alarms.keys().next().map(|(due, _)| *due);
        let timer = timer
            .into_iter()
            .chain(alarm)
            .min()
            .map(|due| due.since(now));
        let has_more = self.unsent.is_some() || !self.has_closed(now);
        match (has_more, timer) {
            (true, timer) => Some(timer.map_or(SEND_AGAIN, |timer| timer.min(SEND_AGAIN))),
            (false, timer) => timer,
        }
    }

    /// The live session with the client's server; connects if there is none. `attempt` is what this caller
    /// waits for.
    pub(crate) fn poll_session(
        &mut self,
        now: Time,
        attempt: &mut Option<ConnectId>,
        waker: &Waker,
    ) -> Poll<Result<SessionIndex, ConnectError>> {
        if let Some(why) = self.why_left() {
            return Poll::Ready(Err(why));
        }
        let target = self
            .target
            .as_mut()
            .expect("only clients ask, and they have a target from the beginning");
        match target.poll_session(now, &mut self.endpoint, attempt, waker) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    /// Begins a call; waits while the peer's window is full.
    pub(crate) fn poll_begin_call(
        &mut self,
        now: Time,
        (session, body): (SessionIndex, &Bytes),
        deadline: Option<Duration>,
        waker: &Waker,
    ) -> Poll<Result<RpcId, Refused>> {
        let begun = self.endpoint.call(now, session, body.clone(), deadline);
        if let Ok(rpc) = begun {
            self.calls.expect(rpc);
        }
        self.admit(begun, waker)
    }

    pub(crate) fn poll_call(
        &mut self,
        rpc: RpcId,
        waker: &Waker,
    ) -> Poll<Result<Bytes, CallError>> {
        self.calls.poll(rpc, waker)
    }

    /// The caller has gone: the call is cancelled if it is in progress.
    pub(crate) fn forget_call(&mut self, now: Time, rpc: RpcId) {
        if self.calls.forget(rpc) {
            self.endpoint.cancel(now, rpc);
        }
    }

    /// Begins a one-way message; waits while the peer's window is full.
    pub(crate) fn poll_begin_one_way(
        &mut self,
        now: Time,
        (session, body): (SessionIndex, &Bytes),
        deadline: Option<Duration>,
        waker: &Waker,
    ) -> Poll<Result<RpcId, Refused>> {
        let begun = self
            .endpoint
            .send_one_way(now, session, body.clone(), deadline);
        if let Ok(rpc) = begun {
            self.one_ways.expect(rpc);
        }
        self.admit(begun, waker)
    }

    pub(crate) fn poll_one_way(&mut self, rpc: RpcId, waker: &Waker) -> Poll<OneWayOutcome> {
        self.one_ways.poll(rpc, waker)
    }

    pub(crate) fn forget_one_way(&mut self, now: Time, rpc: RpcId) {
        if self.one_ways.forget(rpc) {
            self.endpoint.cancel(now, rpc);
        }
    }

    /// The next message of a peer; `None` once the endpoint is closed. `ticket` is this acceptor's place.
    pub(crate) fn poll_accept(
        &mut self,
        ticket: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Option<Arrival>> {
        // From now on somebody takes what comes.
        self.endpoint.set_untaken_max(usize::MAX);
        // A caller that has given up meanwhile is not served any more.
        let endpoint = &self.endpoint;
        let is_wanted = |arrival: &Arrival| arrival.is_one_way || endpoint.is_wanted(arrival.rpc);
        let keeps_too_much = |session| endpoint.keeps_too_much(session);
        let arrival = self.arrivals.pop(is_wanted, keeps_too_much);
        self.endpoint.set_untaken(self.arrivals.bytes());
        if arrival.is_some() || self.is_closed {
            ticket
                .take()
                .into_iter()
                .for_each(|ticket| self.arrivals.leave(ticket));
            return Poll::Ready(arrival);
        }
        self.arrivals.wait(ticket, waker);
        Poll::Pending
    }

    /// An acceptor has gone. It may have been woken for a message: then the next one is.
    #[cfg(feature = "tokio")]
    pub(crate) fn stop_accepting(&mut self, ticket: u64) {
        self.arrivals.leave(ticket);
        self.arrivals.wake_for_waiting();
    }

    /// Ready when no request is in progress and all replies are acknowledged.
    pub(crate) fn poll_finished(&mut self, waker: &Waker) -> Poll<()> {
        if self.endpoint.served_len() == 0 {
            return Poll::Ready(());
        }
        // A leading thread comes by with every batch that it receives.
        if self.finishers.iter().all(|other| !other.will_wake(waker)) {
            self.finishers.push(waker.clone());
        }
        Poll::Pending
    }

    /// A client's session has no more ids: the next one is used from now on.
    pub(crate) fn retire_session(&mut self, session: SessionIndex) {
        if let Some(target) = &mut self.target {
            target.retire(session);
        }
    }

    pub(crate) fn peer(&self, session: SessionIndex) -> Option<Arc<Peer>> {
        self.peers.get(&session).cloned()
    }

    fn admit(
        &mut self,
        begun: Result<RpcId, Refused>,
        waker: &Waker,
    ) -> Poll<Result<RpcId, Refused>> {
        if begun == Err(Refused::Blocked) {
            let is_known = self.admission.last();
            if is_known.is_none_or(|last| !last.will_wake(waker)) {
                self.admission.push(waker.clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(begun)
    }

    /// Sends what is to be sent, and CLOSE behind it if sessions are to close.
    fn send_all(&mut self, now: Time) {
        self.flush(now);
        if self.close_behind_the_rest(now) {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: Time) {
        if let Some((transmit, from)) = self.unsent.take()
            && !self.send(transmit, from)
        {
            return;
        }
        while let Some(mut transmit) = self.endpoint.poll_transmit(now, &mut self.transmit) {
            if !self.has_dscp {
                transmit.priority = 0;
            }
            if !self.send(transmit, 0) {
                return;
            }
        }
    }

    /// Sends the buffer from a byte on. False: the socket has no room, the rest waits.
    fn send(&mut self, transmit: Transmit, from: usize) -> bool {
        let Some(carrier) = &self.carrier else {
            return true;
        };
        match carrier.send(&transmit, &self.transmit[from..]) {
            Err(SendError::WouldBlock { bytes_sent }) => {
                self.unsent = Some((transmit, from + bytes_sent));
                false
            }
            // A probe too large for this path, or a hint: the protocol asks again for what is missing.
            Err(error) => {
                tracing::trace!(%error, path = %transmit.path, "a batch was not sent whole");
                true
            }
            Ok(()) => true,
        }
    }

    fn tell(&mut self, event: Event) {
        self.told += 1;
        match event {
            Event::Reply { rpc, body } => self.calls.finish(rpc, Ok(body)),
            Event::CallFailed { rpc, error } => self.calls.finish(rpc, Err(error)),
            Event::OneWayDone { rpc, outcome } => self.one_ways.finish(rpc, outcome),
            Event::Request {
                rpc,
                body,
                deadline,
            } => self.arrive(rpc, body, deadline, false),
            Event::OneWay { rpc, body } => self.arrive(rpc, body, None, true),
            Event::Connected {
                connect,
                session,
                peer,
            } => {
                self.keep_peer(session, peer);
                self.finish_connect(connect, Ok(session));
            }
            Event::ConnectFailed { connect, error } => self.finish_connect(connect, Err(error)),
            Event::Accepted { session, peer, .. } => self.keep_peer(session, peer),
            Event::SessionEnded { session, end } => self.end_session(session, &end),
            Event::Unblocked(_) => self.admission.drain(..).for_each(Waker::wake),
            _ => {}
        }
    }

    fn arrive(&mut self, rpc: RpcId, body: Bytes, deadline: Option<Time>, is_one_way: bool) {
        let Some(peer) = self.peer(rpc.session) else {
            return;
        };
        self.arrivals.push(Arrival {
            rpc,
            body,
            deadline,
            peer,
            is_one_way,
        });
        self.endpoint.set_untaken(self.arrivals.bytes());
    }

    fn finish_connect(&mut self, connect: ConnectId, result: Result<SessionIndex, ConnectError>) {
        if let Some(target) = &mut self.target {
            target.finish(connect, result);
        }
    }

    fn keep_peer(&mut self, session: SessionIndex, identity: PeerIdentity) {
        let Some(facts) = self.endpoint.session(session) else {
            return;
        };
        let PeerIdentity {
            certificates,
            key_name,
            key_identity,
        } = identity;
        let peer = Peer {
            address: facts.path.remote,
            certificates,
            key_name,
            key_identity,
        };
        self.peers.insert(session, Arc::new(peer));
    }

    fn end_session(&mut self, session: SessionIndex, end: &SessionEnd) {
        let peer = self.peers.remove(&session);
        tracing::debug!(%session, peer = peer.map(|peer| tracing::field::display(peer.address)), %end, "session ended");
        // Callers that waited for ids of this session find out by asking again.
        self.admission.drain(..).for_each(Waker::wake);
    }
}

/// What is corked waits for tasks that are ready to run: so long, if the endpoint is used meanwhile.
const CORKED_MAX: Duration = Duration::from_micros(50);
/// So late are the protocol's timers at most because something comes all the time.
const PUT_OFF: Duration = Duration::from_millis(1);
/// A full socket is tried again after this time.
pub(crate) const SEND_AGAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
