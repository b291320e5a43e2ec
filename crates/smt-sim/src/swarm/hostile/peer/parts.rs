// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of calls, and their windows, as a hostile peer sends them: of calls that it has begun, of
//! those that it has not, and of the server's.

use smt_wire::{Body, Kind, MessageId, PART_PREFIX_LEN, PartMarks, PartWindow};

use super::super::packets::Member;
use super::Peer;
use crate::random::Random;

impl Peer {
    /// A part alone, of any length; or a bundle of short ones.
    pub(super) fn part(&mut self, longest: u32, random: &mut Random) -> Vec<u8> {
        if random.chance(500_000) {
            let request = self.any_call(random);
            let length = match random.chance(700_000) {
                true => random.below(1_100) as u32,
                false => longest,
            };
            let content = prefix(request, length as usize, random);
            let mut message = self.new_message(Kind::Part, length, content);
            message.parts = part_marks(random);
            return message.data(self.session, 0..1);
        }
        let request = self.any_call(random);
        let mut content = Vec::new();
        for _ in 0..random.between(1, BUNDLED_MAX) {
            let length = random.below(200) as u16;
            let member = Member {
                id: self.next_id(),
                kind: Kind::Part,
                length,
                content: &prefix(request, usize::from(length), random),
                parts: part_marks(random),
            };
            member.write(&mut content);
        }
        let bundle = self.new_message(Kind::Bundle, content.len() as u32, content);
        bundle.data(self.session, 0..bundle.records())
    }

    /// The next part of a call whose first part never comes, alone or in a bundle; or the request
    /// of such a call. The server's application waits for the first one, which opens the window.
    pub(super) fn later_part(&mut self, longest: u32, random: &mut Random) -> Vec<u8> {
        let is_new = self.withheld.is_empty() || random.chance(100_000);
        if is_new && self.withheld.len() < WITHHELD_MAX {
            let mut request = self.new_message(Kind::Request, 10, Vec::new());
            request.parts = PartMarks { more: true, ..PartMarks::default() };
            self.withheld.push((request.id, 1));
            return request.data(self.session, 0..1);
        }
        let place = random.below(self.withheld.len() as u64) as usize;
        let (request, number) = &mut self.withheld[place];
        let (request, first) = (*request, *number);
        let count = *random.pick(&[1, 1, BUNDLED_MAX as u32]);
        *number += count;
        let mark = |number| PartMarks { more: true, number, ..PartMarks::default() };
        if count == 1 {
            let length = *random.pick(&[PART_PREFIX_LEN as u32, 1_000, longest]);
            let length = length.max(PART_PREFIX_LEN as u32);
            let content = request.0.to_be_bytes().to_vec();
            let mut message = self.new_message(Kind::Part, length, content);
            message.parts = mark(first);
            return message.data(self.session, 0..message.records());
        }
        let mut content = Vec::new();
        for number in first..first + count {
            let id = self.next_id();
            let (length, prefix) = (100, request.0.to_be_bytes());
            let member =
                Member { id, kind: Kind::Part, length, content: &prefix, parts: mark(number) };
            member.write(&mut content);
        }
        let bundle = self.new_message(Kind::Bundle, content.len() as u32, content);
        bundle.data(self.session, 0..bundle.records())
    }

    /// PART_WINDOW of any limit, or PART_WINDOW_REQUEST.
    pub(super) fn part_window(&mut self, random: &mut Random) -> Vec<u8> {
        let ids: Vec<_> = (0..random.between(1, 16)).map(|_| self.any_call(random)).collect();
        if random.chance(500_000) {
            return self.control(&Body::PartWindowRequest(ids.as_slice().into()));
        }
        let windows =
            ids.into_iter().map(|id| PartWindow { id, limit: random.any() >> random.below(64) });
        let windows: Vec<_> = windows.collect();
        self.control(&Body::PartWindow(windows.as_slice().into()))
    }

    /// A call, mostly one of the last that it has begun.
    fn any_call(&self, random: &mut Random) -> MessageId {
        match random.below(10) {
            0 => MessageId(random.any()),
            1 => MessageId(random.below(64) | 1),
            _ => {
                let back = random.between(1, 8);
                self.id(self.next_id.saturating_sub(back))
            }
        }
    }
}

/// Marks of a request that may come in parts.
pub(super) fn marks(random: &mut Random) -> PartMarks {
    PartMarks { reply_in_parts: random.chance(500_000), more: random.chance(500_000), number: 0 }
}

/// Marks of a part: mostly of a small number.
fn part_marks(random: &mut Random) -> PartMarks {
    let bits = *random.pick(&[2, 2, 4, 32]);
    PartMarks {
        reply_in_parts: false,
        more: random.chance(900_000),
        number: (random.any() & ((1 << bits) - 1)) as u32,
    }
}

/// The bytes with which a part begins: its call, or too few to say so.
fn prefix(request: MessageId, length: usize, random: &mut Random) -> Vec<u8> {
    let least = match random.chance(50_000) {
        true => random.below(PART_PREFIX_LEN as u64) as usize,
        false => PART_PREFIX_LEN,
    };
    let mut bytes = request.0.to_be_bytes().to_vec();
    bytes.truncate(least.min(length));
    bytes
}

/// Parts in a bundle.
const BUNDLED_MAX: u64 = 8;
/// Calls whose first part is withheld: enough to fill the largest server.
const WITHHELD_MAX: usize = 256;
