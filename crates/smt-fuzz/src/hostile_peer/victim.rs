// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoint that is attacked, its application, and the promises for both.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_handshake::PlaintextProvider;
use smt_proto::{
    CallOptions, CloseCode, Config, Event, PartMarks, Refused, RpcId, TakenPart, Time,
};
use smt_wire::{
    AbortCode, DataHeader, Geometry, MessageId, PLAINTEXT_VERSION, Packet, SessionIndex, parse,
};

use super::content::MEMBER_BYTE;
use crate::world::{Datagram, Forgery, Node, Settings, WireWatch, address_of};

/// The endpoint that is attacked.
pub(super) struct Victim {
    node: Node,
    number: usize,
    now: Time,
    config: Config,
    /// Its index of the session.
    pub(super) session: SessionIndex,
    pub(super) geometry: Geometry,
    pub(super) stripes_log2: u8,
    /// The epoch byte that its peer last used.
    pub(super) peer_epoch: u8,
    /// The id limit that its peer told it first.
    pub(super) window: u64,
    next_number: u64,
    watch: WireWatch,
    /// Own messages that have not ended, and all that ever began.
    live: BTreeSet<MessageId>,
    begun: Vec<MessageId>,
    /// Messages of the peer that were delivered, and requests that wait for an answer.
    delivered: BTreeSet<MessageId>,
    held: Vec<MessageId>,
    has_ended: bool,
    /// Bytes of DATA sent for the first time, and again.
    bytes_first: u64,
    bytes_again: u64,
    begin: Time,
}

impl Victim {
    /// Establishes a session of two honest endpoints, and forgets one of them.
    pub(super) fn new(settings: &Settings, is_client: bool) -> Self {
        let mut config = settings.config();
        config.version = PLAINTEXT_VERSION;
        config.accept = true;
        let number = usize::from(!is_client);
        let now = Time::from_nanos(1_000_000_000);
        let mut nodes = [0, 1].map(|number| {
            let node = Node::new(number, config.clone(), Arc::new(PlaintextProvider));
            node.with_pull(settings.pull())
        });
        let path = Path::to(address_of(1));
        let connect = nodes[0].endpoint.connect(now, path, "peer", Duration::from_secs(5));
        connect.expect("a client with room for sessions");
        let sessions = converse(&mut nodes, now);
        let [client, server] = nodes;
        let first = config.first_record_size.min(config.record_size);
        Self {
            node: if is_client { client } else { server },
            number,
            now,
            session: sessions[number],
            geometry: Geometry::new(first, config.record_size).expect("in range"),
            stripes_log2: config.stripes_log2,
            peer_epoch: 0,
            window: config.window.into(),
            // The peer has used a few itself.
            next_number: 1_000,
            watch: WireWatch::new(PLAINTEXT_VERSION),
            live: BTreeSet::new(),
            begun: Vec::new(),
            delivered: BTreeSet::new(),
            held: Vec::new(),
            has_ended: false,
            bytes_first: 0,
            bytes_again: 0,
            begin: now,
            config,
        }
    }

    /// A control number that was not used before.
    pub(super) fn next_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// The peer sends a datagram.
    pub(super) fn receive(&mut self, mut bytes: Vec<u8>, forgery: Option<&Forgery>) {
        if let Some(forgery) = forgery {
            forgery.apply(&mut bytes, &[self.session]);
        }
        let (from, to) = (1 - self.number, self.number);
        self.node.receive(self.now, &Datagram { from, to, bytes });
        self.settle();
    }

    /// A switch leaves of one of the peer's datagrams what a DATA header needs, or less.
    pub(super) fn receive_trimmed(&mut self, mut bytes: Vec<u8>, forgery: Option<&Forgery>) {
        bytes.truncate(DataHeader::LEN);
        if let Some(forgery) = forgery {
            forgery.apply(&mut bytes, &[self.session]);
        }
        let (from, to) = (1 - self.number, self.number);
        let datagram = Datagram { from, to, bytes };
        self.node.receive_trimmed(self.now, &datagram);
        self.settle();
    }

    pub(super) fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((due, _)) = self.node.endpoint.poll_timeout().filter(|(due, _)| *due <= end)
        {
            self.now = self.now.max(due);
            self.node.serve_timers(self.now);
            self.settle();
        }
        self.now = end;
    }

    pub(super) fn call(&mut self, size: usize, has_deadline: bool) {
        let deadline = has_deadline.then_some(Duration::from_millis(50));
        let (now, body) = (self.now, Bytes::from(vec![1; size % 30_000]));
        let begun = self.node.endpoint.call(now, self.session, body, deadline);
        self.note(begun);
    }

    pub(super) fn call_in_parts(&mut self, size: usize, marks: u8) {
        let (now, body) = (self.now, Bytes::from(vec![1; size % 30_000]));
        let parts = PartMarks { reply_in_parts: marks & 1 != 0, more: marks & 2 != 0, number: 0 };
        let deadline = (marks & 4 != 0).then_some(Duration::from_millis(50));
        let options = CallOptions { deadline, parts };
        let endpoint = &mut self.node.endpoint;
        let begun = endpoint.call_in_parts(now, self.session, body, options);
        if begun == Err(Refused::NoParts) {
            assert_eq!(self.config.part_window, 0, "both sides say the same");
            return;
        }
        self.note(begun);
    }

    /// Sends a part of a request, or of a reply.
    pub(super) fn send_part(&mut self, which: usize, size: usize, more: bool) {
        let Some(rpc) = self.in_progress(which) else {
            return;
        };
        let body = Bytes::from(vec![4; size % 30_000]);
        let sent = self.node.endpoint.send_part(self.now, rpc, body, more);
        // A call that has no parts, or whose last part was sent, is none for this.
        let is_expected = matches!(
            sent,
            Ok(())
                | Err(Refused::NoRpc | Refused::NoParts | Refused::TooLarge { .. })
                | Err(Refused::PartWindowFull | Refused::Blocked)
        );
        assert!(is_expected, "{sent:?}");
        self.settle();
    }

    pub(super) fn take_parts(&mut self, which: usize) {
        let Some(rpc) = self.in_progress(which) else {
            return;
        };
        while let Ok(Some(TakenPart::Part(part))) = self.node.endpoint.take_part(rpc) {
            assert!(part.len() <= self.config.part_window as usize);
        }
        self.settle();
    }

    /// A call of either side that is not over.
    fn in_progress(&self, which: usize) -> Option<RpcId> {
        let ids = self.live.iter().chain(&self.held);
        let count = self.live.len() + self.held.len();
        let id = ids.copied().nth(which % count.max(1))?;
        Some(self.rpc(id))
    }

    pub(super) fn send_one_way(&mut self, size: usize) {
        let (now, body) = (self.now, Bytes::from(vec![2; size % 30_000]));
        let begun = self.node.endpoint.send_one_way(now, self.session, body, None);
        self.note(begun);
    }

    pub(super) fn cancel(&mut self, which: usize) {
        if let Some(id) = self.begun.get(which % self.begun.len().max(1)).copied() {
            let was_live = self.node.endpoint.cancel(self.now, self.rpc(id));
            assert_eq!(was_live, self.live.contains(&id));
            self.settle();
        }
    }

    pub(super) fn reply(&mut self, which: usize, size: usize) {
        if let Some(id) = self.take_held(which) {
            let body = Bytes::from(vec![3; size % 30_000]);
            let replied = self.node.endpoint.reply(self.now, self.rpc(id), body);
            assert!(matches!(replied, Ok(()) | Err(Refused::TooLarge { .. })), "{replied:?}");
            self.settle();
        }
    }

    pub(super) fn abort(&mut self, which: usize) {
        if let Some(id) = self.take_held(which) {
            let endpoint = &mut self.node.endpoint;
            let rpc = RpcId { session: self.session, id };
            let aborted = endpoint.abort(self.now, rpc, AbortCode::Overloaded);
            assert_eq!(aborted, Ok(()));
            self.settle();
        }
    }

    pub(super) fn close(&mut self) {
        self.node.endpoint.close(self.session, CloseCode::Done);
        self.settle();
    }

    /// The peer is silent for ever.
    pub(super) fn finish(mut self) {
        while !self.held.is_empty() {
            self.reply(0, 10);
        }
        // Either it waits for a reply, or for room in the id window.
        self.call(10, false);
        self.wait(Duration::from_secs(60));
        assert!(self.live.is_empty(), "calls that never end");
        assert!(self.has_ended, "a session with a silent peer lives for ever");
        assert_eq!(self.node.endpoint.sessions_len(), 0);
        assert_eq!(self.node.endpoint.memory(), 0, "bytes held for nobody");
    }

    fn note(&mut self, begun: Result<RpcId, Refused>) {
        match begun {
            Ok(rpc) => {
                assert!(!self.begun.contains(&rpc.id), "an id was issued twice");
                self.begun.push(rpc.id);
                self.live.insert(rpc.id);
            }
            Err(Refused::NoSession) => assert!(self.has_ended),
            Err(Refused::Blocked | Refused::TooLarge { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        self.settle();
    }

    fn take_held(&mut self, which: usize) -> Option<MessageId> {
        let count = self.held.len();
        (count > 0).then(|| self.held.swap_remove(which % count))
    }

    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000, "it never falls silent");
            let mut any = false;
            while let Some(event) = self.node.endpoint.poll_event() {
                any = true;
                self.take(event);
            }
            let sent = self.node.transmits(self.now);
            if !any && sent.is_empty() {
                break;
            }
            sent.iter().for_each(|datagram| self.look(datagram));
        }
        if let Some(facts) = self.node.endpoint.session(self.session) {
            self.peer_epoch = facts.open_epoch as u8;
        }
        self.check_memory();
        // SPEC §9.3: as much again as for the first time, and 16 MB a second with a second's burst.
        let seconds = self.now.since(self.begin).as_secs_f64() + 1.0;
        let most = self.bytes_first as f64 + 16_000_000.0 * seconds;
        assert!(self.bytes_again as f64 <= most, "it multiplies traffic");
    }

    fn look(&mut self, datagram: &Datagram) {
        self.watch.look(datagram);
        let mut rest = datagram.bytes.as_slice();
        while let Ok((packet, further)) = parse(PLAINTEXT_VERSION, rest) {
            if let Packet::Data(data) = packet {
                let bytes = (rest.len() - further.len()) as u64;
                if data.header.retransmit {
                    self.bytes_again += bytes;
                } else {
                    self.bytes_first += bytes;
                }
            }
            rest = further;
        }
    }

    fn take(&mut self, event: Event) {
        if matches!(event, Event::ClientRefused { .. }) {
            return;
        }
        assert!(!self.has_ended, "an event of a session that has ended: {event:?}");
        match event {
            Event::Request { rpc, body, .. } => {
                self.deliver(rpc, &body);
                self.held.push(rpc.id);
            }
            Event::OneWay { rpc, body, .. } => self.deliver(rpc, &body),
            Event::Cancelled(rpc) => self.held.retain(|id| *id != rpc.id),
            Event::Reply { rpc, .. } => self.end(rpc),
            Event::CallFailed { rpc, .. } | Event::OneWayDone { rpc, .. } => self.end(rpc),
            Event::Unblocked(_) => {}
            Event::PartReady(rpc) | Event::PartWindowRaised(rpc) => {
                let is_in_progress = self.live.contains(&rpc.id) || self.held.contains(&rpc.id);
                assert!(is_in_progress, "a call that is over has parts");
            }
            Event::SessionEnded { .. } => {
                assert!(self.live.is_empty(), "its session ended before a message did");
                assert!(self.held.is_empty(), "a request outlives its session");
                self.has_ended = true;
            }
            other => panic!("{other:?}"),
        }
    }

    fn deliver(&mut self, rpc: RpcId, body: &Bytes) {
        assert!(self.delivered.insert(rpc.id), "a request ran twice");
        assert!(body.len() <= self.config.message_limit as usize);
        let is_member = body.len() >= MEMBER_LEAST && body.iter().all(|byte| *byte == MEMBER_BYTE);
        assert!(self.config.bundles || !is_member, "a bundle was taken that nobody agreed upon");
    }

    fn end(&mut self, rpc: RpcId) {
        assert!(self.live.remove(&rpc.id), "a message ended twice");
    }

    /// Whatever the peer claims and leaves out, memory stays within the bound and what goes beyond
    /// it (SPEC §9.2): the message that was let in last, what was granted while there was room, one
    /// message that is granted to its end, and the beginnings of replies, which come unasked.
    /// Buffers grow ahead of their bytes.
    fn check_memory(&self) {
        let config = &self.config;
        let beginning = config.unscheduled as usize + RECORD_MAX;
        let granted = (config.incoming_max as usize).max(GRANTED_AT_LEAST);
        // With padding, and the overhead of many short records.
        let longest = 2 * config.message_limit as usize + RECORD_MAX;
        // The part that an application waits for comes in although there is no room (SPEC §5.9).
        let parts = config.part_window as usize * (self.live.len() + self.held.len());
        let beyond = beginning * (1 + self.live.len()) + granted + longest + parts;
        let most = (config.memory_max + beyond) * 5 / 4;
        let held = self.node.endpoint.memory() - self.node.endpoint.reordered_memory();
        assert!(held <= most, "{held} bytes are held, more than {most}");
        assert!(self.node.endpoint.reordered_memory() <= EARLY_MAX);
    }

    fn rpc(&self, id: MessageId) -> RpcId {
        RpcId { session: self.session, id }
    }
}

/// Lets two endpoints talk until both have a session; the sessions' indices.
fn converse(nodes: &mut [Node; 2], now: Time) -> [SessionIndex; 2] {
    let mut sessions = [None; 2];
    while sessions.contains(&None) {
        let mut sent = Vec::new();
        for (number, node) in nodes.iter_mut().enumerate() {
            sent.extend(node.transmits(now));
            while let Some(event) = node.endpoint.poll_event() {
                match event {
                    Event::Connected { session, .. } | Event::Accepted { session, .. } => {
                        sessions[number] = Some(session);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        for datagram in sent {
            nodes[datagram.to].receive(now, &datagram);
        }
    }
    sessions.map(|session| session.expect("both have one"))
}

/// Bytes by which a member is known: no input changes this many bytes of another message.
const MEMBER_LEAST: usize = 24;
/// The pool for packets whose record 0 has not come (SPEC §10).
const EARLY_MAX: usize = 256 * 1024;
/// A record and its overhead.
const RECORD_MAX: usize = 16_406;
/// Bytes that may be granted whatever the budget: two records to each of eight messages (SPEC
/// §9.2).
const GRANTED_AT_LEAST: usize = 8 * 2 * RECORD_MAX;
