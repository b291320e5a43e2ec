// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A call that a connect takes along, so that it is early data where the server's ticket permits
//! (SPEC §6.8).
//!
//! ```text
//!   Operation ── EarlyCall ──▶ attempt ── connect_with_calls ──▶ Event::EarlyCalls ─▶ begun
//!       ▲                         └ fails, or begins without it: dropped                │
//!       └──── calls as ever ◀──────────┘                  waits for its reply ◀─────────┘
//! ```
//! Both ends hold it. The operation sees by its being alone that no attempt has it any more.

use std::sync::Arc;

use smt_proto::{OutgoingMessage, RpcId, Time};

use crate::endpoint_state::CallSlot;
use crate::sync::{Mutex, PoisonError};

/// A call on its way with a connect.
#[derive(Clone, Debug)]
pub(crate) struct EarlyCall(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    message: OutgoingMessage,
    due: Option<Time>,
    begun: Mutex<Option<BegunCall>>,
}

/// A call that has begun with its session.
#[derive(Debug)]
pub(crate) struct BegunCall {
    pub(crate) rpc: RpcId,
    /// The place of its reply.
    pub(crate) slot: CallSlot,
    /// Whether the server has taken its request as early data.
    pub(crate) was_early: bool,
}

impl EarlyCall {
    pub(crate) fn new(message: OutgoingMessage, due: Option<Time>) -> Self {
        Self(Arc::new(Shared { message, due, begun: Mutex::new(None) }))
    }

    /// The call as the core takes it.
    pub(crate) fn call(&self, now: Time) -> smt_proto::EarlyCall {
        smt_proto::EarlyCall {
            message: self.0.message.clone(),
            deadline: self.0.due.map(|due| due.since(now)),
        }
    }

    /// The call has a name, and its reply a place.
    pub(crate) fn begin(&self, call: BegunCall) {
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun = Some(call);
    }

    /// Takes the call, once it has begun.
    pub(crate) fn take_begun(&self) -> Option<BegunCall> {
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take()
    }

    /// Whether the other end is gone: the attempt, or the caller.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
