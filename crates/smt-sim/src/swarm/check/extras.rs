// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Metadata and buffers of messages, and the failures that answer them. All of it follows from the
//! number of a message, as its bytes do.

use bytes::Bytes;
use smt_proto::{Failure, Metadata, OutgoingMessage};

use super::Content;
use crate::random::Random;

impl Content {
    /// The request or one-way message, for a host that takes so many bytes: some have metadata, and
    /// some are chains of buffers.
    pub(crate) fn message(&self, limit: u32) -> OutgoingMessage {
        let metadata = self.metadata(limit);
        cut(self.number, self.body()).with_metadata(metadata)
    }

    /// Its reply, for a host that takes so many bytes.
    pub(crate) fn reply_message(&self, limit: u32) -> OutgoingMessage {
        let metadata = self.reply_metadata(limit);
        cut(!self.number, self.reply()).with_metadata(metadata)
    }

    /// The metadata of the message.
    pub(crate) fn metadata(&self, limit: u32) -> Metadata {
        metadata(self.number, self.length, limit, self.names_itself())
    }

    /// The metadata of its reply.
    pub(crate) fn reply_metadata(&self, limit: u32) -> Metadata {
        let length = self.reply_length;
        metadata(!self.number, length, limit, self.names_itself())
    }

    /// The failure that an application answers.
    pub(crate) fn failure(&self, not_run: bool) -> Failure {
        let mut random = Random::new(self.number ^ FAILURES);
        let length = *random.pick(&[0, 10, 200, 1_024]);
        Failure {
            code: random.any() as u32,
            text: "é".repeat(length / 2),
            not_run,
            metadata: Metadata::new(),
        }
    }

    /// Whether its receiver knows which message it is.
    fn names_itself(&self) -> bool {
        self.length >= super::TINY
    }
}

/// Every third message has metadata, if its receiver takes it with that.
fn metadata(number: u64, length: u32, limit: u32, names_itself: bool) -> Metadata {
    let mut random = Random::new(number ^ METADATA);
    let mut metadata = Metadata::new();
    if !names_itself || !random.chance(333_333) {
        return metadata;
    }
    for _ in 0..random.between(1, 5) {
        let mut value = vec![0; *random.pick(&[0, 8, 100, 700])];
        random.fill(&mut value);
        let name = *random.pick(&["trace", "a", "deadline.of-caller_0"]);
        metadata.push(name, &value).expect("few and short");
    }
    match metadata.encoded_len() + length as usize > limit as usize {
        true => Metadata::new(),
        false => metadata,
    }
}

/// Every third body is a chain.
pub(crate) fn cut(number: u64, body: Bytes) -> OutgoingMessage {
    let mut random = Random::new(number ^ CUTS);
    if !random.chance(333_333) {
        return OutgoingMessage::new(body);
    }
    let (mut buffers, mut rest) = (Vec::new(), body);
    for _ in 0..random.between(1, 6) {
        let at = random.between(0, rest.len() as u64);
        buffers.push(rest.split_to(at as usize));
    }
    buffers.push(rest);
    OutgoingMessage::new(buffers)
}

/// Keep what is drawn from a message's number apart from its bytes.
const METADATA: u64 = 0x4D45_5441;
const CUTS: u64 = 0x4355_5453;
const FAILURES: u64 = 0x4641_494C;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_messages_have_metadata_and_none_is_too_long_for_its_receiver() {
        let content = |number, length| Content { number, length, reply_length: 50 };
        let with =
            |length| (0..300).filter(move |n| !content(*n, length).metadata(1_000).is_empty());
        assert!((50..150).contains(&with(100).count()));
        assert_eq!(with(11).count(), 0, "tiny ones do not name themselves");
        for number in 0..300 {
            let message = content(number, 900).message(1_000);
            let total = message.body.len() + message.metadata.encoded_len();
            assert!(total <= 1_000);
        }
    }

    #[test]
    fn a_chain_has_the_bytes_of_its_message() {
        for number in 0..100 {
            let content = Content { number, length: 100, reply_length: 5 };
            let message = content.message(200);
            let bytes: Vec<u8> = message.body.buffers().flatten().copied().collect();
            assert_eq!(bytes, content.body());
        }
    }
}
