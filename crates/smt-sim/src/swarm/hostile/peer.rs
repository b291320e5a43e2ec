// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sessions of a hostile peer: what it has begun in each, and the packets of its moves.

mod parts;

use smt_carrier::Path;
use smt_proto::Config;
use smt_wire::{
    Ack, Body, Geometry, Grant, Kind, LIST_MAX, MessageId, PartMarks, Resend, SessionIndex,
};

use super::case::Move;
use super::packets::{Member, Message, control};
use crate::random::Random;

/// One session.
pub(super) struct Peer {
    /// Where the server sees it.
    pub(super) path: Path,
    /// The server's index.
    pub(super) session: SessionIndex,
    geometry: Geometry,
    /// The counter of its next id.
    next_id: u64,
    /// The counter of the first id that was not given up.
    given_up: u64,
    /// The counter of its next control packet; whoever made the handshake has used a few.
    next_number: u64,
    /// Long messages that were begun, and the next record of each.
    begun: Vec<(Message, u32)>,
    /// A message of which bytes come here and there.
    scattered: Option<Message>,
    /// Calls in parts whose first part is withheld, and the number of the next one.
    withheld: Vec<(MessageId, u32)>,
}

impl Peer {
    pub(super) fn new(path: Path, session: SessionIndex, config: &Config) -> Self {
        let first = config.first_record_size.min(config.record_size);
        Self {
            path,
            session,
            geometry: Geometry::new(first, config.record_size).expect("sizes of a configuration"),
            next_id: 0,
            given_up: 0,
            next_number: 1_000,
            begun: Vec::new(),
            scattered: None,
            withheld: Vec::new(),
        }
    }

    /// It lives.
    pub(super) fn pong(&mut self) -> Vec<u8> {
        self.control(&Body::Pong(0))
    }

    /// The datagram of a move that a session can make.
    pub(super) fn make(&mut self, play: Move, longest: u32, random: &mut Random) -> Vec<u8> {
        match play {
            Move::Begin => self.start_message(longest, random),
            Move::Continue => self.go_on(random),
            Move::Early => {
                let message = self.message(longest, random);
                let records = message.records();
                let at = random.between(1, u64::from(records.max(2)) - 1) as u32;
                message.data(self.session, at.min(records - 1)..at.min(records - 1) + 1)
            }
            Move::Pieces => self.piece(longest, random),
            Move::Whole => {
                let kind = kind(random);
                let mut message = self.new_message(kind, random.below(1_000) as u32, Vec::new());
                message.parts = parts::marks(random);
                message.data(self.session, 0..1)
            }
            Move::Bundle => self.bundle(0, random),
            Move::BundleOfSeen => self.bundle(random.between(1, 15), random),
            Move::Cancel => self.cancel(),
            Move::Acknowledge => {
                let base = self.id(self.next_id.saturating_sub(64));
                let bits = random.any();
                self.control(&Body::Ack([Ack { base, bits }].as_slice().into()))
            }
            Move::Ask => self.ask(random),
            Move::Grant => {
                let grants: Vec<_> = self.last_ids(random.between(1, 32)).collect();
                let grants: Vec<_> = grants.into_iter().map(|id| grant(id, random)).collect();
                self.control(&Body::Grant(grants.as_slice().into()))
            }
            Move::Part => self.part(longest, random),
            Move::LaterPart => self.later_part(longest, random),
            Move::PartWindow => self.part_window(random),
            Move::ProbeAck => {
                let size = *random.pick(&[1_472, 8_972, 65_507, 30_000]);
                self.control(&Body::ProbeAck { size })
            }
            Move::Keys => {
                let epoch = random.below(4) as u32;
                match random.chance(500_000) {
                    true => self.control(&Body::KeyUpdateRequest { epoch }),
                    false => self.control(&Body::EpochDone { epoch }),
                }
            }
            Move::Connect | Move::HalfConnect | Move::Wait => Vec::new(),
        }
    }

    /// A message of at least two records if that is possible; its first record, or what goes
    /// unasked.
    fn start_message(&mut self, longest: u32, random: &mut Random) -> Vec<u8> {
        let message = self.message(longest, random);
        let datagram = message.data(self.session, 0..1);
        if self.begun.len() < BEGUN_MAX {
            self.begun.push((message, 1));
        } else {
            let place = random.below(BEGUN_MAX as u64) as usize;
            self.begun[place] = (message, 1);
        }
        datagram
    }

    fn go_on(&mut self, random: &mut Random) -> Vec<u8> {
        if self.begun.is_empty() {
            return self.pong();
        }
        let place = random.below(self.begun.len() as u64) as usize;
        let (message, next) = &mut self.begun[place];
        // The last record is held back, or the message would end.
        let most = (message.records() - 1).max(1);
        let end = (*next + 3).min(most);
        let records = (*next).min(most - 1)..end.max(1);
        *next = end;
        message.data(self.session, records)
    }

    /// CANCEL of all that was not given up before: what was not taken is marked nevertheless, so
    /// the window moves on.
    fn cancel(&mut self) -> Vec<u8> {
        let mut datagram = Vec::new();
        for _ in 0..CANCELS_MAX {
            let end = (self.given_up + LIST_MAX as u64).min(self.next_id);
            let ids: Vec<_> = (self.given_up..end).map(|counter| self.id(counter)).collect();
            self.given_up = end;
            if ids.is_empty() {
                break;
            }
            datagram.extend(self.control(&Body::Cancel(ids.as_slice().into())));
        }
        datagram
    }

    /// A few bytes of a record, mostly of the same message as before.
    fn piece(&mut self, longest: u32, random: &mut Random) -> Vec<u8> {
        if random.chance(50_000) {
            self.scattered = None;
        }
        let message = match self.scattered.take() {
            Some(message) => message,
            None => self.message(longest, random),
        };
        let record = random.below(message.records().min(3).into()) as u32;
        let (at, len) = (random.below(16_000) as usize, random.between(1, 8) as usize);
        let datagram = message.piece(self.session, record, at, len);
        self.scattered = Some(message);
        datagram
    }

    /// A bundle of one record or two: new members, or `seen` ones and a new one.
    fn bundle(&mut self, seen: u64, random: &mut Random) -> Vec<u8> {
        let length = *random.pick(&[0_u16, 0, 20, 300, 1_000]);
        let kind = kind(random);
        let mut content = Vec::new();
        if seen > 0 {
            for id in self.last_ids(seen) {
                self.member(id, kind, 1_000, &mut content);
            }
            let id = self.next_id();
            self.member(id, Kind::OneWay, 1, &mut content);
        } else {
            for _ in 0..random.between(1, (BUNDLE / (20 + u64::from(length))).min(51)) {
                let id = self.next_id();
                self.member(id, kind, length, &mut content);
            }
        }
        let length = content.len() as u32;
        let bundle = self.new_message(Kind::Bundle, length, content);
        let records = bundle.records();
        bundle.data(self.session, 0..records)
    }

    fn ask(&mut self, random: &mut Random) -> Vec<u8> {
        let side = random.below(2);
        let ids: Vec<_> = (0..random.between(1, 64))
            .map(|_| MessageId(random.below(2 * self.next_id + 20) & !1 | side))
            .collect();
        let again = |id: &MessageId| Resend { id: *id, offset: 0, length: u32::MAX };
        let resends: Vec<_> = ids.iter().map(again).collect();
        match random.below(4) {
            0 => self.control(&Body::NeedAck(ids.as_slice().into())),
            1 => self.control(&Body::Seen(ids.as_slice().into())),
            2 => self.control(&Body::NeverSeen(ids.as_slice().into())),
            _ => self.control(&Body::Resend(resends.as_slice().into())),
        }
    }

    /// A message under the next id, of up to `longest` application bytes, mostly nearly so many.
    fn message(&mut self, longest: u32, random: &mut Random) -> Message {
        let least = longest.min(1_500);
        let length = match random.chance(800_000) {
            true => longest,
            false => random.between(least.into(), longest.into()) as u32,
        };
        let mut message = self.new_message(kind(random), length, Vec::new());
        message.parts = parts::marks(random);
        message
    }

    fn new_message(&mut self, kind: Kind, length: u32, content: Vec<u8>) -> Message {
        Message {
            id: self.next_id(),
            kind,
            length,
            content,
            geometry: self.geometry,
            parts: PartMarks::default(),
        }
    }

    fn member(&self, id: MessageId, kind: Kind, length: u16, into: &mut Vec<u8>) {
        let member = Member { id, kind, length, content: &[], parts: PartMarks::default() };
        member.write(into);
    }

    fn next_id(&mut self) -> MessageId {
        self.next_id += 1;
        self.id(self.next_id - 1)
    }

    /// An id of a client, without stripes.
    fn id(&self, counter: u64) -> MessageId {
        MessageId(counter << 1)
    }

    /// The ids that were used last, as many or fewer; at least one.
    fn last_ids(&self, most: u64) -> impl Iterator<Item = MessageId> + use<> {
        let first = self.next_id.saturating_sub(most);
        (first..self.next_id.max(1)).map(|counter| MessageId(counter << 1))
    }

    fn control(&mut self, body: &Body<'_>) -> Vec<u8> {
        self.next_number += 1;
        control(self.session, self.next_number, body)
    }
}

fn kind(random: &mut Random) -> Kind {
    *random.pick(&[Kind::Request, Kind::Request, Kind::OneWay])
}

fn grant(id: MessageId, random: &mut Random) -> Grant {
    Grant {
        id,
        granted: random.below(200_000) as u32,
        received: random.below(2_000) as u32,
        priority: 0,
    }
}

/// CANCEL packets in one datagram.
const CANCELS_MAX: usize = 64;
/// Long messages that a session goes on with.
const BEGUN_MAX: usize = 64;
/// Application bytes of a bundle, at most.
const BUNDLE: u64 = 15_000;
