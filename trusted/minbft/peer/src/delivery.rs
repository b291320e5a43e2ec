// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages to all other replicas, sent again until each has them.
//!
//! `minbft` expects channels that lose nothing: a message that is lost stops the stream of its
//! sender for ever. Sessions of SMT lose none while they last, and a message is given up when its
//! peer is away.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// Messages that are kept for a replica that is away, at most. A replica that lacks more would need
/// a state, which `minbft` does not transfer.
const KEPT_MAX: usize = 1 << 16;
/// Their bytes, at most.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Messages that are taken ahead of one that is missing, at most. They need not be sent again.
const AHEAD_MAX: u64 = 1 << 12;
/// A message is sent again after so many ticks: the receiver tells what it has in each tick.
const AGAIN_AFTER: usize = 3;
/// Messages that are sent again to one replica in a tick, at most.
const AGAIN_MAX: usize = 256;

/// Bytes between two replicas.
#[derive(Deserialize, Serialize)]
pub(crate) enum Frame {
    /// A message of the sender under its number, from 0.
    Message(u64, Vec<u8>),
    /// The sender has taken all messages below this number.
    Taken(u64),
}

/// The state of another replica, as far as it is known.
#[derive(Default)]
struct Peer {
    /// It has taken all messages below this number.
    has: u64,
    /// This replica has taken all of its messages below this number.
    taken: u64,
    /// And these.
    ahead: BTreeSet<u64>,
}

/// The messages of a replica to all others, and those of the others to it.
pub(crate) struct Delivery {
    peers: BTreeMap<u32, Peer>,
    /// The number of the first message that is kept.
    first: u64,
    kept: VecDeque<Vec<u8>>,
    bytes: usize,
    /// How many messages there were at the last ticks, the oldest first.
    sent_at: VecDeque<u64>,
}

impl Delivery {
    pub(crate) fn new(others: impl Iterator<Item = u32>) -> Self {
        let peers = others.map(|it| (it, Peer::default())).collect();
        let sent_at = VecDeque::from([0; AGAIN_AFTER]);
        Self { peers, first: 0, kept: VecDeque::new(), bytes: 0, sent_at }
    }

    /// Takes a message for all others, and returns its frame.
    pub(crate) fn send(&mut self, message: Vec<u8>) -> Vec<u8> {
        let frame = encode(&Frame::Message(self.next(), message));
        self.bytes += frame.len();
        self.kept.push_back(frame.clone());
        while self.kept.len() > KEPT_MAX || (self.bytes > KEPT_BYTES_MAX && self.kept.len() > 1) {
            self.drop_first();
        }
        frame
    }

    /// Takes a frame, and returns its message unless it is known. Below `limit` alone messages are
    /// taken; others come again.
    pub(crate) fn receive(&mut self, from: u32, frame: Frame, limit: u64) -> Option<Vec<u8>> {
        let end = self.next();
        let peer = self.peers.get_mut(&from)?;
        match frame {
            Frame::Taken(number) => {
                // A liar has what does not exist.
                peer.has = peer.has.max(number.min(end));
                None
            }
            Frame::Message(number, message) => {
                let limit = limit.min(peer.taken.saturating_add(AHEAD_MAX));
                let is_new = number >= peer.taken && number < limit && peer.ahead.insert(number);
                while peer.ahead.remove(&peer.taken) {
                    peer.taken += 1;
                }
                is_new.then_some(message)
            }
        }
    }

    /// Time passes. Returns the frames for each replica: what this one has, and what the other one
    /// lacks.
    pub(crate) fn tick(&mut self) -> Vec<(u32, Vec<u8>)> {
        let all_have = self.peers.values().map(|it| it.has).min().unwrap_or(0);
        while self.first < all_have && !self.kept.is_empty() {
            self.drop_first();
        }
        let old = self.sent_at.pop_front().unwrap_or(0);
        self.sent_at.push_back(self.next());
        let mut frames = Vec::new();
        for (number, peer) in &self.peers {
            frames.push((*number, encode(&Frame::Taken(peer.taken))));
            let begin = peer.has.max(self.first);
            let count = usize::try_from(old.saturating_sub(begin)).unwrap_or(usize::MAX);
            let skipped = usize::try_from(begin - self.first).unwrap_or(usize::MAX);
            let again = self.kept.iter().skip(skipped).take(count.min(AGAIN_MAX));
            frames.extend(again.map(|frame| (*number, frame.clone())));
        }
        frames
    }

    /// The number of the next message.
    fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn drop_first(&mut self) {
        if let Some(frame) = self.kept.pop_front() {
            self.first += 1;
            self.bytes -= frame.len();
        }
    }
}

/// Bytes of a frame or a message. Memory is all that it can lack.
pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).unwrap_or_default()
}

/// Reads a value, and refuses bytes after it.
pub(crate) fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn take(to: &mut Delivery, from: u32, frame: &[u8]) -> Option<Vec<u8>> {
        to.receive(from, decode(frame).unwrap(), u64::MAX)
    }

    /// Frames of a tick for one replica.
    fn for_one(from: &mut Delivery, to: u32) -> Vec<Vec<u8>> {
        from.tick().into_iter().filter(|it| it.0 == to).map(|it| it.1).collect()
    }

    #[test]
    fn a_message_that_was_lost_is_sent_again_and_taken_once() {
        let (mut one, mut two) = (Delivery::new(1..3), Delivery::new([0, 2].into_iter()));
        let frames: Vec<_> = (0..3).map(|it| one.send(vec![it])).collect();
        assert_eq!(take(&mut two, 0, &frames[0]), Some(vec![0]));
        assert_eq!(take(&mut two, 0, &frames[2]), Some(vec![2]));
        assert_eq!(take(&mut two, 0, &frames[2]), None);
        let mut again = Vec::new();
        for _ in 0..=AGAIN_AFTER {
            assert_eq!(again.len(), 0, "it has its time to arrive");
            for_one(&mut two, 0).iter().for_each(|it| assert_eq!(take(&mut one, 1, it), None));
            again =
                for_one(&mut one, 1).into_iter().filter_map(|it| take(&mut two, 0, &it)).collect();
        }
        assert_eq!(again, [[1]]);
        for_one(&mut two, 0).iter().for_each(|it| assert_eq!(take(&mut one, 1, it), None));
        assert_eq!(for_one(&mut one, 1).len(), 1, "all has arrived");
        assert_eq!(one.kept.len(), 3, "the third replica has nothing yet");
    }

    #[test]
    fn messages_are_kept_up_to_a_bound() {
        let mut one = Delivery::new(1..3);
        for _ in 0..70 {
            one.send(vec![0; 1 << 20]);
        }
        assert!(one.bytes <= KEPT_BYTES_MAX && one.next() == 70);
        assert_eq!(one.first as usize, 70 - one.kept.len());
    }

    #[test]
    fn a_peer_that_lies_about_what_it_has_does_no_harm() {
        let mut one = Delivery::new(1..2);
        one.send(vec![1]);
        assert_eq!(one.receive(1, Frame::Taken(u64::MAX), u64::MAX), None);
        one.tick();
        assert_eq!((one.first, one.kept.len()), (1, 0));
        assert_eq!(one.receive(1, Frame::Message(u64::MAX, vec![1]), u64::MAX), None);
        assert_eq!(one.receive(7, Frame::Message(0, vec![1]), u64::MAX), None);
    }
}
