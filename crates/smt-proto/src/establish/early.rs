// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Early data (SPEC §6.8): calls that begin with their session, and leave in flight 1 where the key
//! exchange carries them.
//!
//! Flow: 1. the client writes its calls as members of a bundle, which the key exchange seals into
//! flight 1  2. a server that takes them has a session at once, delivers them under the first ids
//! of the client and may reply  3. the client, once its session is live, gives its calls the same
//! ids; those that the server has not taken leave as any call does.

use alloc::vec::Vec;
use core::time::Duration;

use smt_wire::{EARLY_CALLS_MAX, Kind, MemberHeader, MessageId, PartMarks};

use crate::outgoing_message::OutgoingMessage;
use crate::time::Time;

/// A call that begins with its session.
#[derive(Clone, Debug)]
pub struct EarlyCall {
    /// The request. It may run twice: only those may be early of which the application knows that
    /// this does no harm.
    pub message: OutgoingMessage,
    /// How long the application waits, from the connect on.
    pub deadline: Option<Duration>,
}

/// The calls of a connect, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct EarlyCalls {
    pub(crate) calls: Vec<EarlyCall>,
    /// When they were made.
    pub(crate) since: Time,
    /// How many of them have left in flight 1.
    pub(crate) sent: usize,
    /// Whether the server has taken those.
    pub(crate) is_taken: bool,
}

impl EarlyCalls {
    pub(crate) fn new(since: Time, calls: Vec<EarlyCall>) -> Self {
        Self { calls, since, ..Self::default() }
    }

    /// The first calls, as many as fit into `most` bytes. They count as sent.
    pub(crate) fn write(&mut self, most: usize, reply_unscheduled: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for call in self.calls.iter().take(EARLY_CALLS_MAX) {
            let (body, has_metadata) = call.message.clone().into_application_bytes();
            let Ok(length) = u16::try_from(body.len()) else {
                break;
            };
            if out.len() + MemberHeader::LEN + body.len() > most {
                break;
            }
            let header = MemberHeader {
                id: MessageId(self.sent as u64),
                kind: Kind::Request,
                length,
                deadline_us: deadline_us(call.deadline),
                reply_unscheduled,
                failure: None,
                has_metadata,
                parts: PartMarks::default(),
            };
            let mut bytes = [0; MemberHeader::LEN];
            header.emit(&mut bytes);
            out.extend_from_slice(&bytes);
            body.append_to(&mut out);
            self.sent += 1;
        }
        out
    }
}

/// Microseconds until a deadline, as a header has them: 0 is none.
fn deadline_us(deadline: Option<Duration>) -> u32 {
    let us = deadline.map(|deadline| deadline.as_micros().max(1));
    us.map_or(0, |us| u32::try_from(us).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::Members;
    use std::prelude::v1::*;
    use std::vec;

    fn calls(lengths: &[usize]) -> EarlyCalls {
        let call = |length: &usize| EarlyCall {
            message: OutgoingMessage::new(vec![7; *length]),
            deadline: Some(Duration::from_millis(5)),
        };
        EarlyCalls::new(Time::default(), lengths.iter().map(call).collect())
    }

    #[test]
    fn calls_are_written_in_order_as_far_as_they_fit() {
        let mut early = calls(&[10, 0, 100, 3]);
        let bytes = early.write(3 * MemberHeader::LEN + 100, 1_000);
        assert_eq!(early.sent, 2);
        let members: Vec<_> = Members::parse(&bytes).unwrap().collect();
        let lengths: Vec<u16> = members.iter().map(|(header, _)| header.length).collect();
        assert_eq!(lengths, [10, 0]);
        assert!(members.iter().all(|(header, _)| header.deadline_us == 5_000));
    }

    #[test]
    fn an_exchange_that_carries_nothing_gets_nothing() {
        let mut early = calls(&[0]);
        assert!(early.write(0, 0).is_empty() && early.sent == 0);
    }

    #[test]
    fn more_calls_than_a_flight_has_wait_for_the_session() {
        let mut early = calls(&[0; EARLY_CALLS_MAX + 1]);
        early.write(usize::MAX, 0);
        assert_eq!(early.sent, EARLY_CALLS_MAX);
    }
}
