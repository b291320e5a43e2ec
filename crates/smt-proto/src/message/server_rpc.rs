// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An RPC or one-way message that the peer initiated, from its opened record 0 on.
//!
//! ```text
//!   receiving ──▶ working ── reply ──▶ replying ── acknowledged ──▶ (gone)
//!       │            │                     └─ in a bundle ──▶ bundled ── acknowledged ──▶ (gone)
//!       │            └────── abort ──▶ aborted  ── acknowledged ──▶ (gone)
//!       └─ one-way, whole ──▶ (gone; its id is marked delivered)
//! ```

use alloc::boxed::Box;
use smt_record::OutgoingId;
use smt_wire::{AbortCode, MessageId};

use crate::message::incoming::Incoming;
use crate::message::outgoing::Outgoing;
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// A message of the peer, and this side's answer.
#[derive(Debug)]
pub(crate) struct ServerRpc {
    pub(crate) state: ServerRpcState,
    pub(crate) retry: RetryTimer,
    /// The bytes of the reply that the request permits without a grant.
    pub(crate) reply_unscheduled: u32,
}

impl ServerRpc {
    /// Takes the state of an RPC that is about to end, or to get another state.
    pub(crate) fn take_state(&mut self) -> ServerRpcState {
        core::mem::replace(&mut self.state, ServerRpcState::Aborted(AbortCode::Dropped))
    }

    /// When the sender gives up, by the field of its inner header (SPEC §5.2).
    pub(crate) fn deadline_of(now: Time, deadline_us: u32) -> Option<Time> {
        (deadline_us != 0 && deadline_us != u32::MAX)
            .then(|| now + core::time::Duration::from_micros(u64::from(deadline_us)))
    }
}

/// The state of a served RPC.
#[derive(Debug)]
pub(crate) enum ServerRpcState {
    /// Record 0 has opened; `right` permits one reply (none for a one-way message).
    Receiving {
        incoming: Box<Incoming>,
        right: Option<OutgoingId>,
        /// When the sender of a request or one-way message gives up.
        deadline: Option<Time>,
    },
    /// The whole request waits for its answer.
    Working {
        right: OutgoingId,
        /// Whether the application has the request. Else it waits to be handed over, and can be
        /// taken back.
        is_delivered: bool,
    },
    /// The reply is on its way, or waits for its acknowledgement.
    Replying(Outgoing),
    /// The reply has left in this bundle, which is acknowledged for it.
    Bundled(MessageId),
    /// There is no reply and there will be none.
    Aborted(AbortCode),
}

// The size is bounded for the same reason as in `client_message`.
const _: () = assert!(size_of::<ServerRpc>() <= 128);
