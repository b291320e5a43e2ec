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
    begun: Mutex<Option<(RpcId, CallSlot)>>,
}

impl EarlyCall {
    pub(crate) fn new(message: OutgoingMessage, due: Option<Time>) -> Self {
        Self(Arc::new(Shared {
            message,
            due,
            begun: Mutex::new(None),
        }))
    }

    /// The call as the core takes it.
    pub(crate) fn call(&self, now: Time) -> smt_proto::EarlyCall {
        smt_proto::EarlyCall {
            message: self.0.message.clone(),
            deadline: self.0.due.map(|due| due.since(now)),
        }
    }

    /// The call has a name, and its reply comes to `slot`.
    pub(crate) fn begin(&self, rpc: RpcId, slot: CallSlot) {
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun = Some((rpc, slot));
    }

    /// Takes the name and the slot, once the call has them.
    pub(crate) fn take_begun(&self) -> Option<(RpcId, CallSlot)> {
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.take()
    }

    /// Whether the other end is gone: the attempt, or the caller.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
