// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The message whose turn it is while memory is full (SPEC §9.2).
//!
//! 1. One message gets on at a time, the one with the fewest bytes left: once it is whole its
//!    memory is free.
//! 2. Its grants are beyond the bound, so no other message is granted anything until they have
//!    come.
//! 3. If they do not come within [`TURN_MAX`], the next message may get on, but of another session.
//!    A peer that holds back the last record of each of its messages has therefore one message
//!    beyond the bound, and the turns of others wait for it no longer.
//!
//! Not here: what the message is granted (`policy`).

use alloc::collections::BTreeMap;
use core::time::Duration;

use smt_wire::SessionIndex;

use crate::event::RpcId;
use crate::grant::policy::Grantable;
use crate::limits::RESEND_INTERVAL;
use crate::time::Time;

/// The message that gets on, and those that were to and have not.
#[derive(Debug, Default)]
pub(crate) struct MemoryPressure {
    /// The message whose turn it is, and since when.
    current: Option<(RpcId, Time)>,
    /// Messages whose senders have taken too long: no other of their sessions gets on.
    set_back: BTreeMap<SessionIndex, RpcId>,
}

impl MemoryPressure {
    /// The message that may be granted more now. `of` tells the needs of a message. `waiting`
    /// yields the messages that need grants, the one with the fewest bytes left first.
    pub(crate) fn next<'a>(
        &mut self,
        now: Time,
        of: impl Fn(RpcId) -> Option<Grantable>,
        mut waiting: impl Iterator<Item = &'a Grantable>,
    ) -> Option<Grantable> {
        if let Some((rpc, since)) = self.current
            && let Some(message) = of(rpc)
            && message.granted > message.arrived
        {
            if now < since + TURN_MAX {
                return Some(message).filter(|message| message.granted < message.length);
            }
            self.set_back.insert(rpc.session, rpc);
        }
        let next = waiting.find(|message| !self.set_back.contains_key(&message.rpc.session));
        self.current = next.map(|message| (message.rpc, now));
        next.copied()
    }

    /// Takes a message that is over, or of which more has come and which needs grants: it has its
    /// turn again if it is the shortest.
    pub(crate) fn forget(&mut self, rpc: RpcId) {
        self.current = self.current.filter(|(current, _)| *current != rpc);
        if self.set_back.get(&rpc.session) == Some(&rpc) {
            self.set_back.remove(&rpc.session);
        }
    }

    /// Ends the turn of a message that does not use its grants.
    pub(crate) fn pass_over(&mut self, rpc: RpcId) {
        if self.current.take_if(|(current, _)| *current == rpc).is_some() {
            self.set_back.insert(rpc.session, rpc);
        }
    }

    /// Forgets all turns, since there is room for all again.
    pub(crate) fn clear(&mut self) {
        self.current = None;
        self.set_back.clear();
    }

    /// When the next message may get on.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.current.map(|(_, since)| since + TURN_MAX)
    }
}

/// The wait before the first question for bytes that do not come.
const TURN_MAX: Duration = RESEND_INTERVAL;
