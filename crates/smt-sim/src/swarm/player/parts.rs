// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls in parts of a player, of both sides: it sends parts while their reader's window has
//! room, and takes them at once, slowly, or only some.
//!
//! 1. A caller sends all parts of its request, and takes those of the reply until the reply comes;
//!    or it gives up in between.
//! 2. A server takes the parts of the request, sends those of its reply, and then answers. Some
//!    stop in between and answer at once.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{Endpoint, Event, PartMarks, Refused, RpcId, TakenPart, Time};
use smt_wire::{PART_OVERHEAD, PART_PREFIX_LEN, SessionIndex};

use super::{Answer, GRACE, Look, Player, Task};
use crate::net::packet::HostId;
use crate::random::Random;
use crate::swarm::check::{Checker, Content, PartReport, PartStream, Report, Sent};

/// The calls in parts that are under way.
#[derive(Debug, Default)]
pub(super) struct PartCalls {
    calls: BTreeMap<RpcId, PartCall>,
    /// How often a window had no room for a part.
    pub(super) full: u64,
}

/// A call in parts, at one side.
#[derive(Debug)]
struct PartCall {
    peer: HostId,
    reading: Option<Reading>,
    writing: Option<Writing>,
    /// A caller gives up after so many parts, sent and taken together.
    given_up_after: Option<u32>,
    /// Whether this side neither sends nor takes any more.
    has_stopped: bool,
    /// The answer of a server, which waits for the parts, and when it is due.
    answer: Option<(Time, Answer)>,
}

/// The parts that this side takes.
#[derive(Debug)]
struct Reading {
    stream: PartStream,
    taken: u32,
    /// It takes no more than these.
    most: Option<u32>,
    /// The wait between two parts.
    pace: Duration,
    /// A part is to be taken later.
    is_waiting: bool,
    is_over: bool,
}

/// The parts that this side sends.
#[derive(Debug)]
struct Writing {
    stream: PartStream,
    sent: u32,
    count: u32,
    pace: Duration,
    /// A part is to be sent later.
    is_waiting: bool,
    /// Nothing is sent before the parts of the request were taken.
    is_behind_reading: bool,
}

/// Something to be done about a call in parts.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartTask {
    Take,
    Send,
}

impl Reading {
    fn new(stream: PartStream, random: &mut Random) -> Self {
        Self {
            stream,
            taken: 0,
            most: None,
            pace: Duration::from_micros(*random.pick(&[0, 0, 0, 100, 3_000, 40_000])),
            is_waiting: false,
            is_over: false,
        }
    }
}

impl Writing {
    fn new(stream: PartStream, random: &mut Random) -> Self {
        Self {
            stream,
            sent: 0,
            count: stream.count(),
            pace: Duration::from_micros(*random.pick(&[0, 0, 0, 300, 5_000])),
            is_waiting: false,
            is_behind_reading: false,
        }
    }

    fn is_over(&self) -> bool {
        self.sent == self.count
    }
}

impl PartCall {
    fn moved(&self) -> u32 {
        let taken = self.reading.as_ref().map_or(0, |reading| reading.taken);
        taken + self.writing.as_ref().map_or(0, |writing| writing.sent)
    }

    fn is_over(&self) -> bool {
        self.reading.as_ref().is_none_or(|reading| reading.is_over)
            && self.writing.as_ref().is_none_or(Writing::is_over)
    }
}

impl PartCalls {
    /// A host has crashed.
    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }

    /// The calls that are under way, or that nobody has told the application of being over.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The calls whose parts this side takes.
    pub(super) fn readers(&self) -> usize {
        let calls = self.calls.values();
        calls.filter(|call| call.reading.is_some()).count()
    }

    fn remove(&mut self, rpc: RpcId) -> Option<PartCall> {
        self.calls.remove(&rpc)
    }
}

impl Player {
    /// A call of this side has begun.
    pub(super) fn start_part_call(
        &mut self,
        now: Time,
        rpc: RpcId,
        sent: &Sent,
        endpoint: &mut Endpoint,
    ) {
        if !sent.parts.has_parts() {
            return;
        }
        let [request, reply] = streams(sent.content);
        let random = &mut self.random;
        let mut call = PartCall {
            peer: sent.to,
            reading: sent.parts.reply.then(|| Reading::new(reply, random)),
            writing: sent.parts.request.then(|| Writing::new(request, random)),
            given_up_after: sent.parts.given_up_after,
            has_stopped: false,
            answer: None,
        };
        if self.is_last_round {
            call.hurry();
        }
        self.parts.calls.insert(rpc, call);
        self.send_parts(now, rpc, endpoint);
        self.give_up_midway(now, rpc);
    }

    /// A request has come with these marks. The answer is given then, and behind all parts.
    pub(super) fn serve(
        &mut self,
        now: Time,
        (rpc, marks): (RpcId, PartMarks),
        (at, answer): (Time, Answer),
        endpoint: &mut Endpoint,
    ) {
        let request = answer.request();
        let Some(content) = Content::claimed(&request.body).filter(|_| has_parts(marks)) else {
            self.push(at, Task::Answer(rpc, answer));
            return;
        };
        let (peer, [request, reply]) = (request.from, streams(content));
        let random = &mut self.random;
        let mut call = PartCall {
            peer,
            reading: marks.more.then(|| Reading::new(request, random)),
            writing: marks.reply_in_parts.then(|| Writing::new(reply, random)),
            given_up_after: None,
            has_stopped: false,
            answer: Some((at, answer)),
        };
        match self.is_last_round {
            true => call.hurry(),
            false => call.draw_stops(random),
        }
        self.parts.calls.insert(rpc, call);
        self.take_parts(now, rpc, endpoint);
        self.send_parts(now, rpc, endpoint);
        self.answer_behind_parts(now, rpc);
    }

    /// Takes what the endpoint has to tell of calls in parts.
    pub(super) fn handle_of_parts(&mut self, now: Time, event: &Event, endpoint: &mut Endpoint) {
        match event {
            Event::Cancelled(rpc) => self.end_parts(*rpc, endpoint),
            Event::PartReady(rpc) => self.part_ready(now, *rpc, endpoint),
            Event::PartsLeft { rpc, parts } => self.parts_left(*rpc, parts),
            Event::PartWindowRaised(rpc) => self.part_window_raised(now, *rpc, endpoint),
            Event::Unblocked(session) => self.unblocked(now, *session, endpoint),
            _ => {}
        }
    }

    /// A part has come, or the end of the parts.
    fn part_ready(&mut self, now: Time, rpc: RpcId, endpoint: &mut Endpoint) {
        let call = self.parts.calls.get(&rpc);
        let reading = call.and_then(|call| call.reading.as_ref());
        if reading.is_some_and(|reading| !reading.is_waiting) {
            self.do_part(now, rpc, PartTask::Take, endpoint);
        }
    }

    /// A call ends, and leaves the parts that have come in order.
    fn parts_left(&mut self, rpc: RpcId, parts: &[Bytes]) {
        let call = self.parts.calls.get(&rpc);
        let Some(reading) = call.and_then(|call| call.reading.as_ref()) else {
            return;
        };
        for part in parts {
            self.reports.push(Report::Part(reading.stream, PartReport::Taken(part.clone())));
        }
    }

    /// The reader of the parts of a call has room.
    fn part_window_raised(&mut self, now: Time, rpc: RpcId, endpoint: &mut Endpoint) {
        let call = self.parts.calls.get(&rpc);
        let writing = call.and_then(|call| call.writing.as_ref());
        if writing.is_some_and(|writing| !writing.is_waiting) {
            self.do_part(now, rpc, PartTask::Send, endpoint);
        }
    }

    /// A session has ids again.
    fn unblocked(&mut self, now: Time, session: SessionIndex, endpoint: &mut Endpoint) {
        let calls = self.parts.calls.keys();
        let of_session: Vec<_> = calls.filter(|rpc| rpc.session == session).copied().collect();
        for rpc in of_session {
            self.part_window_raised(now, rpc, endpoint);
        }
    }

    /// Does what was put off.
    pub(super) fn do_part(
        &mut self,
        now: Time,
        rpc: RpcId,
        task: PartTask,
        endpoint: &mut Endpoint,
    ) {
        let Some(call) = self.parts.calls.get_mut(&rpc) else {
            return;
        };
        match task {
            PartTask::Take => self.take_parts(now, rpc, endpoint),
            PartTask::Send => {
                if let Some(writing) = &mut call.writing {
                    writing.is_waiting = false;
                }
            }
        }
        // Parts to be sent may wait for parts to be taken.
        self.send_parts(now, rpc, endpoint);
        self.answer_behind_parts(now, rpc);
        self.give_up_midway(now, rpc);
    }

    /// A call is over: no part of it is there any more.
    pub(super) fn end_parts(&mut self, rpc: RpcId, endpoint: &mut Endpoint) {
        if self.parts.remove(rpc).is_some() && endpoint.take_part(rpc).is_ok() {
            self.found(Checker::Parts, format!("{rpc:?} has parts behind its end"));
        }
    }

    /// A reply has come, or a failure that its server's application gave: all parts were taken.
    pub(super) fn parts_replied(&mut self, rpc: RpcId, endpoint: &mut Endpoint) {
        let call = self.parts.calls.get(&rpc);
        if let Some(reading) = call.and_then(|call| call.reading.as_ref()) {
            let report = Report::Part(reading.stream, PartReport::End);
            self.reports.push(report);
        }
        self.end_parts(rpc, endpoint);
    }

    /// Bytes of the longest part that a host takes.
    fn part_most(&self, host: HostId) -> u32 {
        let by_window = self.window_of(host).saturating_sub(PART_OVERHEAD);
        by_window.min(self.limit_of(host).saturating_sub(PART_PREFIX_LEN as u32))
    }

    /// The part window of a host.
    pub(super) fn window_of(&self, host: HostId) -> u32 {
        self.hosts.part_windows[host.0 as usize]
    }

    fn take_parts(&mut self, now: Time, rpc: RpcId, endpoint: &mut Endpoint) {
        while let Some(call) = self.parts.calls.get_mut(&rpc)
            && !call.has_stopped
            && !call.is_given_up()
            && let Some(reading) = call.reading.as_mut()
            && !reading.is_over
        {
            if reading.most.is_some_and(|most| reading.taken >= most) {
                reading.is_over = true;
                return;
            }
            reading.is_waiting = false;
            let stream = reading.stream;
            match endpoint.take_part(rpc) {
                Ok(Some(TakenPart::Part(body))) => {
                    reading.taken += 1;
                    let pace = reading.pace;
                    reading.is_waiting = !pace.is_zero();
                    self.reports.push(Report::Part(stream, PartReport::Taken(body)));
                    if !pace.is_zero() {
                        self.push(now + pace, Task::Part(rpc, PartTask::Take));
                        return;
                    }
                }
                Ok(Some(TakenPart::End)) => {
                    reading.is_over = true;
                    self.reports.push(Report::Part(stream, PartReport::End));
                }
                Ok(None) => return,
                // An event says how the call has ended.
                Err(_) => {
                    call.has_stopped = true;
                    return;
                }
            }
        }
    }

    fn send_parts(&mut self, now: Time, rpc: RpcId, endpoint: &mut Endpoint) {
        while let Some(call) = self.parts.calls.get(&rpc)
            && !call.has_stopped
            && !call.is_given_up()
            && call.may_send()
            && let Some(writing) = call.writing.as_ref()
        {
            let (stream, index, peer) = (writing.stream, writing.sent, call.peer);
            let is_last = !stream.is_reply && index + 1 == writing.count;
            let length = stream.length(index, self.part_most(peer));
            let outcome = endpoint.send_part(now, rpc, stream.body(index, length), !is_last);
            match outcome {
                Ok(()) => {
                    let window = self.window_of(peer);
                    let report = PartReport::Sent { length, is_last, window };
                    self.reports.push(Report::Part(stream, report));
                    if !self.count_sent(now, rpc) {
                        return;
                    }
                }
                Err(Refused::PartWindowFull) => {
                    self.parts.full += 1;
                    return;
                }
                Err(Refused::Blocked) => {
                    self.blocked += 1;
                    return;
                }
                // The call is over, which an event tells; or its reply has come, whose parts are
                // still to be taken.
                Err(Refused::NoRpc | Refused::NoSession) => {
                    self.stop_sending(rpc);
                    return;
                }
                Err(other) => {
                    let text = format!("{stream:?}: part {index} of {length} B: {other}");
                    self.found(Checker::Parts, text);
                    return;
                }
            }
        }
    }

    /// Sends no more parts of a call.
    fn stop_sending(&mut self, rpc: RpcId) {
        let call = self.parts.calls.get_mut(&rpc);
        if let Some(writing) = call.and_then(|call| call.writing.as_mut()) {
            writing.count = writing.sent;
        }
    }

    /// Counts a part that was sent. Returns whether the next one may follow at once.
    fn count_sent(&mut self, now: Time, rpc: RpcId) -> bool {
        let call = self.parts.calls.get_mut(&rpc);
        let Some(writing) = call.and_then(|call| call.writing.as_mut()) else {
            return false;
        };
        writing.sent += 1;
        let pace = writing.pace;
        writing.is_waiting = !pace.is_zero() && !writing.is_over();
        if writing.is_waiting {
            self.push(now + pace, Task::Part(rpc, PartTask::Send));
        }
        pace.is_zero()
    }

    /// A server answers when it has taken and sent all parts that it wants to.
    fn answer_behind_parts(&mut self, now: Time, rpc: RpcId) {
        let call = self.parts.calls.get_mut(&rpc);
        if let Some(call) = call.filter(|call| call.is_over())
            && let Some((at, answer)) = call.answer.take()
        {
            self.push(at.max(now), Task::Answer(rpc, answer));
        }
    }

    /// A caller that has sent and taken enough gives up.
    fn give_up_midway(&mut self, now: Time, rpc: RpcId) {
        let call = self.parts.calls.get_mut(&rpc);
        let Some(call) = call.filter(|call| call.is_given_up() && !call.has_stopped) else {
            return;
        };
        call.has_stopped = true;
        let at = now + Duration::from_micros(self.random.below(GIVEN_UP_WITHIN_US));
        self.push(at, Task::Cancel(rpc));
        self.push(at + GRACE, Task::Expect(rpc, Look::First));
        if let Some(underway) = self.calls.get_mut(&rpc) {
            underway.until = None;
        }
    }
}

impl PartCall {
    /// In the last round everything is taken and sent soon.
    fn hurry(&mut self) {
        let most = Duration::from_millis(1);
        if let Some(reading) = &mut self.reading {
            reading.pace = reading.pace.min(most);
        }
        if let Some(writing) = &mut self.writing {
            writing.pace = writing.pace.min(most);
        }
    }

    /// A server may answer before it has read the request, or write behind it.
    fn draw_stops(&mut self, random: &mut Random) {
        if let Some(reading) = &mut self.reading
            && random.chance(200_000)
        {
            reading.most = Some(random.below(5) as u32);
        }
        if let Some(writing) = &mut self.writing {
            writing.is_behind_reading = random.chance(500_000);
            if random.chance(100_000) {
                writing.count = random.below(u64::from(writing.count)) as u32;
            }
        }
    }

    fn is_given_up(&self) -> bool {
        self.given_up_after.is_some_and(|most| self.moved() >= most)
    }

    fn may_send(&self) -> bool {
        let is_read = self.reading.as_ref().is_none_or(|reading| reading.is_over);
        self.writing.as_ref().is_some_and(|writing| {
            !writing.is_over() && !writing.is_waiting && (is_read || !writing.is_behind_reading)
        })
    }
}

fn has_parts(marks: PartMarks) -> bool {
    marks.more || marks.reply_in_parts
}

/// The streams of a call: of its request, and of its reply.
fn streams(content: Content) -> [PartStream; 2] {
    [false, true].map(|is_reply| PartStream { call: content.number, is_reply })
}

/// A caller that gives up stops at once, and says so within this time.
const GIVEN_UP_WITHIN_US: u64 = 50_000;
