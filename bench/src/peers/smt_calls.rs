// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The open state of a client that drives SMT itself: sessions, and calls in progress by the
//! numbers of their callers.

use bytes::Bytes;
use foldhash::HashMap;
use smt_proto::{Event, Refused, RpcId};
use smt_wire::SessionIndex;

use crate::failure::Failure;

/// Sessions and calls of a client.
#[derive(Debug, Default)]
pub(super) struct SmtCalls {
    pub(super) sessions: Vec<SessionIndex>,
    calls: HashMap<RpcId, u32>,
    /// Calls that wait for ids: one that was lost holds up all that are a window later.
    waiting: Vec<SmtCall>,
    is_unblocked: bool,
}

/// A call that is to begin.
#[derive(Clone, Debug)]
pub(super) struct SmtCall {
    pub(super) connection: usize,
    pub(super) number: u32,
    pub(super) request: Bytes,
}

impl SmtCalls {
    /// Begins a call, or lets it wait.
    pub(super) fn begin(
        &mut self,
        call: SmtCall,
        begin: impl FnOnce(SessionIndex, Bytes) -> Result<RpcId, Refused>,
    ) -> Result<(), Failure> {
        match begin(self.sessions[call.connection], call.request.clone()) {
            Ok(rpc) => {
                self.calls.insert(rpc, call.number);
            }
            Err(Refused::Blocked) => self.waiting.push(call),
            Err(refused) => return Err(refused.into()),
        }
        Ok(())
    }

    /// Calls that have waited and may be tried again.
    pub(super) fn unblocked(&mut self) -> Vec<SmtCall> {
        match std::mem::take(&mut self.is_unblocked) {
            true => std::mem::take(&mut self.waiting),
            false => Vec::new(),
        }
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
            Event::Reply { rpc, body, .. } => {
                let number = self.calls.remove(&rpc);
                ended.extend(number.map(|number| (number, body.len())));
            }
            Event::CallFailed { error, .. } => return Err(error.into()),
            Event::Unblocked(_) => self.is_unblocked = true,
            _ => {}
        }
        Ok(())
    }
}
