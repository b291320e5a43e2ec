// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of messages: every byte of a message follows from its number.

use bytes::Bytes;

use crate::random::Random;

/// A request or one-way message, and what its reply is to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Content {
    /// Its number, different for each message of a run.
    pub number: u64,
    /// Bytes of the message.
    pub length: u32,
    /// Bytes of its reply.
    pub reply_length: u32,
}

impl Content {
    /// The message.
    pub fn body(&self) -> Bytes {
        let mut bytes = vec![0; self.length as usize];
        Random::new(self.number).fill(&mut bytes);
        if self.length >= TINY {
            bytes[..8].copy_from_slice(&self.number.to_be_bytes());
            bytes[8..12].copy_from_slice(&self.reply_length.to_be_bytes());
        }
        Bytes::from(bytes)
    }

    /// The reply. To a message that is too small to say what it wants, the same bytes.
    pub fn reply(&self) -> Bytes {
        if self.length < TINY {
            return self.body();
        }
        let mut bytes = vec![0; self.reply_length as usize];
        Random::new(!self.number).fill(&mut bytes);
        Bytes::from(bytes)
    }

    /// The content that a delivered message claims to be. `None` if it is tiny.
    pub fn claimed(body: &[u8]) -> Option<Self> {
        if body.len() < TINY as usize {
            return None;
        }
        let (number, rest) = body.split_first_chunk::<8>()?;
        let (reply_length, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            length: body.len() as u32,
            reply_length: u32::from_be_bytes(*reply_length),
        })
    }
}

/// Shorter messages do not name themselves.
pub const TINY: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_itself() {
        for length in [12, 13, 1_000] {
            let content = Content { number: 77, length, reply_length: 5 };
            assert_eq!(Content::claimed(&content.body()), Some(content));
            assert_eq!(content.reply().len(), 5);
        }
    }

    #[test]
    fn a_tiny_one_is_echoed() {
        let content = Content { number: 77, length: 11, reply_length: 5 };
        assert_eq!(Content::claimed(&content.body()), None);
        assert_eq!(content.reply(), content.body());
    }
}
