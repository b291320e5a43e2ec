// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The services once more, in the plainest form.

use std::collections::BTreeMap;

use crate::any_service::ServiceKind;
use crate::client_table::{IN_PROGRESS_MAX, session_of};
use crate::encoding::{decode, encode};
use crate::service::KeyValueOperation;
use crate::sim::history::Entry;

/// A service.
pub(super) struct Model {
    kind: ServiceKind,
    /// Whether a request that comes twice is executed once.
    executes_once: bool,
    sum: u64,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The requests that were executed, by client and session.
    executed: BTreeMap<(u32, u64), Vec<u64>>,
}

impl Model {
    pub(super) fn new(kind: ServiceKind, executes_once: bool) -> Self {
        Self { kind, executes_once, sum: 0, values: BTreeMap::new(), executed: BTreeMap::new() }
    }

    /// The answer to a request. Where each is executed once, one that was executed before has none,
    /// nor has one that is far below others of its session.
    pub(super) fn execute(&mut self, request: &Entry) -> Option<Vec<u8>> {
        // No run has as many sessions of a client as are open at once.
        let session = (request.client, session_of(request.number));
        let executed = self.executed.entry(session).or_default();
        let is_too_low = |it: &u64| request.number + IN_PROGRESS_MAX <= *it;
        let is_old = executed.contains(&request.number) || executed.iter().any(is_too_low);
        if self.executes_once && is_old {
            return None;
        }
        executed.push(request.number);
        Some(match self.kind {
            ServiceKind::Counter => match request.operation.as_slice().try_into() {
                Err(_) => Vec::new(),
                Ok(added) => {
                    self.sum = self.sum.wrapping_add(u64::from_be_bytes(added));
                    self.sum.to_be_bytes().to_vec()
                }
            },
            ServiceKind::KeyValue => match decode(&request.operation) {
                None => Vec::new(),
                Some(KeyValueOperation::Get(key)) => encode(&self.values.get(&key)),
                Some(KeyValueOperation::Put(key, value)) => encode(&self.values.insert(key, value)),
                Some(KeyValueOperation::Delete(key)) => encode(&self.values.remove(&key)),
            },
        })
    }
}
