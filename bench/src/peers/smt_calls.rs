// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a client that drives SMT itself has open: sessions, and calls in progress by the numbers of their callers.

use std::collections::HashMap;

use smt_proto::{Event, RpcId};
use smt_wire::SessionIndex;

use crate::failure::Failure;

/// Sessions and calls of a client.
#[derive(Debug, Default)]
pub(super) struct SmtCalls {
    pub(super) sessions: Vec<SessionIndex>,
    calls: HashMap<RpcId, u32>,
}

impl SmtCalls {
    /// A call has begun.
    pub(super) fn begun(&mut self, rpc: RpcId, number: u32) {
        self.calls.insert(rpc, number);
    }

    /// Takes an event. Whose call has ended is appended, with the bytes of its reply.
    pub(super) fn take(
        &mut self,
        event: Event,
        ended: &mut Vec<(u32, usize)>,
    ) -> Result<(), Failure> {
        match event {
            Event::Connected { session, .. } => self.sessions.push(session),
            Event::ConnectFailed { error, .. } => return Err(error.into()),
            Event::Reply { rpc, body } => {
                let number = self.calls.remove(&rpc);
                ended.extend(number.map(|number| (number, body.len())));
            }
            Event::CallFailed { error, .. } => return Err(error.into()),
            _ => {}
        }
        Ok(())
    }
}
